//! `unknown_waits`: operations sleep long in waits that have no name, and no directory or file is shown to be the cause. The rule has no
//! cure to advise. It says how to find the cause, and shows the kernel functions if stacks were sampled.

use crate::breakdown::part;
use crate::observed::Sleeps;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{IN_OTHER_WAITS, NO_PHASES, evidence, percent};
use crate::rules::other_waits::{self, long_enough, longest_wait_evidence, other_waits_reason};
use crate::rules::stuck_requests::named_functions;
use crate::thresholds::MIN_STACKS;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let named = other_waits::contended(context).is_some();
    let share = context.share(attribution.lock);
    let mut all_evidence: Vec<_> = longest_wait_evidence(context).into_iter().collect();
    if let Some(Ok(sleeps)) = &context.observed.sleeps {
        all_evidence.extend(functions(sleeps));
    }
    RuleResult {
        kind: Kind::UnknownWaits,
        share: b.phases.map(|_| share),
        of_threads: context.share_of_threads(attribution.lock),
        // Sleep is attributed only if it is long: `Attribution::lock`.
        condition: attribution.lock > 0.0 && !named && long_enough(context),
        // Time of an unknown cause counts as unexplained.
        max_severity: Severity::Warning,
        summary: format!(
            "{} of request time in the server is spent {IN_OTHER_WAITS}",
            percent(share)
        ),
        evidence: all_evidence,
        advice: advice(context),
        ruled_out_reason: match b.phases {
            None => NO_PHASES.into(),
            Some(_) if named => "see lock_contention".into(),
            Some(_) => other_waits_reason(context),
        },
    }
}

/// The function in which most operations slept. If that is a wait for a lock, the other functions may show the wait of its holder.
fn functions(sleeps: &Sleeps) -> Vec<Evidence> {
    let mut all = Vec::new();
    let mut say = |of: &Sleeps, begin: String| {
        if let Some((function, n, stack)) = of.commonest() {
            let of_all = part(n as f64, of.count() as f64);
            let text = format!(
                "{begin}, {} of them in the kernel function {function}: {}",
                percent(of_all),
                named_functions(stack)
            );
            all.push(evidence(&f::OP_PHASE.info, of_all, None, text));
        }
    };
    let (looks, number) = (sleeps.looks, sleeps.count());
    say(
        sleeps,
        format!("in {looks} looks {number} operations were in such a wait"),
    );
    let others = sleeps.beside_locks();
    if sleeps.are_for_locks() == Some(true) {
        let number = others.count();
        say(&others, format!("{number} of them did not wait for a lock"));
    }
    all
}

/// Advice on finding the cause, or on the cause that kernel functions show.
fn advice(context: &Context) -> Vec<String> {
    let stacks = match context.breakdown.illumos {
        true => "echo '::stacks -m nfssrv' | mdb -k",
        false => "for t in $(pgrep -x nfsd); do cat /proc/$t/stack; done",
    };
    let by_hand = format!(
        "the kernel functions that threads sleep in name what they wait for; as root on the server: {stacks}"
    );
    match &context.observed.sleeps {
        None => vec![
            "run nfscope diagnose as root on the server while this lasts: it names the kernel functions that operations sleep in, and \
             the directory or file if changes of one wait for each other"
                .into(),
            by_hand,
        ],
        Some(Ok(sleeps)) if sleeps.count() > 0 => match sleeps.advice() {
            Some(shown) => vec![shown.into()],
            None if (sleeps.count() as f64) < MIN_STACKS => {
                vec![
                    "few operations were seen asleep: watch for longer (--duration)".into(),
                    by_hand,
                ]
            }
            None => vec![
                "the kernel function above, and its module in brackets, name what operations wait for: look at that part of the system"
                    .into(),
            ],
        },
        Some(Ok(sleeps)) => vec![
            format!("in {} looks no operation was seen in such a wait: watch for longer (--duration)", sleeps.looks),
            by_hand,
        ],
        Some(Err(why)) => vec![
            format!("the kernel functions that operations sleep in are not known: {why}"),
            by_hand,
        ],
    }
}

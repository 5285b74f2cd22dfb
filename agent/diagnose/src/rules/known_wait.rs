//! Common parts of rules whose cause has a phase of operations of its own.

use crate::attribution::longest_wait;
use crate::breakdown::{Phases, part};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, NOT_APART, evidence, percent};
use crate::rules::other_waits::{behind_evidence, or_behind};
use crate::thresholds::LONG_WAIT_SECONDS;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// A cause that has a phase.
pub struct KnownWait {
    pub kind: Kind,
    /// Seconds of the phase in an operation.
    pub phase: fn(&Phases) -> f64,
    /// Programs without which this host does not distinguish the phase, on Linux and on illumos.
    pub programs: [&'static str; 2],
    /// Seconds that are attributed to the cause.
    pub attributed: f64,
    /// Text such as "waiting until written data is stored".
    pub waiting: &'static str,
    /// Text after "waits": "until written data is stored".
    pub until: &'static str,
}

/// Returns true if this host distinguishes the wait from others. If an agent reports no programs, they count as attached.
fn is_known(context: &Context, wait: &KnownWait) -> bool {
    let b = context.breakdown;
    b.rare_known && !wait.programs.iter().any(|p| b.not_attached.contains(*p))
}

/// Result of the rule without the parts that are special for the cause.
pub fn result(
    context: &Context,
    wait: &KnownWait,
    more: Vec<Evidence>,
    advice: Vec<String>,
) -> RuleResult {
    let b = context.breakdown;
    let share = context.share(wait.attributed);
    let longest = longest_wait(b, wait.phase);
    let mut all = Vec::new();
    if let Some((op, each)) = longest {
        let text = format!(
            "one {} over NFSv{} waits {} on average {}, {} of its time (threshold: {})",
            op.op.to_uppercase(),
            op.version,
            seconds(each),
            wait.until,
            percent(part((wait.phase)(&op.phases), op.seconds)),
            seconds(LONG_WAIT_SECONDS)
        );
        let limit = Some(LONG_WAIT_SECONDS);
        all.push(evidence(&f::OP_PHASE.info, each, limit, text));
    }
    all.extend(behind_evidence(context, wait.kind));
    all.extend(more);
    RuleResult {
        kind: wait.kind,
        share: b.phases.filter(|_| is_known(context, wait)).map(|_| share),
        of_threads: context.share_of_threads(wait.attributed),
        condition: wait.attributed > 0.0,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent {}{}",
            percent(share),
            wait.waiting,
            or_behind(context, wait.kind)
        ),
        evidence: all,
        advice,
        ruled_out_reason: match (b.phases, longest) {
            (None, _) => NO_PHASES.into(),
            _ if !is_known(context, wait) => NOT_APART.into(),
            (_, None) => format!("no operation waited {}", wait.until),
            (_, Some((op, each))) => format!(
                "one {} waits {} on average {}",
                op.op.to_uppercase(),
                seconds(each),
                wait.until
            ),
        },
    }
}

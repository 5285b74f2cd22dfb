//! Predictions as text.

use crate::predict::{Predicted, Prediction};
use crate::rank::Plausible;
use crate::refusal::Refusal;
use nfscope_text::table::columns;
use nfscope_text::units::{percent, rate, seconds};
use nfscope_text::wrap::wrap;
use std::fmt::Write;

const WIDTH: usize = 80;

/// Text of `nfscope what-if` for one change.
pub fn render(p: &Prediction, source: &str) -> String {
    let mut out = format!("{source}: what if it had {}?\n\n", p.change.words());
    let row = |name: &str, v: &Predicted, unit: &dyn Fn(f64) -> String| {
        [
            name.to_owned(),
            unit(v.before),
            unit(v.after),
            format!("{} .. {}", unit(v.low), unit(v.high)),
        ]
    };
    let per_second = |n: f64| format!("{}/s", rate(n));
    let mut rows = vec![["", "MEASURED", "PREDICTED", "INTERVAL"].map(str::to_owned)];
    rows.push(row("requests", &p.rate, &per_second));
    rows.push(row("time in the server", &p.residence, &seconds));
    rows.push(row("wait for a thread", &p.queue, &seconds));
    rows.push(row("  p99", &p.queue_p99, &seconds));
    for op in &p.ops {
        let name = format!("{} {}", op.op.to_uppercase(), op.version);
        rows.push(row(&name, &op.mean, &seconds));
        rows.push(row("  p99", &op.p99, &seconds));
    }
    out.push_str(&columns(&rows));
    out.push('\n');
    let used = p
        .used
        .iter()
        .map(|u| format!("{} {}", u.resource, percent(u.utilization)));
    wrap(
        &mut out,
        WIDTH,
        "",
        &format!("In use then: {}.", used.collect::<Vec<_>>().join(", ")),
    );
    wrap(&mut out, WIDTH, "", &p.next_limit());
    wrap(
        &mut out,
        WIDTH,
        "",
        &format!(
            "Without the change the model has {} of the measured requests and {} of their time in the server.",
            percent(p.calibration[0]),
            percent(p.calibration[1])
        ),
    );
    out.push_str("\nAssumptions:\n");
    for a in &p.assumptions {
        wrap(&mut out, WIDTH, "- ", a);
    }
    out
}

/// Text of `nfscope what-if` without a change.
pub fn render_list(all: &[Plausible], source: &str) -> String {
    let mut out = format!("{source}: what would be worth most\n\n");
    for (n, p) in all.iter().enumerate() {
        let _ = writeln!(out, "{}. {}", n + 1, p.sentence());
    }
    if let Some(first) = all.first() {
        out.push_str("\nAssumptions of the first:\n");
        for a in &first.prediction.assumptions {
            wrap(&mut out, WIDTH, "- ", a);
        }
    }
    out
}

/// Text of the changes of [`plausible`](crate::plausible) below the findings of a diagnosis, or why there are none.
pub fn render_worth(changes: &Result<Vec<Plausible>, Refusal>) -> String {
    match changes {
        Ok(all) => {
            let mut out = String::from("\nWhat a change would be worth (nfscope what-if):\n");
            for p in all {
                wrap(&mut out, WIDTH, "  - ", &p.sentence());
            }
            out
        }
        Err(why) => {
            let mut out = String::from("\nWhat a change would be worth is not known:\n");
            wrap(&mut out, WIDTH, "  ", &format!("{why}."));
            out
        }
    }
}

/// Text about a server with more clients, below its capacity, or why it is not known.
pub fn render_fullest(fullest: &Result<Prediction, Refusal>) -> String {
    let mut out = String::from("\nBy the model of nfscope what-if:\n");
    let text = match fullest {
        Ok(p) => format!(
            "with {} the server does {} requests per second ({} .. {}), each of them {} in the server. {}",
            p.change.words(),
            rate(p.rate.after),
            rate(p.rate.low),
            rate(p.rate.high),
            seconds(p.residence.after),
            p.next_limit()
        ),
        Err(why) => format!("no prediction: {why}."),
    };
    wrap(&mut out, WIDTH, "- ", &text);
    out
}

impl Prediction {
    /// Sentence about the resource that limits the requests after the change.
    pub fn next_limit(&self) -> String {
        let used = |name: &str| {
            let found = self.used.iter().find(|u| u.resource == name);
            found.map_or(0.0, |u| u.utilization)
        };
        if used("CPUs") > 0.9 {
            return "The CPUs saturate next.".into();
        }
        if used("threads") > 0.95 {
            return "The threads saturate next: requests wait for one.".into();
        }
        if used("log") > 0.9 {
            return "The log is next: a commit is always under way, and only a faster log or more requests at a time help.".into();
        }
        "Nothing saturates: the clients, or waits that no other request lengthens, set the rate."
            .into()
    }
}

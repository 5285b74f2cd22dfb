//! Error of a prediction.

use std::fmt::Write as _;

use nfscope_model::{Window, family};
use nfscope_whatif::{Prediction, Refusal, predict};

use super::points::{Pair, Point};

/// Largest error of requests per second.
const RATE_GOAL: f64 = 0.20;
/// Largest error of the mean time in the server.
const RESIDENCE_GOAL: f64 = 0.25;
/// Largest change of the rate that counts as none.
const NO_CHANGE: f64 = 0.10;

/// Pair of servers, predicted and measured.
#[derive(Debug)]
pub struct Verdict {
    /// The server before, and the change.
    pub name: String,
    /// Requests per second and mean residence, before and after.
    pub measured: [(f64, f64); 2],
    /// Prediction, or the model's reason for none.
    pub predicted: Result<Prediction, Refusal>,
}

impl Verdict {
    pub(super) fn of(pair: &Pair, before: &Window, after: &Window) -> Verdict {
        Verdict {
            name: name(&pair.before, &pair.after),
            measured: [measured(before), measured(after)],
            predicted: predict(before, &pair.change),
        }
    }

    /// Relative errors of rate and residence; `None` without a prediction.
    pub fn errors(&self) -> Option<[f64; 2]> {
        let p = self.predicted.as_ref().ok()?;
        let (rate, residence) = self.measured[1];
        Some([
            p.rate.after / rate - 1.0,
            p.residence.after / residence - 1.0,
        ])
    }

    /// True if both errors are within their goals.
    pub fn is_near(&self) -> bool {
        self.errors()
            .is_some_and(|[rate, stay]| rate.abs() <= RATE_GOAL && stay.abs() <= RESIDENCE_GOAL)
    }

    /// True if the rate grew, fell or stayed as predicted.
    pub fn has_direction(&self) -> bool {
        let direction = |change: f64| match change {
            _ if change > NO_CHANGE => 1,
            _ if change < -NO_CHANGE => -1,
            _ => 0,
        };
        self.predicted.as_ref().is_ok_and(|p| {
            let really = direction(self.measured[1].0 / self.measured[0].0 - 1.0);
            let said = direction(p.rate.after / p.rate.before - 1.0);
            // A small change may be predicted as none.
            really == said || really * said == 0 && self.is_near()
        })
    }
}

fn name(before: &Point, after: &Point) -> String {
    let mut change = Vec::new();
    let mut part = |what: &str, a: String, b: String| {
        if a != b {
            change.push(format!("{what} {a} to {b}"));
        }
    };
    let ms = |ms: f64| format!("{ms} ms");
    part(
        "threads",
        before.threads.to_string(),
        after.threads.to_string(),
    );
    part(
        "clients",
        before.clients.to_string(),
        after.clients.to_string(),
    );
    part("disk", ms(before.disk_ms), ms(after.disk_ms));
    if let (Some(a), Some(b)) = (before.log_ms, after.log_ms) {
        part("log", ms(a), ms(b));
    }
    part(
        "CPUs",
        before.cpus.count().to_string(),
        after.cpus.count().to_string(),
    );
    part("size", before.size.to_string(), after.size.to_string());
    format!(
        "{}, {}, {} clients, {} threads | {}",
        before.fs,
        before.load.words(),
        before.clients,
        before.threads,
        change.join(", ")
    )
}

/// Requests per second, and their mean time in the server.
fn measured(w: &Window) -> (f64, f64) {
    let all = w.delta.histograms(&family::RPC_DURATION);
    let (n, sum) = all.fold((0.0, 0.0), |(n, sum), (_, h)| {
        (n + h.count() as f64, sum + h.sum)
    });
    (n / w.length.as_secs_f64(), sum / f64::max(n, 1.0))
}

/// Table of all verdicts in Markdown.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut out = String::from(
        "| server | change | requests/s before | predicted | measured | error | mean ms before | predicted | measured | error |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for v in verdicts {
        let [(rate, stay), (rate_after, stay_after)] = v.measured;
        let ms = |s: f64| format!("{:.2}", s * 1e3);
        let [said, error, said_ms, error_ms] = match (&v.predicted, v.errors()) {
            (Ok(p), Some([a, b])) => [
                format!(
                    "{:.0} ({:.0} .. {:.0})",
                    p.rate.after, p.rate.low, p.rate.high
                ),
                format!("{:+.0} %", a * 100.0),
                ms(p.residence.after),
                format!("{:+.0} %", b * 100.0),
            ],
            _ => ["refused", "-", "-", "-"].map(str::to_owned),
        };
        let _ = writeln!(
            out,
            "| {} | {rate:.0} | {said} | {rate_after:.0} | {error} | {} | {said_ms} | {} | {error_ms} |",
            v.name,
            ms(stay),
            ms(stay_after)
        );
    }
    let near = verdicts.iter().filter(|v| v.is_near()).count();
    let direction = verdicts.iter().filter(|v| v.has_direction()).count();
    let refused = verdicts.iter().filter(|v| v.predicted.is_err()).count();
    let _ = writeln!(
        out,
        "\nOf {} pairs, {near} are within 20 % of the rate and 25 % of the mean. The direction is right in {direction}. The model refused {refused}.",
        verdicts.len()
    );
    out
}

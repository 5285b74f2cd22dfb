//! One rule a kind: what it explains, whether that is a finding, and what there is to say about it.

mod habits;
mod inside;
mod outside;

use crate::attribution::Charge;
use crate::breakdown::{Account, part, sum};
use nfscope_model::Info;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// What a rule comes to.
#[derive(Debug)]
pub struct Judged {
    pub kind: Kind,
    /// Part of residence; `None` where this host cannot tell.
    pub share: Option<f64>,
    /// Whether that is worth a finding if the share is large enough.
    pub holds: bool,
    /// The most that it can be.
    pub worst: Severity,
    pub summary: String,
    pub evidence: Vec<Evidence>,
    pub advice: Vec<String>,
    /// Why it is not a finding where it is none.
    pub otherwise: String,
}

/// What every rule sees.
pub struct Case<'a> {
    pub a: &'a Account,
    pub c: &'a Charge,
}

impl Case<'_> {
    /// The part of residence that so many seconds are.
    pub fn share(&self, seconds: f64) -> f64 {
        part(seconds, self.a.residence)
    }

    /// The part of residence that so many seconds of operations stand for, of what nothing slow explains.
    pub fn share_of_rest(&self, seconds: f64) -> f64 {
        let rest = (self.a.residence - self.c.all()).max(0.0);
        let whole = sum(self.a.ops.iter().map(|o| self.c.net(o)));
        self.share(rest * part(seconds, whole))
    }
}

/// Every kind once.
pub fn all(case: &Case) -> Vec<Judged> {
    vec![
        outside::threads(case),
        inside::log(case),
        inside::disk(case),
        outside::processors(case),
        inside::lock(case),
        outside::reply(case),
        habits::chatty(case),
        habits::small_sync(case),
    ]
}

/// A number with its sentence.
fn evidence(info: &Info, value: f64, limit: Option<f64>, text: String) -> Evidence {
    Evidence {
        text,
        metric: info.name.to_owned(),
        value,
        limit,
    }
}

/// A part of a whole in a sentence.
fn percent(part: f64) -> String {
    match part * 100.0 {
        p if p > 0.0 && p < 0.95 => "less than 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// Why nothing can be said where operations are not split into phases.
const NO_PHASES: &str = "what operations wait for is not measured here; `nfscope check` says why";

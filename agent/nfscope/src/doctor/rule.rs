//! A rule: a name, a reason, a source, and a function that looks.

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, which stands in front of what it says.
    pub name: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where it comes from: a standard, a page of a manual, documentation or code of the kernel.
    pub source: &'static str,
    /// Answers about a host: at least one, unless the rule has no object there.
    pub look: fn(&Host) -> Vec<Answer>,
}

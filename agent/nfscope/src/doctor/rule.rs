//! Rule: a name, a reason, a source, and a function that examines a host.

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;

/// Rule about the configuration of a host.
#[derive(Debug)]
pub struct Rule {
    /// Name, printed before each answer.
    pub name: &'static str,
    /// Reason why the rule matters.
    pub why: &'static str,
    /// Standard, manual page, documentation or kernel source that the rule is based on.
    pub source: &'static str,
    /// Examines a host. Returns at least one answer, unless the host has no object of the rule.
    pub look: fn(&Host) -> Vec<Answer>,
}

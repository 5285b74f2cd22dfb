//! Findings as text for a terminal.

use crate::doctor::answer::{Finding, State};
use nfscope_text::wrap::wrap;

/// Columns of a line; a longer word may exceed it.
const WIDTH: usize = 110;
/// Width of the column with the rule's name.
const RULE: usize = 14;

fn word(state: State) -> (&'static str, u8) {
    match state {
        State::Change => ("CHANGE  ", 31),
        State::Consider => ("CONSIDER", 33),
        State::Unknown => ("?       ", 36),
        State::Good => ("ok      ", 32),
    }
}

/// Text of the findings, in their order, each with reason and fix.
pub fn render(host: &str, findings: &[Finding], color: bool) -> String {
    let count = |state| findings.iter().filter(|f| f.state == state).count();
    let mut out = format!(
        "{host}: {} to change, {} to consider, {} not known, {} good\n",
        count(State::Change),
        count(State::Consider),
        count(State::Unknown),
        count(State::Good),
    );
    let mut before = None;
    for (n, f) in findings.iter().enumerate() {
        if before != Some(f.state) {
            out.push('\n');
            before = Some(f.state);
        }
        let (word, code) = word(f.state);
        let mut lines = String::new();
        let lead = format!("{word} {:RULE$} ", f.rule);
        wrap(&mut lines, WIDTH, &lead, &f.says);
        match (color, lines.strip_prefix(word)) {
            (true, Some(rest)) => out += &format!("\x1b[{code}m{word}\x1b[0m{rest}"),
            _ => out += &lines,
        }
        let lead = |name: &str| format!("{:w$}{name:8}", "", w = word.len() + 1);
        if matches!(f.state, State::Change | State::Consider) {
            wrap(&mut out, WIDTH, &lead("why:"), f.why);
        }
        // Advice that successive unknown findings share is printed once, after the last of them.
        let again = findings.get(n + 1).is_some_and(|next| next.how == f.how);
        let shared = f.state == State::Unknown && again;
        if !f.how.is_empty() && !shared {
            wrap(&mut out, WIDTH, &lead("how:"), &f.how);
        }
        if matches!(f.state, State::Change | State::Consider) {
            wrap(&mut out, WIDTH, &lead("source:"), f.source);
        }
    }
    out += "\nConfiguration alone was read. Where time goes under load: `nfscope diagnose`\n";
    out
}

//! Options of exports.

use crate::doctor::answer::Answer;
use crate::doctor::host::{Host, Missing};
use crate::doctor::rule::Rule;
use nfscope_source::etab;
use nfscope_text::units::many;

/// Most exports that an answer names.
const MOST_NAMED: usize = 5;

/// Exports with `async`, which acknowledge writes before they are durable.
pub const ASYNC: Rule = Rule {
    name: "async",
    why: "Writes are acknowledged before they are durable. What clients believe to be safe is lost when the server stops.",
    source: "exports(5), async; RFC 1813, section 3.3.7",
    look: |host| {
        let of = |options: &[&str]| options.contains(&"rw") && options.contains(&"async");
        with(
            host,
            of,
            "sync for everything that clients may write to",
            Answer::change,
            "async, and clients may write",
            "export it with sync, and run `exportfs -ra`",
        )
    },
};

/// Exports with `subtree_check`.
pub const SUBTREE: Rule = Rule {
    name: "subtree check",
    why: "A file that is renamed while a client has it open can become inaccessible, and each request looks up its directories.",
    source: "exports(5), no_subtree_check",
    look: |host| {
        let of = |options: &[&str]| options.contains(&"subtree_check");
        with(
            host,
            of,
            "no export has subtree_check",
            Answer::consider,
            "subtree_check",
            "export it with no_subtree_check, best a whole file system, and run `exportfs -ra`",
        )
    },
};

fn with(
    host: &Host,
    of: fn(&[&str]) -> bool,
    none: &str,
    answer: fn(String, String) -> Answer,
    has: &str,
    how: &str,
) -> Vec<Answer> {
    let text = match host.etab() {
        Ok(text) => text,
        Err(Missing::Absent(path)) => {
            return vec![Answer::unknown(
                format!("no exports: {path} is not there"),
                "run `exportfs -ra` where there should be exports",
            )];
        }
        Err(e) => return vec![e.answer()],
    };
    let all: Vec<_> = etab::lines(&text).collect();
    let found: Vec<_> = all.iter().filter(|l| of(&l.options)).collect();
    if all.is_empty() {
        return vec![Answer::unknown("nothing is exported", "see exports(5)")];
    }
    if found.is_empty() {
        return vec![Answer::good(format!(
            "{none} ({})",
            many(all.len() as f64, "line") + " of the table of exports"
        ))];
    }
    let named = found.iter().take(MOST_NAMED);
    let mut named: Vec<_> = named
        .map(|l| format!("{} to {}", l.path, l.client))
        .collect();
    if found.len() > MOST_NAMED {
        named.push(format!("{} more", found.len() - MOST_NAMED));
    }
    vec![answer(
        format!("{}: {has}", named.join(", ")),
        how.to_owned(),
    )]
}

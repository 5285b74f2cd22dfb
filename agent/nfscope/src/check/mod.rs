//! `nfscope check`: report of this host or of an agent, as text, as JSON, and as an exit code.

pub mod summary;

use anyhow::Context;
use nfscope_agent_client::http;
use nfscope_model::host_report::{Exported, Fact, IllumosReport, Report, Unseen, Verdict};
use nfscope_model::status::group;
use nfscope_model::{ProbeState, ProbeStatus};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// Detailed text for a terminal: each fact, export and program.
pub fn render_all(report: &Report, color: bool) -> String {
    let mut out = String::new();
    let widths = report.facts.iter().map(|f| f.name.chars().count());
    let left = widths.max().unwrap_or(0);
    if !report.facts.is_empty() {
        out.push_str("Host\n");
    }
    for f in &report.facts {
        let mark = colored_mark(if f.ok { Mark::Good } else { Mark::Bad }, color);
        let _ = writeln!(out, "  {mark} {:left$}  {}", f.name, f.value);
        fix(&mut out, &f.fix);
    }
    exports(&mut out, &report.exports, color);
    let column = |text: fn(&ProbeStatus) -> &str| {
        let widths = report.probes.iter().map(|p| text(p).chars().count());
        widths.max().unwrap_or(0)
    };
    let (names, hooks) = (column(|p| &p.program), column(|p| &p.hook));
    let mut probe = "";
    for g in group(report.probes.iter()) {
        let p = g.first();
        if p.probe != probe {
            probe = &p.probe;
            let _ = writeln!(out, "\nProbe {probe}");
        }
        let state = match p.state {
            ProbeState::Attached | ProbeState::Unused => Mark::Good,
            ProbeState::Fallback | ProbeState::Waiting | ProbeState::Detached => Mark::Warn,
            ProbeState::Unsupported => Mark::Bad,
        };
        let mark = colored_mark(state, color);
        for p in g.programs() {
            let _ = writeln!(
                out,
                "  {mark} {:names$}  {:11}  {:hooks$}  {}",
                p.program,
                p.state.as_str(),
                p.hook,
                p.gives
            );
        }
        if !p.reason.is_empty() {
            let _ = writeln!(out, "      why: {}", p.reason);
        }
        fix(&mut out, &p.fix);
    }
    unseen(&mut out, &report.unseen);
    let (state, verdict) = verdict(report.verdict);
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{} {verdict}", colored_mark(state, color));
    out
}

/// Text of a verdict.
pub(super) fn verdict(verdict: Verdict) -> (Mark, &'static str) {
    match verdict {
        Verdict::Full => (Mark::Good, "NFS operations can be timed, with all details"),
        Verdict::Degraded => (
            Mark::Warn,
            "NFS operations can be timed; some probes are missing or use a fallback",
        ),
        Verdict::None => (Mark::Bad, "NFS operations cannot be timed"),
    }
}

fn exports(out: &mut String, exports: &[Exported], color: bool) {
    let widths = exports.iter().map(|e| e.path.chars().count());
    let left = widths.max().unwrap_or(0);
    if !exports.is_empty() {
        out.push_str("\nExported file systems\n");
    }
    for e in exports {
        let mark = colored_mark(if e.ok { Mark::Good } else { Mark::Warn }, color);
        let _ = write!(out, "  {mark} {:left$}  ", e.path);
        let _ = match e.fs.as_str() {
            "" => writeln!(out, "{}", e.measured),
            fs => writeln!(out, "{fs} on {}, log {}: {}", e.volume, e.log, e.measured),
        };
        for w in &e.warnings {
            let _ = writeln!(out, "      why: {w}");
        }
        fix(out, &e.fix);
    }
}

fn unseen(out: &mut String, unseen: &[Unseen]) {
    if !unseen.is_empty() {
        out.push_str("\nNot seen here\n");
    }
    for u in unseen {
        let _ = writeln!(out, "  {}\n      why: {}", u.what, u.why);
    }
}

/// Report of a running agent: its probes, without the facts and exports of its host.
///
/// # Errors
/// When no agent answers at this URL.
pub fn of_agent(url: &str) -> anyhow::Result<Report> {
    #[derive(Deserialize)]
    struct Answer {
        times_operations: bool,
        reason: String,
        probes: Vec<ProbeStatus>,
    }
    let answer: Answer = http::json(url, "/probes")?;
    let whole = (answer.probes.iter())
        .all(|p| matches!(p.state, ProbeState::Attached | ProbeState::Unused));
    Ok(Report {
        verdict: match (answer.times_operations, whole) {
            (true, true) => Verdict::Full,
            (true, false) => Verdict::Degraded,
            (false, _) => Verdict::None,
        },
        facts: vec![Fact {
            name: "agent".to_owned(),
            value: match answer.reason.as_str() {
                "" => format!("{url} times NFS operations"),
                why => format!("{url}: {why}"),
            },
            ok: answer.times_operations,
            fix: String::new(),
        }],
        exports: Vec::new(),
        probes: answer.probes,
        unseen: Vec::new(),
    })
}

/// Report as JSON.
///
/// # Errors
/// When the JSON cannot be made, which no report causes.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report)
}

/// Writes the report of an illumos server, which an admin can send to the developers; returns a sentence about it.
///
/// # Errors
/// When the file cannot be written.
pub fn write_report(mut report: IllumosReport, path: &Path) -> anyhow::Result<String> {
    report.nfscope = format!(
        "{} {}",
        nfscope_api::build_info::VERSION,
        nfscope_api::build_info::REVISION
    );
    let text = serde_json::to_string_pretty(&report)? + "\n";
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let all = report.scripts.len();
    let compile = report.scripts.iter().filter(|s| s.compiles).count();
    Ok(format!(
        "{}: {compile} of {all} scripts compile here\n",
        path.display()
    ))
}

/// Exit code: 0 full, 3 degraded, 1 nothing.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Full => 0,
        Verdict::Degraded => 3,
        Verdict::None => 1,
    }
}

/// Mark of a line, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    None,
    Good,
    Warn,
    Bad,
}

/// Text of a mark, four columns wide. Text and not only colour, for pipes and colour-blind readers.
pub(super) fn mark(m: Mark) -> &'static str {
    match m {
        Mark::None => "-   ",
        Mark::Good => "ok  ",
        Mark::Warn => "part",
        Mark::Bad => "no  ",
    }
}

/// Colours the mark at the beginning of a text.
pub(super) fn colored(m: Mark, text: &str, color: bool) -> String {
    let code = match m {
        Mark::None => return text.to_owned(),
        Mark::Good => 32,
        Mark::Warn => 33,
        Mark::Bad => 31,
    };
    match text.strip_prefix(mark(m)) {
        Some(rest) if color => format!("\x1b[{code}m{}\x1b[0m{rest}", mark(m)),
        _ => text.to_owned(),
    }
}

fn colored_mark(m: Mark, color: bool) -> String {
    colored(m, mark(m), color)
}

fn fix(out: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "      fix: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degraded_host_reads_as_one_page() {
        let report = Report {
            verdict: Verdict::Degraded,
            facts: vec![
                Fact {
                    name: "kernel".into(),
                    value: "6.1.0".into(),
                    ok: true,
                    fix: String::new(),
                },
                Fact {
                    name: "module BTF".into(),
                    value: "none".into(),
                    ok: false,
                    fix: "install it".into(),
                },
            ],
            exports: vec![Exported {
                path: "/srv".into(),
                fs: "xfs".into(),
                volume: "sda1".into(),
                log: "on sdb1".into(),
                separate: Some(true),
                ok: false,
                measured: "log waits".into(),
                warnings: vec!["exported async".into()],
                fix: "export it with sync".into(),
            }],
            probes: vec![ProbeStatus {
                probe: "nfsd".into(),
                program: "dispatch".into(),
                hook: "fentry/nfsd_dispatch".into(),
                gives: "execution time".into(),
                required: true,
                state: ProbeState::Fallback,
                reason: "no fentry".into(),
                fix: "upgrade".into(),
            }],
            unseen: vec![Unseen {
                what: "NFSv2".into(),
                why: "not timed".into(),
            }],
        };
        assert_eq!(
            render_all(&report, false),
            "Host\n  ok   kernel      6.1.0\n  no   module BTF  none\n      fix: install it\n\n\
             Exported file systems\n  part /srv  xfs on sda1, log on sdb1: log waits\n      why: exported async\n      \
             fix: export it with sync\n\n\
             Probe nfsd\n  part dispatch  fallback     fentry/nfsd_dispatch  execution time\n      why: no fentry\n      \
             fix: upgrade\n\nNot seen here\n  NFSv2\n      why: not timed\n\npart NFS operations can be timed; some probes are missing or use a fallback\n"
        );
        assert!(render_all(&report, true).contains("\x1b[33mpart\x1b[0m"));
        let codes = [Verdict::Full, Verdict::Degraded, Verdict::None].map(exit_code);
        assert_eq!(codes, [0, 3, 1]);
    }
}

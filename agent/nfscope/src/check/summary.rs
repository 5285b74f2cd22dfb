//! Summary of `nfscope check` in about ten lines: the topics that are measured, and reasons for those that are not.

use nfscope_model::host_report::{Exported, Report};
use nfscope_model::status::group;
use nfscope_model::{ProbeState, ProbeStatus};
use nfscope_text::wrap::wrap;

use crate::check::{Mark, colored, mark, verdict};

/// Columns of a line; a longer word may exceed it.
const WIDTH: usize = 110;
/// Width of the column with the subject, after the mark.
const SUBJECT: usize = 11;

/// Topic that an admin looks for, in the order of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topic {
    Operations,
    Queue,
    Phases,
    Log,
    Disks,
    Clients,
    State,
    Stuck,
    Mounts,
    Counters,
}

impl Topic {
    const ALL: [Topic; 10] = [
        Topic::Operations,
        Topic::Queue,
        Topic::Phases,
        Topic::Log,
        Topic::Disks,
        Topic::Clients,
        Topic::State,
        Topic::Stuck,
        Topic::Mounts,
        Topic::Counters,
    ];

    fn name(self) -> &'static str {
        match self {
            Topic::Operations => "operations",
            Topic::Queue => "queue",
            Topic::Phases => "phases",
            Topic::Log => "log",
            Topic::Disks => "disks",
            Topic::Clients => "clients",
            Topic::State => "state",
            Topic::Stuck => "stuck",
            Topic::Mounts => "mounts",
            Topic::Counters => "counters",
        }
    }

    /// Measurements of the topic.
    fn gives(self) -> &'static str {
        match self {
            Topic::Operations => {
                "each NFSv3 and NFSv4 operation: count, latency, bytes, errors, client, export"
            }
            Topic::Queue => "the time from the arrival of a request until a thread takes it",
            Topic::Phases => {
                "where the time of an operation goes: CPU, run queue, log, disk, other waits"
            }
            Topic::Log => "waits for journals and intent logs",
            Topic::Disks => "time, queue and bytes of requests to block devices",
            Topic::Clients => "connections of clients, and why they end",
            Topic::State => "delegations, layouts, locks of NFSv3, lease clean-up",
            Topic::Stuck => "requests that hang, with operation, client and file",
            Topic::Mounts => "NFS mounts of this host, as a client",
            Topic::Counters => "coverage, reply cache, CPUs, busy time of block devices",
        }
    }
}

/// Topic of a program. Programs that are not named here belong to the operations, as most of the nfsd probe do.
fn topic(probe: &str, program: &str) -> Topic {
    let among = |names: &[&str]| names.iter().any(|n| program.starts_with(n));
    match probe {
        "sched" => Topic::Phases,
        "jbd2" | "xfs" | "btrfs" | "zfs" => Topic::Log,
        "block" => Topic::Disks,
        "lockd" => Topic::State,
        "client" | "recall" => Topic::Mounts,
        "kstat" => Topic::Counters,
        _ if among(&["nfsd_held", "nfsd_pending"]) => Topic::Stuck,
        _ if among(&["nfsd_arrive", "nfsd_receive", "nfsd_dequeue", "rpc"]) => Topic::Queue,
        _ if among(&["nfsd_deleg", "nfsd_layout", "nfsd_launder"]) => Topic::State,
        _ if among(&[
            "nfsd_transports",
            "nfsd_accept",
            "nfsd_closing",
            "nfsd_detach",
            "nfsd_xprt",
        ]) =>
        {
            Topic::Clients
        }
        // Waits of an operation for a daemon or for another client.
        _ if among(&[
            "nfsd_upcall",
            "nfsd_answer",
            "nfsd_ask",
            "nfsd_track",
            "nfsd_look",
            "nfsd_untrack",
            "nfsd_recall",
        ]) =>
        {
            Topic::Phases
        }
        _ => Topic::Operations,
    }
}

/// Numbered list of reasons with their fixes. Lines refer to a reason by its number.
#[derive(Default)]
struct Reasons(Vec<(String, String)>);

impl Reasons {
    fn number(&mut self, why: &str, fix: &str) -> String {
        // A program that will attach by itself needs no advice.
        let fix = if !why.is_empty() && fix.starts_with("nothing to do") {
            ""
        } else {
            fix
        };
        let same = |(w, f): &(String, String)| w == why && f == fix;
        let at = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push((why.to_owned(), fix.to_owned()));
            self.0.len() - 1
        });
        format!("[{}]", at + 1)
    }
}

/// Summary while it is made.
struct Page {
    out: String,
    reasons: Reasons,
    color: bool,
}

impl Page {
    fn line(&mut self, m: Mark, subject: &str, text: &str) {
        let mut line = String::new();
        wrap(
            &mut line,
            WIDTH,
            &format!("{} {subject:SUBJECT$} ", mark(m)),
            text,
        );
        self.out += &colored(m, &line, self.color);
    }

    fn host(&mut self, report: &Report) {
        // Facts that prevent measurements are shown with their fix. The others shown are those that support asks for.
        let shown = ["kernel", "kernel memory", "agent"];
        let facts = report
            .facts
            .iter()
            .filter(|f| !f.ok || shown.contains(&f.name.as_str()));
        let mut all_good = true;
        let mut parts = Vec::new();
        for f in facts {
            all_good &= f.ok;
            let why = match f.fix.as_str() {
                "" => String::new(),
                fix => format!(" {}", self.reasons.number("", fix)),
            };
            parts.push(format!("{} {}{why}", f.name, f.value));
        }
        if !parts.is_empty() {
            self.line(
                if all_good { Mark::Good } else { Mark::Bad },
                "host",
                &parts.join("; "),
            );
        }
    }

    /// Adds the line of a topic. Its text begins with `gives`, and continues with what some programs do not measure.
    fn programs(&mut self, subject: &str, gives: &str, programs: &[&ProbeStatus]) {
        let measures = programs.iter().any(|p| p.state.measures());
        let lacks_required = programs.iter().any(|p| p.required && !p.state.measures());
        let mut worst = if lacks_required {
            Mark::Bad
        } else {
            Mark::Good
        };
        let waits = match programs.iter().any(|p| p.probe == "nfsd") {
            true => "not measured (waiting for the server)",
            false => "not measured (waiting)",
        };
        let mut text = vec![gives.to_owned()];
        for g in group(programs.iter().copied()) {
            let p = g.first();
            let (m, what) = match p.state {
                ProbeState::Attached => continue,
                ProbeState::Unused if measures => continue,
                ProbeState::Unused => (Mark::Good, "not in use here"),
                ProbeState::Fallback => (Mark::Warn, "by a fallback"),
                ProbeState::Waiting if measures => (Mark::Warn, "later"),
                ProbeState::Waiting => (Mark::Bad, waits),
                ProbeState::Detached if measures => (Mark::Warn, "detached"),
                ProbeState::Detached => (Mark::Bad, "not measured (detached)"),
                ProbeState::Unsupported if measures => (Mark::Warn, "without"),
                ProbeState::Unsupported => (Mark::Bad, "not measured"),
            };
            worst = worst.max(m);
            let why = match (p.reason.as_str(), p.fix.as_str()) {
                ("", "") => String::new(),
                (why, fix) => format!(" {}", self.reasons.number(why, fix)),
            };
            let lacks = match measures && p.state != ProbeState::Fallback {
                true => format!(": {}", distinct(g.programs()).join(", ")),
                false => String::new(),
            };
            let part = format!("{what}{lacks}");
            match (text.iter_mut()).find(|t| t.split(" [").next() == Some(&part)) {
                // Adds another reason to the same part.
                Some(same) if !why.is_empty() && !same.contains(why.trim()) => *same += &why,
                Some(_) => {}
                None => text.push(part + &why),
            }
        }
        self.line(worst, subject, &text.join("; "));
    }

    fn exports(&mut self, exports: &[Exported], logs: &[&ProbeStatus]) {
        let mut rest: Vec<&Exported> = exports.iter().collect();
        while let Some(first) = rest.first().copied() {
            let same = |e: &&Exported| apart_from_path(e) == apart_from_path(first);
            let (these, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(same);
            rest = others;
            let mut paths: Vec<_> = these.iter().take(3).map(|e| e.path.as_str()).collect();
            let more = (these.len() > 3).then(|| format!("{} more", these.len() - 3));
            paths.extend(more.as_deref());
            let mut text = vec![match first.fs.as_str() {
                "" => format!("{}: {}", paths.join(", "), first.measured),
                fs => format!(
                    "{}: {fs} on {}, log {}; {}",
                    paths.join(", "),
                    first.volume,
                    first.log,
                    first.measured
                ),
            }];
            for w in &first.warnings {
                text.push(
                    format!("{w} {}", self.reasons.number("", &first.fix))
                        .trim_end()
                        .to_owned(),
                );
            }
            let probe = if first.fs == "ext4" {
                "jbd2"
            } else {
                &first.fs
            };
            for g in group(logs.iter().copied().filter(|p| p.probe == probe)) {
                let p = g.first();
                if p.state != ProbeState::Attached && !p.reason.is_empty() {
                    let why = self.reasons.number(&p.reason, &p.fix);
                    text.push(format!(
                        "{}: {} {why}",
                        p.state.as_str(),
                        distinct(g.programs()).join(", ")
                    ));
                }
            }
            self.line(
                if first.ok { Mark::Good } else { Mark::Warn },
                "log",
                &text.join("; "),
            );
        }
    }

    fn topics(&mut self, report: &Report) {
        for topic in Topic::ALL {
            let of = |p: &&ProbeStatus| self::topic(&p.probe, &p.program) == topic;
            let programs: Vec<_> = report.probes.iter().filter(of).collect();
            if programs.is_empty() {
                continue;
            }
            if topic != Topic::Log {
                self.programs(topic.name(), topic.gives(), &programs);
            } else if !report.exports.is_empty() {
                self.exports(&report.exports, &programs);
            } else if programs.iter().all(|p| p.state == ProbeState::Unused) {
                self.line(
                    Mark::Good,
                    "log",
                    "no file system with a log that can be measured is in use here",
                );
            } else {
                for probe in ["jbd2", "xfs", "btrfs", "zfs"] {
                    let own: Vec<_> = programs
                        .iter()
                        .copied()
                        .filter(|p| p.probe == probe)
                        .collect();
                    if own.iter().any(|p| p.state != ProbeState::Unused) {
                        let fs = if probe == "jbd2" { "ext4" } else { probe };
                        self.programs("log", &format!("{}: {}", fs, topic.gives()), &own);
                    }
                }
            }
        }
    }

    fn reasons(&mut self) {
        for (n, (why, fix)) in self.reasons.0.iter().enumerate() {
            let text = match (why.as_str(), fix.as_str()) {
                (why, "") => why.to_owned(),
                ("", fix) => format!("fix: {fix}"),
                (why, fix) => format!("why: {why}; fix: {fix}"),
            };
            wrap(
                &mut self.out,
                WIDTH,
                &format!("{:4} ", format!("[{}]", n + 1)),
                &text,
            );
        }
    }
}

/// Properties that exports on one line share.
fn apart_from_path(e: &Exported) -> impl PartialEq + '_ {
    let words = [&e.fs, &e.volume, &e.log, &e.measured, &e.fix];
    (words, e.ok, &e.warnings)
}

/// Measurements of programs, without duplicates.
fn distinct<'a>(programs: &[&'a ProbeStatus]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for p in programs {
        if !all.contains(&p.gives.as_str()) {
            all.push(&p.gives);
        }
    }
    all
}

/// Summary for a terminal.
pub fn render(report: &Report, color: bool) -> String {
    let mut page = Page {
        out: String::new(),
        reasons: Reasons::default(),
        color,
    };
    let (state, words) = verdict(report.verdict);
    page.out += &colored(state, &format!("{} {words}\n", mark(state)), color);
    page.host(report);
    page.topics(report);
    if !report.unseen.is_empty() {
        let numbered = report
            .unseen
            .iter()
            .map(|u| format!("{} {}", u.what, page.reasons.number(&u.why, "")));
        let text = numbered.collect::<Vec<_>>().join("; ");
        page.line(Mark::None, "not seen", &text);
    }
    if !page.reasons.0.is_empty() {
        page.out.push('\n');
    }
    page.reasons();
    if !report.probes.is_empty() {
        page.out += "\nEach program and fact: `nfscope check --all`\n";
    }
    page.out
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;

//! Contents of each panel and of the plain page.

use crate::spans::{Line, Tone};
use crate::tab::Tab;
use crate::table::{Selection, Table};
use crate::table_columns;
use crate::view::{Change, Export, Found, Pool, View};
use nfscope_model::ProbeState;
use nfscope_model::status::group;
use nfscope_text::units::{bytes, percent, rate, seconds};

/// Pools listed one by one in a line.
const POOLS: usize = 2;

/// A panel's tables, as selected.
pub(super) fn tables(tab: Tab, view: &View, selection: &Selection) -> Vec<Table> {
    let mut all = match tab {
        Tab::Operations => vec![table_columns::operations(view)],
        Tab::Threads => vec![table_columns::pools(view), table_columns::rpc(view)],
        Tab::Disks => vec![table_columns::logs(view), table_columns::disks(view)],
        Tab::Clients => vec![table_columns::clients(view), table_columns::exports(view)],
        // Rows of these panels do not come from a window.
        Tab::By | Tab::Findings | Tab::Slow => Vec::new(),
        Tab::Probes => vec![table_columns::coverage(view), table_columns::lost(view)],
    };
    for table in &mut all {
        table.select(selection);
    }
    all
}

/// Title line: host, window, coverage, rate.
pub(super) fn title(v: &View) -> Line {
    let mut line = Line::of(Tone::Strong, format!("nfscope  {}", v.host));
    let mut say = |text: String| line.push(Tone::Plain, format!("   {text}"));
    say(format!("last {}", seconds(v.window_seconds)));
    say(format!("{} ops/s", rate(v.rate())));
    if let Some(worst) = v.worst_coverage() {
        say(format!("coverage {}", percent(worst)));
    }
    line
}

/// Line about the threads.
pub(super) fn threads(v: &View) -> Line {
    let text = match v.pools.as_slice() {
        // Threads that are not known serve these requests.
        [] if v.rpc.iter().any(|r| r.rate > 0.0) => "nfsd threads: unknown".to_owned(),
        [] => "no nfsd threads".to_owned(),
        [one] => pool(one),
        all => {
            let shown = all.iter().take(POOLS);
            let shown: Vec<_> = shown
                .map(|p| format!("pool {}: {}", p.pool, pool(p)))
                .collect();
            let more = match all.len().saturating_sub(POOLS) {
                0 => String::new(),
                n => format!("   and {n} less busy pools"),
            };
            shown.join("   ") + &more
        }
    };
    Line::of(Tone::Plain, text)
}

fn pool(p: &Pool) -> String {
    let mut text = match p.busy {
        Some(busy) => format!("{busy:.0}/{:.0} threads busy", p.threads),
        None => format!("{:.0} threads", p.threads),
    };
    if let Some(used) = p.busy_ratio {
        text += &format!(", {:.0} % used", 100.0 * used);
    }
    if let Some(wait) = p.queue_p99 {
        text += &format!(", queue p99 {}", seconds(wait));
    }
    text
}

/// The server's own state, in one line; `None` where there is nothing to say.
pub(super) fn server_state(v: &View) -> Option<Line> {
    let state = v.server_state.as_ref()?;
    Some(Line::of(Tone::Alarm, format!("the server is {state}")))
}

/// A change and its predicted gain.
pub(super) fn change(c: &Change) -> String {
    let words = match c.change.as_str() {
        "threads" => "more threads",
        "log" => "a faster log device",
        "disk" => "faster disks",
        "cpus" => "more CPUs",
        other => other,
    };
    format!("{words}: gain {:.1} times or more", c.gain)
}

/// Bytes that READs returned and WRITEs stored, per second; `None` where they are not counted.
pub(super) fn moved(v: &View) -> Option<String> {
    let sum =
        |per_s: fn(&Export) -> Option<f64>| v.exports.iter().filter_map(per_s).reduce(|a, b| a + b);
    let (read, written) = (sum(|e| e.read_per_s)?, sum(|e| e.written_per_s)?);
    Some(format!("read {}, written {}", bytes(read), bytes(written)))
}

/// Findings in one line, which ends with the place of more about them; `None` where there are none.
pub(super) fn findings(v: &View, more: &str) -> Option<Line> {
    let of = |f: &Found| match f.share {
        Some(share) => format!("{} {:.0} %", f.kind, share * 100.0),
        None => format!("{} ?", f.kind),
    };
    let all: Vec<_> = v.findings.iter().map(of).collect();
    let first = v.changes.first().map(|c| format!("; {}", change(c)));
    let text = format!(
        "found: {} of residence{} ({more})",
        all.join(", "),
        first.unwrap_or_default()
    );
    (!all.is_empty()).then(|| Line::of(Tone::Alarm, text))
}

/// Warning about missing measurements; `None` where nothing is missing.
pub(super) fn warning(v: &View) -> Option<Line> {
    let warn = |text| Some(Line::of(Tone::Warning, text));
    if !v.timed {
        let mut required = v
            .probes
            .iter()
            .filter(|p| p.required && !p.reason.is_empty());
        let why = required.next().map_or("see `nfscope check`", |p| &p.reason);
        return warn(format!("NFS operations are not timed: {why}"));
    }
    match v.not_attached.as_slice() {
        [] => None,
        all => {
            let why = &all[0].reason;
            let (n, of) = (all.len(), v.probes.len());
            warn(format!(
                "{n} of {of} probe programs not attached: {} ({why})",
                all[0].program
            ))
        }
    }
}

/// Lines about every probe program: its state, and the reason.
pub(super) fn probes(v: &View) -> Vec<Line> {
    let mut out = vec![Line::of(Tone::Head, "STATE        PROBE   PROGRAMS")];
    for g in group(v.probes.iter()) {
        let first = g.first();
        let tone = match first.state {
            ProbeState::Attached | ProbeState::Unused => Tone::Plain,
            state if state.measures() => Tone::Warning,
            _ => Tone::Alarm,
        };
        let names: Vec<_> = g.programs().iter().map(|p| p.program.as_str()).collect();
        let mut line = Line::of(tone, format!("{:<12} ", first.state.as_str()));
        line.push(
            Tone::Plain,
            format!("{:<7} {}", first.probe, names.join(" ")),
        );
        out.push(line);
        for (what, text) in [("why", &first.reason), ("fix", &first.fix)] {
            if !text.is_empty() {
                out.push(Line::of(Tone::Plain, format!("  {what}: {text}")));
            }
        }
    }
    if v.probes.is_empty() {
        out.push(Line::of(Tone::Dim, "  the agent reports no probes"));
    }
    out
}

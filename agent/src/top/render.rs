//! A window as a table. Pure: literals in, text out.

use super::units::{bytes, rate, seconds};
use crate::model::{Family, Histogram, Sample, Window, family};
use crate::source::times_operations;

/// What the table must fit.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Lines; `usize::MAX` where nothing limits them.
    pub height: usize,
    /// ANSI colours.
    pub color: bool,
}

/// How a line is set off.
#[derive(Clone, Copy, PartialEq)]
enum Weight {
    Title,
    Head,
    Normal,
    Warning,
}

/// The whole screen, each line ended and none wider than it.
pub fn render(window: &Window, host: &str, screen: Screen) -> String {
    let mut top = vec![(Weight::Title, title(window, host))];
    top.push((Weight::Normal, threads(window)));
    if !times_operations(&window.delta.probes) {
        top.push((Weight::Warning, untimed(window)));
    }
    top.push((Weight::Normal, String::new()));
    let ops = operations(window, screen.width);
    let mut below = Vec::new();
    section(&mut below, LOG_HEAD, logs(window));
    section(&mut below, BLOCK_HEAD, blocks(window));

    // Operations come first: what is below gets what they leave, but at least its busiest rows.
    let room = screen.height.saturating_sub(top.len() + 2).max(1);
    let below_room = room
        .saturating_sub(ops.len())
        .max(room / 3)
        .min(below.len());
    let ops_room = room - below_room.min(room);
    below.truncate(below_room);
    // No heading without a row under it.
    while below
        .last()
        .is_some_and(|(weight, text)| *weight == Weight::Head || text.is_empty())
    {
        below.pop();
    }
    let mut lines = top;
    lines.push((Weight::Head, OP_HEAD.to_owned()));
    let shown = if ops.len() > ops_room {
        ops_room.saturating_sub(1)
    } else {
        ops.len()
    };
    let hidden = ops.len() - shown;
    if ops.is_empty() {
        lines.push((
            Weight::Normal,
            "  no NFS operation in this window".to_owned(),
        ));
    }
    lines.extend(ops.into_iter().take(shown));
    if hidden > 0 {
        lines.push((Weight::Normal, format!("  and {hidden} more")));
    }
    lines.extend(below);
    lines.truncate(screen.height);
    lines
        .into_iter()
        .map(|(weight, text)| paint(weight, &cut(&text, screen.width), screen.color) + "\n")
        .collect()
}

const OP_HEAD: &str = "VER  OPERATION             OPS/S        P50        P99     ERR/S   SHARE";
const LOG_HEAD: &str = "LOG              WAITS/S        P50        P99   WRITES/S  WRITE P99";
const BLOCK_HEAD: &str = "DISK               REQ/S  QUEUE P99  DEVICE P50  DEVICE P99      BYTES";

fn title(w: &Window, host: &str) -> String {
    let mut out = format!("nfscope  {host}   last {}", seconds(w.length.as_secs_f64()));
    if let Some(worst) = gauges(w, &family::COVERAGE)
        .map(|(_, v)| v)
        .reduce(off_by_more)
    {
        out += &format!("   coverage {:.1} %", worst * 100.0);
    }
    out
}

/// Of two coverages the one further from 1, above or below.
fn off_by_more(a: f64, b: f64) -> f64 {
    if (a - 1.0).abs() >= (b - 1.0).abs() {
        a
    } else {
        b
    }
}

/// Pools shown one by one; more of them would not fit a line.
const POOLS: usize = 2;

fn threads(w: &Window) -> String {
    let (pools, running): (Vec<_>, Vec<_>) = gauges(w, &family::THREADS).unzip();
    if pools.is_empty() {
        return "no nfsd thread known".to_owned();
    }
    let one = |pool: &str, running: f64| {
        let busy = w.delta.value(&family::THREADS_BUSY, [pool]);
        let mut text = match busy {
            Some(busy) => format!("{busy:.0}/{running:.0} threads busy"),
            None => format!("{running:.0} threads"),
        };
        let used = w
            .delta
            .value(&family::THREAD_BUSY, [pool])
            .filter(|_| running > 0.0);
        if let Some(used) = used {
            text += &format!(", {:.0} % used", 100.0 * used / running / length(w));
        }
        if let Some(q) = w
            .delta
            .hist(&family::RPC_QUEUE, [pool])
            .and_then(|h| h.quantile(0.99))
        {
            text += &format!(", queue p99 {}", seconds(q));
        }
        text
    };
    if pools.len() == 1 {
        return one(pools[0], running[0]);
    }
    let mut all: Vec<_> = pools.iter().zip(&running).collect();
    let used = |p: &str| w.delta.value(&family::THREAD_BUSY, [p]).unwrap_or(0.0);
    all.sort_by(|a, b| used(b.0).total_cmp(&used(a.0)));
    let shown: Vec<_> = all
        .iter()
        .take(POOLS)
        .map(|(p, n)| format!("pool {p}: {}", one(p, **n)))
        .collect();
    let more = match pools.len() - shown.len() {
        0 => String::new(),
        n => format!("   and {n} pools less busy"),
    };
    shown.join("   ") + &more
}

fn untimed(w: &Window) -> String {
    let why = w
        .delta
        .probes
        .iter()
        .find(|p| p.required && !p.reason.is_empty())
        .map_or("see `nfscope check`", |p| &p.reason);
    format!("NFS operations are not timed: {why}")
}

fn operations(w: &Window, width: usize) -> Vec<(Weight, String)> {
    let all = histograms(w, &family::OP_DURATION);
    let total: f64 = all.iter().map(|(_, h)| h.sum).sum();
    all.into_iter()
        .map(|([version, op], h)| {
            let errors: f64 = w
                .delta
                .series(&family::OP_ERRORS.info)
                .iter()
                .filter(|s| s.labels[0] == version && s.labels[1] == op)
                .map(|s| number(&s.sample))
                .sum();
            let share = if total > 0.0 { h.sum / total } else { 0.0 };
            let text = format!(
                "{version:<4} {op:<18} {:>9} {:>10} {:>10} {:>9} {:>5.1} %",
                rate(h.count() as f64 / length(w)),
                quantile(h, 0.5),
                quantile(h, 0.99),
                rate(errors / length(w)),
                share * 100.0,
            );
            let room = width.saturating_sub(text.chars().count() + 2).min(40);
            let bar = "█".repeat((share * room as f64).round() as usize);
            (
                Weight::Normal,
                format!("{text}  {bar}").trim_end().to_owned(),
            )
        })
        .collect()
}

fn logs(w: &Window) -> Vec<String> {
    let commits = histograms(w, &family::LOG_COMMIT);
    let mut rows = histograms(w, &family::LOG_WAIT);
    // A log that writes while nobody waits is worth its line as well.
    let none = Histogram::new(crate::model::Scheme::TIME);
    for (labels, _) in &commits {
        if !rows.iter().any(|(l, _)| l == labels) {
            rows.push((*labels, &none));
        }
    }
    rows.into_iter()
        .map(|(labels, waits)| {
            let commit = commits.iter().find(|(l, _)| *l == labels).map(|(_, h)| *h);
            format!(
                "{:<14} {:>9} {:>10} {:>10} {:>10} {:>10}",
                cut(&labels.join(" "), 14),
                rate(waits.count() as f64 / length(w)),
                quantile(waits, 0.5),
                quantile(waits, 0.99),
                commit.map_or("-".into(), |h| rate(h.count() as f64 / length(w))),
                commit.map_or("-".into(), |h| quantile(h, 0.99)),
            )
        })
        .collect()
}

fn blocks(w: &Window) -> Vec<String> {
    histograms(w, &family::BLOCK_DEVICE)
        .into_iter()
        .map(|([device, op], h)| {
            let queue = w.delta.hist(&family::BLOCK_QUEUE, [device, op]);
            let size = w
                .delta
                .value(&family::BLOCK_BYTES, [device, op])
                .filter(|b| *b > 0.0);
            format!(
                "{:<14} {:>9} {:>10} {:>11} {:>11} {:>10}",
                cut(&format!("{device} {op}"), 14),
                rate(h.count() as f64 / length(w)),
                queue.map_or("-".into(), |q| quantile(q, 0.99)),
                quantile(h, 0.5),
                quantile(h, 0.99),
                size.map_or("-".into(), |b| bytes(b / length(w))),
            )
        })
        .collect()
}

fn section(lines: &mut Vec<(Weight, String)>, head: &str, rows: Vec<String>) {
    if !rows.is_empty() {
        lines.push((Weight::Normal, String::new()));
        lines.push((Weight::Head, head.to_owned()));
        lines.extend(rows.into_iter().map(|r| (Weight::Normal, r)));
    }
}

/// The non-empty histograms of a family, the most time first.
fn histograms<'a, const N: usize>(
    w: &'a Window,
    f: &Family<N>,
) -> Vec<([&'a str; N], &'a Histogram)> {
    let mut all: Vec<_> = w
        .delta
        .series(&f.info)
        .iter()
        .filter_map(|s| match &s.sample {
            Sample::Histogram(h) if h.count() > 0 => {
                Some((std::array::from_fn(|i| s.labels[i].as_str()), h))
            }
            _ => None,
        })
        .collect();
    all.sort_by(|a, b| b.1.sum.total_cmp(&a.1.sum).then_with(|| a.0.cmp(&b.0)));
    all
}

/// First label and value of a family's series.
fn gauges<'a>(w: &'a Window, f: &Family<1>) -> impl Iterator<Item = (&'a str, f64)> {
    w.delta
        .series(&f.info)
        .iter()
        .map(|s| (s.labels[0].as_str(), number(&s.sample)))
}

fn number(sample: &Sample) -> f64 {
    match sample {
        Sample::Counter(v) | Sample::Gauge(v) => *v,
        Sample::Histogram(h) => h.sum,
    }
}

fn quantile(h: &Histogram, q: f64) -> String {
    h.quantile(q).map_or("-".to_owned(), seconds)
}

/// Seconds of the window, never zero.
fn length(w: &Window) -> f64 {
    w.length.as_secs_f64().max(1e-9)
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        out.push('…');
    }
    out
}

fn paint(weight: Weight, text: &str, color: bool) -> String {
    let code = match weight {
        _ if !color => return text.to_owned(),
        Weight::Normal => return text.to_owned(),
        Weight::Title => "1",
        Weight::Head => "1;36",
        Weight::Warning => "1;33",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

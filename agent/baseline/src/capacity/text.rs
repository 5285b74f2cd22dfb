//! Capacity as text.

use crate::capacity::utilization::{Capacity, FAR, Resource, far, is_far};
use crate::recording::Metadata;
use nfscope_text::console::{one_line, plain};
use nfscope_text::units::{rate, seconds};
use nfscope_text::wrap::wrap;
use std::fmt::Write;

const WIDTH: usize = 80;

/// Text of `nfscope capacity`.
pub fn render(c: &Capacity, metadata: &Metadata) -> String {
    let mut out = format!(
        "{} on {}: {} requests per second, {} each, {:.1} in the server on average\n\n",
        metadata.name,
        one_line(&metadata.host),
        rate(c.rate),
        seconds(c.residence),
        c.concurrency
    );
    let _ = writeln!(
        out,
        "{:<28} {:>11} {:>15} {:>7} {:>14}",
        "RESOURCE", "UTILIZATION", "95 % CI", "PEAK", "MAX RATE"
    );
    for r in &c.resources {
        let interval = r.interval.map_or("-".to_owned(), |[low, high]| {
            format!("{:.1} .. {:.1}", low * 100.0, high * 100.0)
        });
        let _ = writeln!(
            out,
            "{:<28} {:>9.1} % {interval:>15} {:>5.1} % {:>12}/s{}{}",
            name(c, r),
            r.utilization * 100.0,
            r.peak * 100.0,
            range([r.least(), r.max_rate]),
            if is_far(r.max_rate, c.rate) { " !" } else { "" },
            if r.note.is_some() { " *" } else { "" }
        );
    }
    if c.resources.iter().any(|r| is_far(r.max_rate, c.rate)) {
        let _ = writeln!(
            out,
            "! extrapolated: more than {FAR:.0} times the observed rate"
        );
    }
    if c.resources.iter().any(|r| r.note.is_some()) {
        out.push_str("* may serve several requests at once: the maximum rate may be higher\n");
    }
    out.push('\n');
    wrap(&mut out, WIDTH, "", &headline(c));
    for caveat in &c.caveats {
        wrap(&mut out, WIDTH, "caveat: ", caveat);
    }
    out.push_str("\nAssumptions:\n");
    for a in &c.assumptions {
        wrap(&mut out, WIDTH, "- ", a);
    }
    plain(&out)
}

fn name(c: &Capacity, r: &Resource) -> String {
    match r.name.as_str() {
        "threads" => format!("threads ({})", c.threads),
        name => one_line(name),
    }
}

/// Text of a rate, or of both its ends.
pub(super) fn range([least, most]: [f64; 2]) -> String {
    match least == most {
        true => rate(most),
        false => format!("{} .. {}", rate(least), rate(most)),
    }
}

fn headline(c: &Capacity) -> String {
    let Some(first) = c.first() else {
        return "No resource with a hard limit was measured.".into();
    };
    let far = far(first.max_rate, c.rate);
    let mut text = match first.max_rate_at_least {
        None => format!(
            "First to saturate: {}, at about {} requests per second, {:.1} times the observed rate{far}. Above about {} per second{} \
             ({:.0} % of that) waiting times grow faster than the load.",
            name(c, first),
            rate(first.max_rate),
            first.max_rate / c.rate,
            rate(first.knee_rate),
            first
                .knee_interval
                .map_or_else(String::new, |[low, high]| format!(
                    ", {} to {}",
                    rate(low),
                    rate(high)
                )),
            first.knee_rate / first.max_rate * 100.0
        ),
        Some(least) => format!(
            "First to saturate: {}, at {} to {} requests per second, {:.1} to {:.1} times the observed rate{far}: the lower end if a commit \
             serves no more than {}, as now, the upper end if it serves all who wait. This recording does not tell which. Above {:.0} % \
             of that waiting times grow faster than the load.",
            name(c, first),
            rate(least),
            rate(first.max_rate),
            least / c.rate,
            first.max_rate / c.rate,
            first.commits_serve(),
            first.knee_rate / first.max_rate * 100.0
        ),
    };
    if c.rate >= first.knee_rate {
        let _ = write!(text, " The server is already above that.");
    }
    for earlier in c.maybe_earlier() {
        let _ = write!(
            text,
            " The {} saturates earlier, at {} per second, if a commit serves no more than {}, as now.",
            one_line(&earlier.name),
            rate(earlier.least()),
            earlier.commits_serve()
        );
    }
    let soft = (c.resources.iter()).filter(|r| r.note.is_some() && r.max_rate < first.max_rate);
    if let Some(earlier) = soft.min_by(|a, b| a.max_rate.total_cmp(&b.max_rate)) {
        let _ = write!(
            text,
            " The {} would be busy all the time at {} per second, but may serve more than that.",
            one_line(&earlier.name),
            rate(earlier.max_rate)
        );
    }
    text
}

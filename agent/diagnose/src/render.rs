//! A diagnosis as text for a terminal.

use nfscope_model::finding::{Diagnosis, Finding, Severity, Verdict};
use nfscope_text::units::{many, seconds};
use nfscope_text::wrap::wrap;
use std::fmt::Write;

/// Longest line in columns.
const WIDTH: usize = 100;

/// The text that `nfscope diagnose` prints.
pub fn render(d: &Diagnosis, host: &str, color: bool) -> String {
    let mut out = String::new();
    // Requests take some time: none of it is one that was not measured.
    let mean = if d.requests > 0.0 && d.residence_seconds > 0.0 {
        format!(
            ", {} in the server on average",
            seconds(d.residence_seconds / d.requests)
        )
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{host}: {:.0} s, {}{mean}",
        d.window_seconds,
        many(d.requests, "request")
    );
    if let Some(incomplete) = &d.incomplete {
        wrap(&mut out, WIDTH, "  ", &format!("{incomplete}."));
    }
    out.push('\n');
    match d.verdict {
        Verdict::Findings => {}
        Verdict::Healthy if d.reason.is_empty() => out += "Healthy: no bottleneck found.\n",
        Verdict::Healthy => {
            let _ = writeln!(out, "Healthy: {}.", d.reason);
        }
        Verdict::Unknown => {
            let _ = writeln!(out, "No finding, but {}.", d.reason);
        }
    }
    if d.verdict == Verdict::Healthy {
        for sentence in &d.unseen {
            wrap(&mut out, WIDTH, "", &format!("But {sentence}."));
        }
    }
    for (i, f) in d.findings.iter().enumerate() {
        finding(&mut out, i + 1, f, color);
    }
    if !d.warnings.is_empty() {
        out += "\nNot durable:\n";
        for warning in &d.warnings {
            wrap(&mut out, WIDTH, "  - ", warning);
        }
    }
    if !d.outside.is_empty() {
        out += "\nOutside the server:\n";
        for sentence in &d.outside {
            wrap(&mut out, WIDTH, "  - ", sentence);
        }
    }
    if let Some(first) = d.headroom.first() {
        out += "\nUtilization:\n";
        for h in &d.headroom {
            let _ = writeln!(out, "  {}  {}", share(h.utilization), h.resource);
        }
        // A server with too little to do has no load to compare with.
        let is_loaded = d.verdict == Verdict::Healthy && d.reason.is_empty();
        if is_loaded && first.utilization >= 0.01 {
            let _ = writeln!(
                out,
                "  {} would be full first, at about {:.1} times this load if all of its use grows with the load.",
                first.resource,
                1.0 / first.utilization
            );
        }
    }
    if !d.ruled_out.is_empty() {
        out += "\nRuled out:\n";
        for r in &d.ruled_out {
            let (share, why) = match r.share {
                Some(s) => (share(s), r.why.as_str()),
                None => ("    ?".to_owned(), r.why.as_str()),
            };
            wrap(
                &mut out,
                WIDTH,
                &format!("  {share}  {:<22} ", r.kind.as_str()),
                why,
            );
        }
    }
    out
}

/// A part of a whole in five columns: little is not nothing.
fn share(part: f64) -> String {
    match part * 100.0 {
        p if p > 0.0 && p < 0.5 => " <1 %".to_owned(),
        p => format!("{p:>3.0} %"),
    }
}

/// What findings do not name, and why.
pub fn render_not_known(not_known: &[String]) -> String {
    let mut out = String::new();
    if !not_known.is_empty() {
        out += "\nNot known:\n";
        for sentence in not_known {
            wrap(&mut out, WIDTH, "  - ", sentence);
        }
    }
    out
}

fn finding(out: &mut String, number: usize, f: &Finding, color: bool) {
    let (word, code) = match f.severity {
        Severity::Critical => ("CRITICAL", "31;1"),
        Severity::Warning => ("WARNING", "33;1"),
    };
    let word = if color {
        format!("\x1b[{code}m{word}\x1b[0m")
    } else {
        word.to_owned()
    };
    if number > 1 {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{number}. {word}  {} ({}, {:.0} %)",
        f.kind.title(),
        f.kind.as_str(),
        f.share * 100.0
    );
    wrap(out, WIDTH, "   ", &format!("{}.", f.summary));
    out.push_str("   Evidence:\n");
    for e in &f.evidence {
        wrap(out, WIDTH, "   - ", &e.text);
    }
    out.push_str("   Recommended actions:\n");
    for a in &f.advice {
        wrap(out, WIDTH, "   - ", a);
    }
}

//! Capacity for people.

use crate::capacity::{Capacity, KNEE, Resource};
use crate::recording::About;
use nfscope_text::units::{rate, seconds};
use nfscope_text::wrap::wrap;
use std::fmt::Write;

const WIDTH: usize = 80;

/// As it is printed.
pub fn render(c: &Capacity, about: &About) -> String {
    let mut out = format!(
        "{} on {}: {} requests a second, {} each, {:.1} in the server at a time\n\n",
        about.name,
        about.host,
        rate(c.rate),
        seconds(c.residence),
        c.inside
    );
    let _ = writeln!(
        out,
        "{:<28} {:>7} {:>15} {:>7} {:>12}",
        "RESOURCE", "IN USE", "95 % CI", "PEAK", "BOUND"
    );
    for r in &c.resources {
        let interval = r.interval.map_or("-".to_owned(), |[low, high]| {
            format!("{:.1} .. {:.1}", low * 100.0, high * 100.0)
        });
        let _ = writeln!(
            out,
            "{:<28} {:>5.1} % {interval:>15} {:>5.1} % {:>10}/s{}",
            name(c, r),
            r.used * 100.0,
            r.peak * 100.0,
            rate(r.bound),
            if r.note.is_some() { " *" } else { "" }
        );
    }
    if c.resources.iter().any(|r| r.note.is_some()) {
        out.push_str("* may serve several at once, and then do more\n");
    }
    out.push('\n');
    wrap(&mut out, WIDTH, "", &answer(c));
    for doubt in &c.doubts {
        wrap(&mut out, WIDTH, "warning: ", doubt);
    }
    out.push_str("\nThis takes for granted that\n");
    for a in &c.assumptions {
        wrap(&mut out, WIDTH, "- ", a);
    }
    out
}

fn name(c: &Capacity, r: &Resource) -> String {
    match r.name.as_str() {
        "threads" => format!("threads ({})", c.threads),
        name => name.to_owned(),
    }
}

fn answer(c: &Capacity) -> String {
    let Some(first) = c.first() else {
        return "Nothing that has a hard limit was measured.".into();
    };
    let mut text = format!(
        "First to saturate: {}, at about {} requests a second, {:.1} times the observed rate. From about {} a second on \
         ({:.0} % of it) waiting grows faster than load.",
        name(c, first),
        rate(first.bound),
        first.bound / c.rate,
        rate(first.bound * KNEE),
        KNEE * 100.0
    );
    if first.used >= KNEE {
        let _ = write!(text, " The server is beyond that already.");
    }
    if let Some(sooner) = c.resources.iter().find(|r| r.bound < first.bound) {
        let _ = write!(
            text,
            " {} would be in use all the time at {} a second, but may have room then.",
            sooner.name,
            rate(sooner.bound)
        );
    }
    text
}

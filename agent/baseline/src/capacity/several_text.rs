//! The capacity from several recordings as text.

use crate::capacity::several::{Law, Limit, Loads};
use crate::capacity::text::range;
use crate::capacity::utilization::{Resource, far};
use nfscope_text::console::plain;
use nfscope_text::table::columns;
use nfscope_text::units::{rate, seconds};
use nfscope_text::wrap::wrap;

const WIDTH: usize = 80;

/// Text of `nfscope capacity` for several recordings.
pub fn render_several(of: &Loads) -> String {
    let per_second = |v: f64| format!("{}/s", rate(v));
    let by_bottleneck = |n: f64| format!("{}/s", range(of.by_bottleneck(n)));
    let by_law = |n: f64| {
        of.scalability
            .map_or("-".to_owned(), |s| per_second(s.rate(n)))
    };
    let heading = [
        "RECORDING",
        "IN SERVER",
        "RESIDENCE",
        "RATE",
        "BOTTLENECK",
        "SCALABILITY",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(of.points.iter().map(|p| {
        [
            p.name.clone(),
            format!("{:.2}", p.load.in_server),
            seconds(p.residence),
            per_second(p.load.rate),
            by_bottleneck(p.load.in_server),
            by_law(p.load.in_server),
        ]
    }));
    rows.extend(of.beyond().map(|n| {
        [
            "-".to_owned(),
            format!("{n:.2}"),
            "-".to_owned(),
            "-".to_owned(),
            by_bottleneck(n),
            by_law(n),
        ]
    }));
    let mut out = String::new();
    for (i, line) in columns(&rows).lines().enumerate() {
        if i == 1 + of.points.len() {
            out += "---- the data end here ----\n";
        }
        out += line;
        out.push('\n');
    }
    out.push('\n');
    wrap(&mut out, WIDTH, "", &headline(of));
    for caveat in &of.caveats {
        wrap(&mut out, WIDTH, "caveat: ", caveat);
    }
    out.push_str("\nAssumptions:\n");
    for a in &of.bottleneck.assumptions {
        wrap(&mut out, WIDTH, "- ", a);
    }
    wrap(
        &mut out,
        WIDTH,
        "- ",
        "the Universal Scalability Law (Gunther 2007) holds beyond the data, too",
    );
    plain(&out)
}

fn headline(of: &Loads) -> String {
    let mut text = match of.bottleneck.first() {
        Some(r) => format!(
            "By the law of the bottleneck the server takes {} requests per second{}: then its {} are saturated.",
            its_limit(r),
            far(r.max_rate, of.bottleneck.rate),
            r.name
        ),
        None => "No resource with a hard limit was measured.".into(),
    };
    for earlier in of.bottleneck.maybe_earlier() {
        text += &format!(
            " Its {} is saturated at {} already if a commit serves no more than {}, as now.",
            earlier.name,
            rate(earlier.least()),
            earlier.commits_serve()
        );
    }
    if let Some(s) = of.scalability {
        text += &match (s.max_rate, s.peak) {
            (None, _) => " The Universal Scalability Law sees no limit in these loads.".into(),
            (Some(max), peak) => {
                let at = peak.map_or_else(String::new, |n| {
                    format!(" with {n:.1} requests in the server, and less with more of them")
                });
                let range = of.without_one.map_or_else(String::new, |[low, high]| {
                    format!(
                        "; {} to {} if any one recording is left out",
                        rate(low),
                        rate(high)
                    )
                });
                format!(
                    " By the Universal Scalability Law it takes about {} requests per second{}{at}{range}.",
                    rate(max),
                    far(max, of.bottleneck.rate)
                )
            }
        };
    }
    if let Some(limit) = &of.limit {
        text += &smaller(of, limit);
    }
    text
}

/// `about 500`, or both ends: `125 to 500`.
fn its_limit(r: &Resource) -> String {
    match r.max_rate_at_least {
        None => format!("about {}", rate(r.max_rate)),
        Some(least) => format!("{} to {}", rate(least), rate(r.max_rate)),
    }
}

/// Sentence about the limit that counts.
fn smaller(of: &Loads, limit: &Limit) -> String {
    let by = match limit.law {
        Law::Bottleneck => "law of the bottleneck",
        Law::Scalability => "Universal Scalability Law",
    };
    let most = rate(limit.most);
    match of.bottleneck.least().filter(|_| !limit.is_known()) {
        None => format!(" The smaller one counts: about {most} requests per second, by the {by}."),
        Some(least) => format!(
            " The smaller one counts: at most {most} requests per second, by the {by}, and {} if a commit of the {} serves no more than \
             {}, as now. The recordings do not tell which.",
            rate(limit.least),
            least.name,
            least.commits_serve()
        ),
    }
}

//! Reports of a comparison: for the terminal, and as a page.

use crate::fixture::comparison::{comparison, empty, long};
use crate::fixture::golden;
use nfscope_baseline::compare::html::page;
use nfscope_baseline::compare::result::Comparison;
use nfscope_baseline::compare::text::render;
use roxmltree::{Document, Node, ParsingOptions};

/// Name with HTML markup, quotes and a terminal escape sequence.
const HOSTILE: &str = "<b>&\"' onload=\u{1b}[2J";

#[test]
fn the_text_of_a_comparison_is_the_golden_file() {
    golden("comparison.txt", &render(&comparison(), false));
    golden("comparison.color.txt", &render(&comparison(), true));
    golden("comparison.empty.txt", &render(&empty(), false));
}

#[test]
fn text_fits_and_nothing_steers_the_terminal() {
    for line in render(&comparison(), false).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for line in render(&hostile(), false).lines() {
        assert!(line.chars().count() <= 120, "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn the_text_of_a_page_is_the_golden_file() {
    golden("comparison.page.txt", &outline(&comparison()));
    golden("comparison.page.empty.txt", &outline(&empty()));
}

#[test]
fn a_page_loads_nothing_and_its_pictures_have_descriptions() {
    for c in [comparison(), empty(), long(), hostile()] {
        let page = page(&c);
        for banned in [
            "http://", "https://", "<script", "NaN", "@import", "src=", "href=",
        ] {
            assert!(!page.contains(banned), "{banned}");
        }
        let page = closed(&page);
        for node in parse(&page).descendants().filter(Node::is_element) {
            for a in node.attributes() {
                assert!(
                    !a.value().contains("inf") && !a.name().starts_with("on"),
                    "{a:?}"
                );
            }
            if node.has_tag_name("svg") && node.attribute("role") == Some("img") {
                let says = |tag| {
                    node.children()
                        .any(|n| n.has_tag_name(tag) && n.text().is_some())
                };
                assert!(says("title") && says("desc"));
            }
        }
    }
}

#[test]
fn names_in_a_page_are_escaped() {
    let page = page(&hostile());
    assert!(!page.contains("<b>&"));
    assert!(page.contains("&lt;b&gt;&amp;&quot;' onload=\u{fffd}[2J"));
    assert!(
        page.contains(r"compare '&lt;b&gt;&amp;&quot;'\'' onload="),
        "as a shell takes it"
    );
}

#[test]
fn a_page_of_a_whole_day_is_below_500_kilobytes() {
    let size = page(&long()).len();
    assert!(size < 500_000, "{size} bytes");
}

#[test]
fn every_attribute_is_finite_for_odd_numbers() {
    let mut c = comparison();
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        1e300,
        f64::MIN_POSITIVE,
    ];
    for (i, curve) in c.curves.iter_mut().enumerate() {
        curve.before = odd.to_vec();
        curve.after.truncate(i);
        curve.edges.truncate(9 * i);
    }
    c.curves[1].edges = odd.to_vec();
    c.bars[0].before = std::array::from_fn(|i| Some(odd[i % odd.len()]));
    c.time_series[0].before = odd.iter().map(|v| (*v, *v)).collect();
    c.time_series[1].after = odd.iter().map(|v| (1.0, *v)).collect();
    let page = page(&c);
    assert!(!page.contains("NaN"));
    let page = closed(&page);
    for a in parse(&page).descendants().flat_map(|n| n.attributes()) {
        assert!(!a.value().contains("inf"), "{a:?}");
    }
}

fn hostile() -> Comparison {
    let mut c = comparison();
    c.headline = HOSTILE.into();
    c.before.metadata.name = HOSTILE.into();
    c.before.recordings = vec![HOSTILE.into()];
    c.after.metadata.host = HOSTILE.repeat(20);
    c.after.metadata.labels = [(HOSTILE.into(), HOSTILE.into())].into();
    c.caveats[0].text = HOSTILE.into();
    c.rows[11].why = Some(HOSTILE.into());
    c.left_out = vec![HOSTILE.into()];
    c.method = vec![HOSTILE.into()];
    c.curves[0].title = HOSTILE.into();
    c.bars[0].title = HOSTILE.into();
    c.time_series[0].title = HOSTILE.into();
    c
}

/// HTML with its only open elements, `<meta>`, closed for an XML parser.
fn closed(page: &str) -> String {
    let mut parts = page.split("<meta");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out += &format!("<meta{}", part.replacen('>', "/>", 1));
    }
    out
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap()
}

/// Text of a page by elements, one per line; for drawings their title and description.
fn outline(c: &Comparison) -> String {
    let page = closed(&page(c)).replace(
        &format!("by nfscope {}", nfscope_api::build_info::VERSION),
        "by nfscope V",
    );
    let doc = parse(&page);
    let mut out = String::new();
    for node in doc.descendants() {
        let name = node.tag_name().name();
        let shown = [
            "title",
            "desc",
            "h1",
            "h2",
            "p",
            "figcaption",
            "tr",
            "li",
            "footer",
        ];
        if shown.contains(&name) {
            let separate = if name == "tr" { " | " } else { "" };
            let parts: Vec<String> = match name {
                "tr" => node.children().map(text_of).collect(),
                _ => vec![text_of(node)],
            };
            out += format!("{name}: {}", parts.join(separate)).trim_end();
            out.push('\n');
        }
    }
    out
}

fn text_of(node: Node) -> String {
    node.descendants()
        .filter(Node::is_text)
        .filter_map(|n| n.text())
        .collect()
}

//! A comparison for the terminal.

use crate::compare::result::{Comparison, Row, Verdict};
use crate::compare::{errors, labels};
use nfscope_stats::Interval;
use nfscope_text::console::one_line;
use nfscope_text::table::widths;
use nfscope_text::units::many;
use nfscope_text::wrap::wrap;
use std::fmt::Write;

/// Width of the text, unless a name or a number is longer.
const WIDTH: usize = 80;
/// Maximum width of one side's name, host and other properties.
const SIDE: usize = 50;

/// Text of `nfscope baseline compare`.
pub fn render(c: &Comparison, colors: bool) -> String {
    let mut out = String::new();
    let (durability, rest) = c.paragraphs();
    if let Some(text) = durability {
        wrap(&mut out, WIDTH, "", &one_line(text));
        out.push('\n');
    }
    wrap(&mut out, WIDTH, "", &one_line(rest));
    if !c.caveats.is_empty() {
        out.push('\n');
    }
    for w in &c.caveats {
        wrap(&mut out, WIDTH, "caveat: ", &one_line(&w.text));
    }
    out.push('\n');
    sides(&mut out, c);
    out.push('\n');
    if c.rows.is_empty() {
        out += "Nothing was compared.\n";
    } else {
        let (shown, hidden) = shown(&c.rows);
        table(&mut out, &shown, colors);
        if shown.iter().any(|r| r.primary) {
            out += labels::FOOTNOTE;
            out.push('\n');
        }
        if hidden > 0 {
            let failed = many(hidden as f64, "more operation");
            let text = format!("failures of {failed} have no verdict of a change: --json has them");
            wrap(&mut out, WIDTH, "", &text);
        }
    }
    if !c.left_out.is_empty() {
        out.push('\n');
        let ops = one_line(&c.left_out.join(", "));
        wrap(
            &mut out,
            WIDTH,
            "not compared: ",
            &format!("{ops}: hardly any time"),
        );
    }
    if !c.next.is_empty() {
        out.push('\n');
    }
    for sentence in &c.next {
        wrap(&mut out, WIDTH, "next: ", &one_line(sentence));
    }
    if let Some(first) = c.method.first() {
        out.push('\n');
        wrap(&mut out, WIDTH, "method: ", &one_line(first));
    }
    out
}

/// Most operations whose failures have rows without a change.
const MAX_FAILING: usize = 4;

/// Rows to print, and the number of operations whose failures are left out. Every change is printed.
fn shown(rows: &[Row]) -> (Vec<Row>, usize) {
    let (mut shown, mut failing, mut hidden) = (Vec::new(), 0, 0);
    for of in rows.chunk_by(|a, b| a.subject == b.subject) {
        let fails = errors::is_of_operation(&of[0].subject);
        failing += usize::from(fails);
        let is_one_more = fails && failing > MAX_FAILING;
        match is_one_more && !of.iter().any(|r| r.verdict.is_change()) {
            true => hidden += 1,
            false => shown.extend_from_slice(of),
        }
    }
    (shown, hidden)
}

fn sides(out: &mut String, c: &Comparison) {
    let rows = [["", "BEFORE", "AFTER"].map(str::to_owned)]
        .into_iter()
        .chain(labels::sides(c));
    let rows: Vec<_> = rows
        .map(|row| row.map(|cell| cut(&one_line(&cell), SIDE)))
        .collect();
    let wide = widths(&rows);
    for [name, before, after] in &rows {
        line(
            out,
            &format!("{name:<0$}  {before:<1$}  {after}", wide[0], wide[1]),
        );
    }
}

/// Quantity, before, after, change, interval, p, verdict, smallest change that would have been found.
type Cells = [String; 8];

fn table(out: &mut String, rows: &[Row], colors: bool) {
    let head = [
        "QUANTITY", "BEFORE", "AFTER", "CHANGE", "95 % CI", "P", "VERDICT", "FINDS",
    ];
    let head = head.map(str::to_owned);
    let all: Vec<_> = rows.iter().map(cells).chain([head.clone()]).collect();
    let wide = widths(&all);
    print(out, &head, &wide, None);
    for (subject, rows) in labels::by_subject(rows) {
        line(out, &one_line(&subject));
        for row in rows {
            let code = match row.verdict {
                Verdict::Better => Some("32"),
                Verdict::Worse => Some("31"),
                Verdict::NoEvidence | Verdict::Small | Verdict::Few | Verdict::NotTested => {
                    Some("2")
                }
                Verdict::More | Verdict::Less | Verdict::NotComparable | Verdict::NotJudged => None,
            };
            print(out, &cells(row), &wide, code.filter(|_| colors));
            if let Some(why) = &row.why {
                wrap(out, WIDTH, "    ", &one_line(why));
            }
        }
    }
}

fn cells(row: &Row) -> Cells {
    let value = |side: &Option<Interval>| {
        side.map_or_else(
            || labels::NONE.to_owned(),
            |e| labels::value(&row.quantity, e.value),
        )
    };
    let none = || labels::NONE.to_owned();
    let (change, interval) = labels::change(row.ratio).unwrap_or_else(|| (none(), None));
    [
        format!("  {}", labels::marked(row)),
        value(&row.before),
        value(&row.after),
        change,
        interval.unwrap_or_else(none),
        labels::probability(row.p),
        labels::verdict(row.verdict).to_owned(),
        labels::finds(row.finds),
    ]
}

/// Prints a row; either its verdict is coloured, or the whole row is dim.
fn print(out: &mut String, cells: &Cells, wide: &[usize; 8], code: Option<&str>) {
    let [quantity, before, after, change, interval, p, verdict, finds] = cells;
    let numbers = format!(
        "{quantity:<0$}  {before:>1$}  {after:>2$}  {change:>3$}  {interval:>4$}  {p:>5$}  ",
        wide[0], wide[1], wide[2], wide[3], wide[4], wide[5]
    );
    let end = match finds.is_empty() {
        true => verdict.clone(),
        // Only rows with this verdict have a smallest change.
        false => format!(
            "{verdict:<0$} {finds:>1$}",
            labels::verdict(Verdict::NoEvidence).len(),
            wide[7]
        ),
    };
    match code {
        None => line(out, &format!("{numbers}{end}")),
        Some("2") => line(out, &format!("\x1b[2m{numbers}{end}\x1b[0m")),
        Some(code) => line(out, &format!("{numbers}\x1b[{code}m{end}\x1b[0m")),
    }
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{}", text.trim_end());
}

/// Beginning of `text`, with `…` for the rest.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

//! The answer of a comparison in plain words, for a reader who does not know what a quantile is.

use crate::compare::explained::PRICE;
use crate::compare::labels;
use crate::compare::result::{Comparison, Quantity, Row, Subject, Verdict};
use crate::durability::Direction;
use crate::workload;
use nfscope_stats::Interval;
use nfscope_text::units::percent;

/// Factor from which on a change is written as a factor, and below it in percent.
const FACTOR: f64 = 1.5;
/// Most other quantities that are named.
const MOST: usize = 4;

/// Row that the first page is about: the primary quantity, or else the mean of the first operation that both sides have.
pub(in crate::compare) fn main_row(c: &Comparison) -> Option<&Row> {
    let both = |r: &&Row| r.before.is_some() && r.after.is_some();
    let is_op = |r: &&Row| matches!(r.subject, Subject::Op { .. } | Subject::Workload { .. });
    let mean = |r: &&Row| r.quantity == Quantity::Mean;
    let rows = || c.rows.iter().filter(both);
    rows()
        .find(|r| r.primary)
        .or_else(|| rows().filter(is_op).find(mean))
        .or_else(|| rows().find(mean))
}

/// Answer in one sentence or a few, the gravest first.
pub(super) fn answer(c: &Comparison) -> Vec<String> {
    let main = main_row(c);
    let mut all = Vec::new();
    let direction = c.durability.as_ref().map(|d| d.direction);
    let is_judged = c.not_judged.is_none() && direction != Some(Direction::Less);
    if let Some(d) = c
        .durability
        .as_ref()
        .filter(|_| direction == Some(Direction::Less))
    {
        // Writes in a cache, which may have a battery, are not counted.
        let is = if d.at_risk[1].is_some() {
            "is"
        } else {
            "may be"
        };
        all.push(format!(
            "The server {is} less safe after the change: writes that it acknowledged can be lost. No difference below counts as a gain."
        ));
    }
    all.extend(c.durability.iter().map(|d| d.text.clone()));
    if let Some(why) = &c.not_judged {
        all.push(
            "Nothing can be concluded: two recordings of an unchanged server may differ by as much."
                .to_owned(),
        );
        all.push(format!("{}.", capital(why)));
        all.extend(c.next.first().map(|next| capital(next)));
    }
    match main {
        None if c.not_judged.is_some() => {}
        None => {
            all.push("Nothing can be concluded: no quantity was measured on both sides.".into())
        }
        Some(row) if !is_judged => {
            all.push(format!(
                "{}. No conclusion is drawn from it.",
                figures(c, row)
            ));
        }
        Some(row) => all.extend(judged(c, row)),
    }
    if is_judged {
        all.extend(others(c, main));
    }
    all
}

/// Sentences about a row with a verdict.
fn judged(c: &Comparison, row: &Row) -> Vec<String> {
    let why = row.why.as_deref();
    match row.verdict {
        Verdict::Better | Verdict::Worse | Verdict::More | Verdict::Less => {
            let price = match why.is_some_and(|w| w.contains(PRICE)) {
                true => "The price of durability: ",
                false => "",
            };
            let change = row.ratio.map(|r| format!(": {}", change(row, &r)));
            let first = format!("{}{}", figures(c, row), change.unwrap_or_default());
            let mut all = vec![match price {
                "" => format!("{first}."),
                price => format!("{price}{}.", uncapital(&first)),
            }];
            if row.may_be_small {
                all.push(format!(
                    "The change may be less than {}, the smallest that was said to matter.",
                    percent(c.min_effect)
                ));
            }
            all
        }
        Verdict::Small => vec![
            format!("{}.", figures(c, row)),
            format!(
                "The difference is too small to matter: less than {}.",
                percent(c.min_effect)
            ),
        ],
        Verdict::NoEvidence => {
            let mut all = vec![
                "No change was found.".to_owned(),
                format!("{}, which may be chance.", figures(c, row)),
            ];
            if row.finds.is_some() {
                all.push(format!(
                    "A rise by {} would have been found in four of five such comparisons.",
                    labels::finds(row.finds)
                ));
            }
            all
        }
        Verdict::Few | Verdict::NotComparable | Verdict::NotTested | Verdict::NotJudged => {
            let why = why.map_or(String::new(), |w| format!(": {w}"));
            vec![
                format!(
                    "Nothing can be concluded of {}{why}.",
                    uncapital(&what(c, row))
                ),
                format!("{}.", figures(c, row)),
            ]
        }
    }
}

/// Sentence about other quantities: names of those that became worse, and the number of those that became better.
fn others(c: &Comparison, main: Option<&Row>) -> Vec<String> {
    let is_other = |r: &&Row| !main.is_some_and(|m| std::ptr::eq(m, *r));
    let of = |v: Verdict| {
        c.rows
            .iter()
            .filter(is_other)
            .filter(move |r| r.verdict == v)
    };
    let worse: Vec<String> = of(Verdict::Worse).map(labels::named).collect();
    let better = of(Verdict::Better).count();
    let mut all = Vec::new();
    match worse.len() {
        0 => {}
        n if n > MOST => all.push(format!(
            "Worse, too: {}, and {} more.",
            worse[..MOST].join(", "),
            n - MOST
        )),
        _ => all.push(format!("Worse, too: {}.", worse.join(", "))),
    }
    if better > 0 {
        all.push(match better {
            1 => "One other quantity is better.".to_owned(),
            n => format!("{n} other quantities are better."),
        });
    }
    all
}

/// `Writing to a file (WRITE 3) took 9.10 ms on average before, and takes 300 µs now`
fn figures(c: &Comparison, row: &Row) -> String {
    let value =
        |side: Option<Interval>| labels::value(&row.quantity, side.map_or(f64::NAN, |i| i.value));
    let (before, after, what) = (value(row.before), value(row.after), what(c, row));
    match &row.quantity {
        Quantity::Mean | Quantity::MeanAtOneMix => {
            format!("{what} took {before} on average before, and takes {after} now")
        }
        Quantity::Quantile { percent } => format!(
            "{what} took at most {before} in {percent} of 100 cases before, and takes at most {after} now"
        ),
        Quantity::Phase { phase } => {
            format!("{what} spent {before} in {phase} before, and spends {after} now")
        }
        Quantity::Rate | Quantity::Share => {
            format!("{what} was {before} before, and is {after} now")
        }
    }
}

/// Words for the quantity, with its name in the protocol.
fn what(c: &Comparison, row: &Row) -> String {
    match &row.subject {
        Subject::Op { version, op } => {
            let name = labels::operation(version, op);
            match verb(op, c.durable_writes) {
                Some(verb) => format!("{verb} ({name})"),
                None => format!("The operation {name}"),
            }
        }
        Subject::Requests { version } => {
            format!("A request over NFS {version}, from its arrival to the reply,")
        }
        Subject::Queue => "The wait of a request for a thread of the server".to_owned(),
        Subject::Log { fs, volume } => format!("A wait for the log of {fs} {volume}"),
        Subject::Workload { job, operation } => {
            format!("For the client, {}", workload::label(job, operation))
        }
        other => labels::subject(other),
    }
}

/// Words for an operation. A WRITE saves durably only if all WRITEs ask for stable storage and the server does not lose acknowledged data.
fn verb(op: &str, durable: bool) -> Option<&'static str> {
    Some(match op {
        "write" if durable => "Saving data durably",
        "write" => "Writing to a file",
        "read" | "read_plus" => "Reading from a file",
        "commit" => "Making written data durable",
        "getattr" => "Asking for the attributes of a file",
        "setattr" => "Changing the attributes of a file",
        "lookup" => "Looking up a name",
        "access" => "Asking for permissions",
        "open" => "Opening a file",
        "close" => "Closing a file",
        "create" => "Creating a file",
        "mkdir" => "Making a directory",
        "remove" | "rmdir" => "Removing a name",
        "rename" => "Renaming a file",
        "readdir" | "readdirplus" => "Listing a directory",
        _ => return None,
    })
}

/// `31 times as fast, at least 30 times with 95 % confidence`
fn change(row: &Row, ratio: &Interval) -> String {
    let is_time = !matches!(row.quantity, Quantity::Rate | Quantity::Share);
    let fell = ratio.value < 1.0;
    let (by, least) = match fell {
        true => (1.0 / ratio.value, 1.0 / ratio.high),
        false => (ratio.value, ratio.low),
    };
    if !by.is_finite() {
        return "by more than can be told".to_owned();
    }
    let confident = |least: String| format!(", at least {least} with 95 % confidence");
    // A number that fell is described in percent, because `2.5 times less` is ambiguous.
    if by >= FACTOR && least > FACTOR && (is_time || !fell) {
        let words = match (is_time, fell) {
            (true, true) => "as fast",
            (true, false) => "as long",
            (false, _) => "as many",
        };
        // The lower end is rounded down, because rounding up would promise more than is known.
        return format!(
            "{} times {words}{}",
            factor(by, f64::round),
            confident(format!("{} times", factor(least, f64::floor)))
        );
    }
    // Part of the time that was saved or added.
    let share = |ratio: f64| if fell { 1.0 - 1.0 / ratio } else { ratio - 1.0 };
    let words = match (is_time, fell) {
        (true, true) => "less time",
        (true, false) => "more time",
        (false, true) => "less",
        (false, false) => "more",
    };
    let least = share(least);
    let end = match least > 0.0005 {
        true => confident(format!("{:.1} %", (least * 1000.0).floor() / 10.0)),
        false => String::new(),
    };
    format!("{} {words}{end}", percent(share(by)))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn uncapital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A factor with one decimal below ten, and without any from there on.
fn factor(v: f64, round: fn(f64) -> f64) -> String {
    match v < 9.95 {
        true => format!("{:.1}", round(v * 10.0) / 10.0),
        false => format!("{:.0}", round(v)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(quantity: Quantity, value: f64, low: f64, high: f64) -> String {
        let row = Row {
            subject: Subject::Queue,
            quantity,
            before: None,
            after: None,
            ratio: None,
            p: None,
            verdict: Verdict::Better,
            primary: true,
            may_be_small: false,
            finds: None,
            stretches: [None; 2],
            components: None,
            why: None,
        };
        change(&row, &Interval { value, low, high })
    }

    /// The lower end is rounded towards no change.
    #[test]
    fn changes_in_words() {
        let time = |value, low, high| told(Quantity::Mean, value, low, high);
        assert_eq!(
            time(1.0 / 31.2, 1.0 / 33.0, 1.0 / 30.9),
            "31 times as fast, at least 30 times with 95 % confidence"
        );
        assert_eq!(
            time(1.0 / 9.92, 1.0 / 10.4, 1.0 / 9.6),
            "9.9 times as fast, at least 9.6 times with 95 % confidence"
        );
        assert_eq!(
            time(1.0 / 9.97, 1.0 / 10.4, 1.0 / 9.6),
            "10 times as fast, at least 9.6 times with 95 % confidence"
        );
        assert_eq!(
            time(2.08, 1.99, 2.2),
            "2.1 times as long, at least 1.9 times with 95 % confidence"
        );
        assert_eq!(
            time(0.88, 0.85, 0.9056),
            "12.0 % less time, at least 9.4 % with 95 % confidence"
        );
        assert_eq!(time(1.05, 0.99, 1.1), "5.0 % more time");
        assert_eq!(
            told(Quantity::Rate, 2.5, 2.0, 3.0),
            "2.5 times as many, at least 2.0 times with 95 % confidence"
        );
        assert_eq!(
            told(Quantity::Rate, 0.4, 0.3, 0.45),
            "60.0 % less, at least 55.0 % with 95 % confidence"
        );
        assert_eq!(
            time(f64::INFINITY, 2.0, f64::INFINITY),
            "by more than can be told"
        );
    }
}

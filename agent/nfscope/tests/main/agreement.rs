//! The interval and the p of a row agree, and "no evidence" names the change that would have been found.

use crate::fixture::recordings::{DISKS, compare_all, runs};
use nfscope_baseline::compare::result::{Comparison, Quantity, Subject, Verdict};
use nfscope_baseline::compare::{Options, text};
use nfscope_baseline::target_metric;

/// Rows whose interval excludes every change that counts as none, although p is above 5 %, or the other way round. For a primary quantity
/// any change counts.
fn contradictions(c: &Comparison) -> Vec<String> {
    let rows = c.rows.iter().filter(|r| {
        let (Some(p), Some(ratio)) = (r.p, r.ratio) else {
            return false;
        };
        let least = if r.primary { 1.0 } else { 1.0 + c.min_effect };
        let leaves_out = ratio.low > least || ratio.high < 1.0 / least;
        leaves_out != (p <= 0.05)
    });
    rows.map(|r| format!("{r:?}")).collect()
}

fn is_mean_of_writes(subject: &Subject, quantity: &Quantity) -> bool {
    matches!(subject, Subject::Op { op, .. } if op == "write") && *quantity == Quantity::Mean
}

/// Ten recordings a side that differ by 2 %, of a server that became slower by 5 %.
#[test]
fn intervals_and_p_values_agree() {
    let (mut found, mut noted, tries) = (0, 0, 8);
    for i in 0..tries {
        let before = runs("before", 20 + i, 10, 0.02, DISKS);
        let after = runs("after", 40 + i, 10, 0.02, 1.05 * DISKS);
        let primary = target_metric::parse("write:mean").unwrap();
        for (min_effect, primary) in [(0.02, None), (0.0, None), (0.0, Some(primary))] {
            let is_first = primary.is_some();
            let options = Options {
                min_effect,
                primary,
                ..Options::default()
            };
            let c = compare_all(&before, &after, &options);
            assert_eq!(contradictions(&c), Vec::<String>::new(), "{min_effect}");
            let is_mean = |r: &&_| {
                let r: &nfscope_baseline::compare::result::Row = r;
                is_mean_of_writes(&r.subject, &r.quantity)
            };
            let mean = c.rows.iter().find(is_mean).unwrap();
            found += usize::from(is_first && mean.verdict == Verdict::Worse);
            noted += c
                .rows
                .iter()
                .filter(|r| {
                    let note = "--min-change 0 tests for any";
                    r.verdict == Verdict::NoEvidence
                        && r.why.as_ref().is_some_and(|w| w.contains(note))
                })
                .count();
        }
    }
    println!(
        "slower by 5 %: found first and without a least change in {found} of {tries}, {noted} rows with a note"
    );
    assert!(found >= 6 && noted > 0, "{found} {noted}");
}

/// Unchanged server: the headline has the smallest change that would have been found.
#[test]
fn no_evidence_names_the_change_that_would_have_been_found() {
    let before = runs("before", 60, 3, 0.03, DISKS);
    let after = runs("after", 61, 3, 0.03, DISKS);
    let c = compare_all(&before, &after, &Options::default());
    let said = "would have been found in four of five such comparisons.";
    assert!(
        c.headline.contains("No evidence of a change") && c.headline.ends_with(said),
        "{}",
        c.headline
    );
    let finds = c.rows.iter().filter(|r| r.verdict == Verdict::NoEvidence);
    assert!(finds.into_iter().any(|r| r.finds.is_some()));
    assert!(text::render(&c, false).contains("FINDS"));
}

//! Ratios of versions by pairs within rounds.

use crate::beside::{Beside, Judged, judge, over_rounds};
use crate::versions::block::{Block, Metric};
use crate::versions::distance::Distance;
use crate::versions::result::{LoadResult, Row, Verdict};
use nfscope_stats::mean_interval::Interval;
use nfscope_stats::{Change, MIN_EFFECT, MIN_PAIRS, paired, paired_rounds};
use std::collections::BTreeMap;

/// Part of the level for the primary quantities of all loads. They show which version is faster; the other quantities show the reason.
pub(super) const PRIMARY: f64 = 0.8;

/// The blocks of one load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadBlocks {
    /// Name of the load.
    pub load: String,
    /// Sentence that defines an operation.
    pub operation: String,
    /// Blocks by round and version, in the order of the versions; `None` if there is none.
    pub rounds: Vec<Vec<Option<Block>>>,
}

impl LoadBlocks {
    /// Quantity of a version in each round.
    fn values(&self, metric: Metric, version: usize) -> impl Iterator<Item = Option<f64>> {
        self.rounds
            .iter()
            .map(move |round| metric.of(round.get(version)?.as_ref()?))
    }

    /// Logarithms of the ratios of a version's quantity to that of the first version, for rounds that have both.
    fn differences(&self, metric: Metric, version: usize) -> Vec<f64> {
        let pairs = self.values(metric, 0).zip(self.values(metric, version));
        pairs
            .filter_map(|(base, other)| Some(other?.ln() - base?.ln()))
            .filter(|d| d.is_finite())
            .collect()
    }

    /// Quantity by which versions are compared first: throughput, or latency if a block is one call.
    fn primary(&self) -> Metric {
        match self.values(Metric::P99, 0).flatten().next() {
            Some(_) => Metric::Throughput,
            None => Metric::Latency,
        }
    }

    /// Half the width of the widest interval of the primary quantity, relative to its ratio, and the fewest independent pairs; `None` with
    /// too few rounds. A version without blocks does not count.
    ///
    /// Pairs are counted as if their order were not random, because a measurement that ends at a narrow interval must notice a disturbance
    /// of one version.
    pub fn widest(&self, versions: usize) -> Option<(f64, f64)> {
        let mut widest: Option<(f64, f64)> = None;
        for version in 1..versions {
            let differences = self.differences(self.primary(), version);
            if differences.is_empty() {
                continue;
            }
            let r = paired_rounds(&differences, MIN_EFFECT)?.ratio;
            let (_, stretches) = paired(&differences, 0.0, MIN_EFFECT)?;
            let width = (r.high - r.low) / 2.0 / r.value;
            let (most, least) = widest.unwrap_or((width, stretches));
            widest = Some((most.max(width), least.min(stretches)));
        }
        widest
    }
}

/// Compares each quantity of each version under each load. Also returns the number of comparisons that p values are corrected for.
/// With the time of a round trip, the result has the cost of the distance for calls.
pub fn compare(
    versions: &[String],
    loads: &[LoadBlocks],
    round_trip: Option<f64>,
) -> (Vec<LoadResult>, usize) {
    let results = loads.iter().map(|l| result(versions, l, round_trip));
    let (mut results, changes): (Vec<LoadResult>, Vec<Vec<Option<Change>>>) = results.unzip();
    let mut tested: Vec<(&mut Row, Change, bool)> = Vec::new();
    for ((load, of), blocks) in results.iter_mut().zip(changes).zip(loads) {
        let primary = blocks.primary();
        let rows = load.rows.iter_mut().zip(of);
        tested.extend(rows.filter_map(|(row, c)| {
            let is_primary = row.metric == primary;
            Some((row, c?, is_primary))
        }));
    }
    let of_kind = |wanted: bool| tested.iter().filter(|t| t.2 == wanted).count() as f64;
    let shares = [
        (1.0 - PRIMARY) / of_kind(false).max(1.0),
        PRIMARY / of_kind(true).max(1.0),
    ];
    let weighted = |t: &(&mut Row, Change, bool)| (t.1, shares[usize::from(t.2)]);
    let changes: Vec<(Change, f64)> = tested.iter().map(weighted).collect();
    for ((row, change, _), judged) in tested.iter_mut().zip(judge(&changes)) {
        row.p = Some(judged.p);
        row.verdict = verdict(row, change, &judged);
        row.finds = (row.verdict == Verdict::NoEvidence).then_some(judged.finds);
    }
    (results, changes.len())
}

fn result(
    versions: &[String],
    blocks: &LoadBlocks,
    round_trip: Option<f64>,
) -> (LoadResult, Vec<Option<Change>>) {
    let (mut rows, mut changes) = (Vec::new(), Vec::new());
    for metric in Metric::ALL {
        for (v, version) in versions.iter().enumerate() {
            let values: Vec<f64> = blocks.values(metric, v).flatten().collect();
            let Some(mean) = over_rounds(&values, MIN_PAIRS) else {
                continue;
            };
            let (row, change) = row(blocks, metric, v, version, mean);
            rows.push(row);
            changes.push(change);
        }
    }
    let of = |v: usize| blocks.rounds.iter().filter_map(move |r| r.get(v)?.as_ref());
    let named = || versions.iter().enumerate();
    let rpcs = named().map(|(v, version)| (version.clone(), by_procedure(of(v))));
    let distance = named().filter_map(|(v, version)| Distance::of(version, round_trip?, of(v)));
    let result = LoadResult {
        load: blocks.load.clone(),
        operation: blocks.operation.clone(),
        rows,
        rpcs: rpcs.filter(|(_, by)| !by.is_empty()).collect(),
        distance: distance.collect(),
    };
    (result, changes)
}

/// A row before the correction of p values, and its comparison with the first version.
fn row(
    blocks: &LoadBlocks,
    metric: Metric,
    v: usize,
    version: &str,
    mean: Interval,
) -> (Row, Option<Change>) {
    let differences = match v {
        0 => Vec::new(),
        _ => blocks.differences(metric, v),
    };
    let beside = Beside::of(&differences);
    let row = Row {
        metric,
        version: version.to_owned(),
        mean,
        ratio: beside.ratio,
        interval: beside.interval,
        p: None,
        verdict: match v {
            0 => Verdict::Base,
            _ => Verdict::TooFew,
        },
        finds: None,
    };
    (row, beside.change)
}

fn verdict(row: &Row, change: &Change, judged: &Judged) -> Verdict {
    match (change.ratio.value > 1.0) == row.metric.more_is_better() {
        _ if !judged.found && change.is_small(MIN_EFFECT) => Verdict::TooSmall,
        _ if !judged.found => Verdict::NoEvidence,
        true => Verdict::Better,
        false => Verdict::Worse,
    }
}

/// RPCs of each procedure per host operation, over all blocks.
fn by_procedure<'a>(blocks: impl Iterator<Item = &'a Block>) -> BTreeMap<String, f64> {
    let mut host_ops = 0;
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for block in blocks {
        host_ops += block.host_ops;
        for (procedure, n) in &block.rpcs {
            *all.entry(procedure.clone()).or_default() += n;
        }
    }
    all.into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(procedure, n)| (procedure, n as f64 / host_ops as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds that drift together; the second version takes this many times as long, and has three times as many operations.
    fn blocks(rounds: usize, factor: f64) -> LoadBlocks {
        let round = |i: usize| {
            let drift = 1.0 + 0.5 * (i as f64 * 0.7).sin();
            let noise = 1.0 + 0.01 * (i as f64 * 2.4).sin();
            let block = |slower: f64, ops: u64| {
                Some(Block {
                    host_ops: 1000,
                    seconds: drift * slower,
                    latency_seconds: Some(drift * slower / 1000.0),
                    round_trip_seconds: 0.5,
                    rpcs: [("READ".to_owned(), 1000)].into(),
                    component_ops: Some(ops),
                    ..Block::default()
                })
            };
            vec![block(1.0, 1000), block(factor * noise, 3000), None]
        };
        LoadBlocks {
            load: "reads".into(),
            operation: "a read".into(),
            rounds: (0..rounds).map(round).collect(),
        }
    }

    fn versions() -> Vec<String> {
        ["3", "4.1", "4.2"].map(str::to_owned).to_vec()
    }

    fn find(results: &[LoadResult], metric: Metric, version: &str) -> Row {
        let rows = &results[0].rows;
        let found = rows
            .iter()
            .find(|r| r.metric == metric && r.version == version);
        found.unwrap().clone()
    }

    #[test]
    fn pairs_within_rounds_see_through_what_drifts() {
        let (results, comparisons) = compare(&versions(), &[blocks(10, 1.2)], Some(1e-3));
        let rate = find(&results, Metric::Throughput, "4.1");
        let [low, high] = rate.interval.unwrap();
        assert!(
            low < 1.0 / 1.2 && 1.0 / 1.2 < high && high - low < 0.03,
            "{rate:?}"
        );
        assert_eq!(rate.verdict, Verdict::Worse);
        assert_eq!(
            find(&results, Metric::Latency, "4.1").verdict,
            Verdict::Worse
        );
        let ops = find(&results, Metric::ComponentOps, "4.1");
        assert!((ops.ratio.unwrap() - 3.0).abs() < 1e-9, "{ops:?}");
        assert_eq!(ops.verdict, Verdict::Worse);
        assert_eq!(
            find(&results, Metric::Rpcs, "4.1").verdict,
            Verdict::TooSmall
        );
        let base = find(&results, Metric::Rpcs, "3");
        assert_eq!((base.ratio, base.verdict), (None, Verdict::Base));
        // Throughput, latency, round trips, RPCs and component operations of one version.
        assert_eq!(comparisons, 5);
        assert_eq!(results[0].rpcs["4.1"]["READ"], 1.0);
        assert!(results[0].rows.iter().all(|r| r.version != "4.2"));
        assert!(!results[0].rpcs.contains_key("4.2"));
    }

    #[test]
    fn no_difference_is_none_and_few_rounds_have_no_verdict() {
        let (results, _) = compare(&versions(), &[blocks(12, 1.0)], None);
        let rate = find(&results, Metric::Throughput, "4.1");
        assert_eq!(rate.verdict, Verdict::TooSmall, "{rate:?}");
        let (results, comparisons) = compare(&versions(), &[blocks(3, 2.0)], None);
        let rate = find(&results, Metric::Throughput, "4.1");
        assert_eq!(
            (rate.verdict, rate.p, comparisons),
            (Verdict::TooFew, None, 0)
        );
        assert!((rate.ratio.unwrap() - 0.5).abs() < 0.02);
    }

    /// Blocks of a server whose throughput differs by 10 % from block to block, by a fixed table of normal deviates.
    fn noisy(factor: f64) -> LoadBlocks {
        const DEVIATES: [f64; 16] = [
            0.50, -1.28, 0.85, 0.16, -0.65, 1.44, -0.06, -0.93, 1.11, -0.36, 0.27, -1.86, 0.73,
            -0.16, -0.50, 0.36,
        ];
        let block = |i: usize, slower: f64| {
            let seconds = slower * (0.1 * DEVIATES[i % 16]).exp();
            Some(Block {
                host_ops: 1000,
                seconds,
                latency_seconds: Some(seconds / 1000.0),
                p99_seconds: Some(seconds / 200.0),
                ..Block::default()
            })
        };
        LoadBlocks {
            load: "reads".into(),
            operation: "a read".into(),
            rounds: (0..8)
                .map(|i| vec![block(2 * i, 1.0), block(2 * i + 1, factor)])
                .collect(),
        }
    }

    #[test]
    fn eight_rounds_find_a_third_more_and_say_what_they_do_not_find() {
        let versions = &versions()[..2];
        let (results, _) = compare(versions, &[noisy(1.0 / 1.35)], None);
        let rate = find(&results, Metric::Throughput, "4.1");
        assert_eq!(
            (rate.verdict, rate.finds),
            (Verdict::Better, None),
            "{rate:?}"
        );
        let (results, _) = compare(versions, &[noisy(1.0)], None);
        let rate = find(&results, Metric::Throughput, "4.1");
        let [low, high] = rate.interval.unwrap();
        assert_eq!(rate.verdict, Verdict::NoEvidence);
        // Half the width is t(0.975, 7) = 2.365 standard errors, and no more than these rounds require.
        let differences = noisy(1.0).differences(Metric::Throughput, 1);
        let mean = differences.iter().sum::<f64>() / 8.0;
        let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 7.0;
        let width = 2.0 * 2.3646 * (variance / 8.0).sqrt();
        assert!(((high / low).ln() - width).abs() < 1e-3, "{rate:?}");
        assert!((1.2..1.4).contains(&rate.finds.unwrap()), "{rate:?}");
    }

    #[test]
    fn five_rounds_have_no_interval_at_all() {
        for rounds in 1..6 {
            let (results, comparisons) = compare(&versions(), &[blocks(rounds, 2.0)], None);
            assert_eq!(comparisons, 0);
            for row in &results[0].rows {
                assert_eq!(
                    (row.interval, row.mean.half_width, row.p),
                    (None, None, None)
                );
            }
        }
    }

    #[test]
    fn the_widest_interval_is_known_from_six_rounds_on() {
        assert_eq!(blocks(5, 1.2).widest(2), None);
        let (width, pairs) = blocks(10, 1.2).widest(2).unwrap();
        assert!(
            width > 0.0 && width < 0.02 && pairs > 2.0,
            "{width} {pairs}"
        );
        // The third version has no block at all.
        assert_eq!(blocks(10, 1.2).widest(3), Some((width, pairs)));
    }
}

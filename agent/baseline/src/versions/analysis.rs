//! Ratios of versions by pairs within rounds.

use crate::versions::block::{Block, Metric};
use crate::versions::distance::Distance;
use crate::versions::result::{LoadResult, Row, Verdict};
use nfscope_stats::mean_interval::Interval;
use nfscope_stats::{MIN_EFFECT, holm, paired};
use std::collections::BTreeMap;

/// Corrected p value up to which there is evidence.
const LEVEL: f64 = 0.05;

/// The blocks of one load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadBlocks {
    /// Its name.
    pub load: String,
    /// What one operation is.
    pub operation: String,
    /// By round and version, in the order of the versions; `None` where there is none.
    pub rounds: Vec<Vec<Option<Block>>>,
}

impl LoadBlocks {
    /// A quantity of a version in each round.
    fn values(&self, metric: Metric, version: usize) -> impl Iterator<Item = Option<f64>> {
        self.rounds
            .iter()
            .map(move |round| metric.of(round.get(version)?.as_ref()?))
    }

    /// Logarithms of a version's quantity over that of the first version, where a round has both.
    fn differences(&self, metric: Metric, version: usize) -> Vec<f64> {
        let pairs = self.values(metric, 0).zip(self.values(metric, version));
        pairs
            .filter_map(|(base, other)| Some(other?.ln() - base?.ln()))
            .filter(|d| d.is_finite())
            .collect()
    }

    /// Half the width of the widest interval of throughput, or of latency where a block is one call, relative to its ratio, and the
    /// fewest independent pairs; `None` with too few rounds. A version without blocks does not count.
    pub fn widest(&self, versions: usize) -> Option<(f64, f64)> {
        let metric = match self.values(Metric::P99, 0).flatten().next() {
            Some(_) => Metric::Throughput,
            None => Metric::Latency,
        };
        let mut widest: Option<(f64, f64)> = None;
        for version in 1..versions {
            let differences = self.differences(metric, version);
            if differences.is_empty() {
                continue;
            }
            let (change, stretches) = paired(&differences, 0.0, MIN_EFFECT)?;
            let r = change.ratio;
            let width = (r.high - r.low) / 2.0 / r.value;
            let (most, least) = widest.unwrap_or((width, stretches));
            widest = Some((most.max(width), least.min(stretches)));
        }
        widest
    }
}

/// Each quantity of each version under each load, and the number of comparisons that p values are corrected for.
/// With the time of a round trip also what the distance makes of calls.
pub fn compare(
    versions: &[String],
    loads: &[LoadBlocks],
    round_trip: Option<f64>,
) -> (Vec<LoadResult>, usize) {
    let results = loads.iter().map(|l| result(versions, l, round_trip));
    let mut results: Vec<LoadResult> = results.collect();
    let tested = |row: &&mut Row| row.p.is_some();
    let mut rows: Vec<&mut Row> = results
        .iter_mut()
        .flat_map(|l| &mut l.rows)
        .filter(tested)
        .collect();
    let p: Vec<f64> = rows.iter().filter_map(|r| r.p).collect();
    for (row, p) in rows.iter_mut().zip(holm(&p)) {
        row.p = Some(p);
        row.verdict = verdict(row, p);
    }
    (results, p.len())
}

fn result(versions: &[String], blocks: &LoadBlocks, round_trip: Option<f64>) -> LoadResult {
    let mut rows = Vec::new();
    for metric in Metric::ALL {
        for (v, version) in versions.iter().enumerate() {
            let values: Vec<f64> = blocks.values(metric, v).flatten().collect();
            let Some(mean) = Interval::of(&values) else {
                continue;
            };
            rows.push(row(blocks, metric, v, version, mean));
        }
    }
    let of = |v: usize| blocks.rounds.iter().filter_map(move |r| r.get(v)?.as_ref());
    let named = || versions.iter().enumerate();
    let rpcs = named().map(|(v, version)| (version.clone(), by_procedure(of(v))));
    let distance = named().filter_map(|(v, version)| Distance::of(version, round_trip?, of(v)));
    LoadResult {
        load: blocks.load.clone(),
        operation: blocks.operation.clone(),
        rows,
        rpcs: rpcs.filter(|(_, by)| !by.is_empty()).collect(),
        distance: distance.collect(),
    }
}

fn row(blocks: &LoadBlocks, metric: Metric, v: usize, version: &str, mean: Interval) -> Row {
    let mut row = Row {
        metric,
        version: version.to_owned(),
        mean,
        ratio: None,
        interval: None,
        p: None,
        verdict: Verdict::Base,
    };
    if v == 0 {
        return row;
    }
    let differences = blocks.differences(metric, v);
    row.verdict = Verdict::TooFew;
    if let Some((change, _)) = paired(&differences, 0.0, MIN_EFFECT) {
        row.ratio = Some(change.ratio.value);
        row.interval = Some([change.ratio.low, change.ratio.high]);
        row.p = Some(change.p);
    } else if !differences.is_empty() {
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        row.ratio = Some(mean.exp());
    }
    row
}

fn verdict(row: &Row, p: f64) -> Verdict {
    let [low, high] = row.interval.unwrap_or([0.0, f64::INFINITY]);
    let more = row.ratio.is_some_and(|r| r > 1.0);
    match more == row.metric.more_is_better() {
        _ if p > LEVEL && low >= 1.0 / (1.0 + MIN_EFFECT) && high <= 1.0 + MIN_EFFECT => {
            Verdict::TooSmall
        }
        _ if p > LEVEL => Verdict::NoEvidence,
        true => Verdict::Better,
        false => Verdict::Worse,
    }
}

/// RPCs of each procedure for each host operation, over all blocks.
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

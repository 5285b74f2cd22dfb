//! History of a server in Prometheus: selects the server, and reads the samples at each step.

use anyhow::Context;
use nfscope_agent_client::prometheus::{NativeHistogram, Series, query_range, quoted};
use nfscope_model::{Histogram, Info, Kind, Scheme, family};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Accumulated value of a series, or its momentary value if it is a gauge.
#[derive(Debug, Clone)]
pub(super) enum Point {
    Number(f64),
    Histogram(Histogram),
}

/// Index of a family in `family::ALL`, and the values of its labels.
pub(super) type Key = (usize, Vec<String>);
/// Upper edge of each bucket of a classic histogram, and the count of values up to it.
type Edges = Vec<(f64, f64)>;
/// All series at one moment.
pub(super) type Moment = BTreeMap<Key, Point>;
/// Time of each step in milliseconds since 1970, and the time of the scrape whose samples it has, in seconds since 1970.
pub(super) type Taken = BTreeMap<u64, f64>;

/// History of one server.
pub(super) struct History<'a> {
    pub(super) url: &'a str,
    /// Label matchers, without the braces.
    pub(super) selector: String,
    pub(super) instance: String,
    pub(super) version: String,
    pub(super) step: f64,
}

impl<'a> History<'a> {
    /// Finds the server with this `instance`, or the only server.
    pub(super) fn find(
        url: &'a str,
        instance: Option<&str>,
        range: (f64, f64),
        step: f64,
    ) -> anyhow::Result<Self> {
        let chosen = instance.map_or_else(String::new, |i| format!("{{instance={}}}", quoted(i)));
        // A hundred moments are enough to find the servers.
        let steps = step.max((range.1 - range.0) / 100.0);
        let found = query_range(url, &format!("nfscope_build_info{chosen}"), range, steps)?;
        let of = |s: &Series| ["cluster", "job", "instance"].map(|l| (l, s.label(l).to_owned()));
        let servers: BTreeSet<_> = found.iter().map(of).collect();
        let Some(labels) = servers.first() else {
            let which = instance.map_or_else(
                || "any server".to_owned(),
                |i| format!("the instance `{i}`"),
            );
            anyhow::bail!("{url} has no history of {which} in that time: see nfscope fleet {url}");
        };
        if servers.len() > 1 {
            let names: Vec<_> = servers.iter().map(|s| s[2].1.clone()).collect();
            let hint = match instance {
                None => "name one with --instance",
                Some(_) => {
                    "several jobs or clusters have it: ask a Prometheus that has one of them"
                }
            };
            anyhow::bail!("{url} has several servers ({}): {hint}", names.join(", "));
        }
        let selector: Vec<_> = labels
            .iter()
            .map(|(l, v)| format!("{l}={}", quoted(v)))
            .collect();
        let builds: BTreeSet<_> = found
            .iter()
            .map(|s| format!("{} ({})", s.label("version"), s.label("revision")))
            .collect();
        Ok(History {
            url,
            selector: selector.join(","),
            instance: labels[2].1.clone(),
            version: builds.into_iter().collect::<Vec<_>>().join(", "),
            step,
        })
    }

    fn series(&self, expression: &str, begin: f64, end: f64) -> anyhow::Result<Vec<Series>> {
        query_range(self.url, expression, (begin, end), self.step)
    }

    /// Times of the scrapes behind each step. Prometheus repeats a sample for up to 5 minutes, so that steps can share one.
    pub(super) fn taken(&self, begin: f64, end: f64) -> anyhow::Result<Taken> {
        let mut all = Taken::new();
        let taken = format!("max(timestamp(nfscope_build_info{{{}}}))", self.selector);
        for series in self.series(&taken, begin, end)? {
            for (at, taken) in series.values {
                all.insert(ms(at), taken.parse().context("a moment that is no number")?);
            }
        }
        Ok(all)
    }

    /// All series at each step.
    pub(super) fn read(&self, begin: f64, end: f64, taken: Taken) -> anyhow::Result<Chunk> {
        let mut chunk = Chunk {
            taken,
            ..Chunk::default()
        };
        for (place, info) in family::ALL.iter().enumerate() {
            match info.kind {
                Kind::Histogram(scheme) => {
                    self.histograms(&mut chunk, (place, info), scheme, begin, end)?
                }
                Kind::Counter | Kind::Gauge => {
                    let expression = format!("{}{{{}}}", info.name, self.selector);
                    for series in self.series(&expression, begin, end)? {
                        let key = (place, labels(info, &series));
                        for (at, v) in &series.values {
                            chunk.put(*at, &key, Point::Number(v.parse()?));
                        }
                    }
                }
            }
        }
        Ok(chunk)
    }

    fn histograms(
        &self,
        chunk: &mut Chunk,
        (place, info): (usize, &'static Info),
        scheme: Scheme,
        begin: f64,
        end: f64,
    ) -> anyhow::Result<()> {
        let of = |ending: &str| format!("{}{ending}{{{}}}", info.name, self.selector);
        let native = self.series(&of(""), begin, end)?;
        for series in &native {
            let key = (place, labels(info, series));
            for (at, h) in &series.histograms {
                chunk.put(*at, &key, Point::Histogram(of_native(h, scheme)?));
            }
        }
        if native.iter().any(|s| !s.histograms.is_empty()) {
            chunk.native = true;
            // Steps before native histograms were scraped may have classic ones only.
            let before = format!("{} unless {}", of("_count"), of(""));
            chunk.classic |= !self.series(&before, begin, end)?.is_empty();
            return Ok(());
        }
        let buckets = self.series(&of("_bucket"), begin, end)?;
        let sums = self.series(&of("_sum"), begin, end)?;
        if buckets.is_empty() {
            if !sums.is_empty() {
                chunk.bucketless.insert(info.name);
            }
            return Ok(());
        }
        chunk.classic = true;
        let mut counts: HashMap<(u64, Vec<String>), Edges> = HashMap::new();
        for series in &buckets {
            let le: f64 = series
                .label("le")
                .parse()
                .context("a bucket without an edge")?;
            for (at, n) in &series.values {
                let of = counts.entry((ms(*at), labels(info, series))).or_default();
                of.push((le, n.parse()?));
            }
        }
        for series in &sums {
            let labels = labels(info, series);
            for (at, sum) in &series.values {
                if let Some(buckets) = counts.remove(&(ms(*at), labels.clone())) {
                    let h = of_classic(buckets, sum.parse()?, scheme);
                    chunk.put(*at, &(place, labels.clone()), Point::Histogram(h));
                }
            }
        }
        Ok(())
    }
}

/// Steps of a history that one request per series returns.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) taken: Taken,
    pub(super) moments: BTreeMap<u64, Moment>,
    pub(super) native: bool,
    pub(super) classic: bool,
    pub(super) bucketless: BTreeSet<&'static str>,
}

impl Chunk {
    pub(super) fn put(&mut self, at: f64, key: &Key, point: Point) {
        self.moments
            .entry(ms(at))
            .or_default()
            .insert(key.clone(), point);
    }
}

pub(super) fn ms(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// Median of the distances between scrapes, in whole seconds. It exceeds the step if the scrape interval does.
pub(super) fn usual_distance<'a>(taken: impl Iterator<Item = &'a f64>) -> f64 {
    let taken: BTreeSet<_> = taken.map(|t| ms(*t)).collect();
    let mut distances: Vec<_> = taken.iter().zip(taken.iter().skip(1)).collect();
    distances.sort_by_key(|(a, b)| *b - *a);
    distances
        .get(distances.len() / 2)
        .map_or(0.0, |(a, b)| ((*b - *a) as f64 / 1000.0).round())
}

fn labels(info: &Info, series: &Series) -> Vec<String> {
    info.labels
        .iter()
        .map(|l| series.label(l.name).to_owned())
        .collect()
}

/// Converts a native histogram. Each of its upper edges is one of `scheme`.
fn of_native(native: &NativeHistogram, scheme: Scheme) -> anyhow::Result<Histogram> {
    let mut h = Histogram::new(scheme.undivided());
    for (_, _, right, n) in &native.buckets {
        let (right, n): (f64, f64) = (right.parse()?, n.parse()?);
        // The edge in the text may lie slightly above the exact one.
        h.counts[h.scheme.bucket(right * (1.0 - 1e-9))] += n.round() as u64;
    }
    h.sum = native.sum.parse()?;
    Ok(h)
}

/// Converts a classic histogram. The values between two of its edges are spread over the buckets between them.
fn of_classic(mut buckets: Edges, sum: f64, scheme: Scheme) -> Histogram {
    let mut h = Histogram::new(scheme);
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut first) = (0.0, 0);
    for (le, accumulated) in buckets {
        let last = match le.is_finite() {
            true => scheme.bucket(le * (1.0 - 1e-9)),
            false => scheme.len - 1,
        };
        let n = (accumulated - below).max(0.0).round() as u64;
        // The values above the last finite edge have no upper limit. They count in the first bucket above it.
        let last_used = if le.is_finite() {
            last
        } else {
            first.min(last)
        };
        let places = (last_used - first.min(last_used) + 1) as u64;
        for (i, bucket) in (first.min(last_used)..=last_used).enumerate() {
            // Integer parts that add up to n, and none of which falls as n grows.
            h.counts[bucket] += n / places + u64::from((i as u64) < n % places);
        }
        (below, first) = (accumulated, (last + 1).min(scheme.len - 1));
    }
    h.sum = sum;
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket that falls would look like a restart of the agent, so every bucket must grow with the counts.
    #[test]
    fn classic_buckets_only_grow_and_add_up() {
        let mut earlier = Histogram::new(Scheme::TIME);
        for n in 0..200 {
            let n = f64::from(n);
            let buckets = vec![
                (f64::INFINITY, 4.0 * n),
                (0.01, 2.0 * n),
                (0.001, n),
                (0.1, 3.0 * n),
            ];
            let h = of_classic(buckets, n, Scheme::TIME);
            assert_eq!(h.count() as f64, 4.0 * n);
            let edge = Scheme::TIME.bucket(0.01);
            let within: u64 = h.counts[..=edge].iter().sum();
            assert_eq!(within as f64, 2.0 * n);
            assert!(h.counts.iter().zip(&earlier.counts).all(|(b, a)| b >= a));
            earlier = h;
        }
    }

    #[test]
    fn native_buckets_are_found_by_their_upper_edge() {
        let right = 2f64.powf(-26.0 / 4.0).to_string();
        let native = NativeHistogram {
            sum: "0.5".to_owned(),
            buckets: vec![(0, "0".to_owned(), right, "7".to_owned())],
        };
        let h = of_native(&native, Scheme::TIME).unwrap();
        let at = h.counts.iter().position(|n| *n == 7).unwrap();
        assert_eq!(h.scheme.native(at), -26);
        assert_eq!(h.count(), 7);
    }
}

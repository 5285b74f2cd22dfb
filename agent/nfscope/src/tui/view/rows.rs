//! The rows of each list, from the series of a window.

use crate::tui::view::phases::Phases;
use crate::tui::view::types::{Client, Disk, Export, Found, Log, Lost, Op, Pool, Rpc};
use nfscope_model::{Family, Histogram, Scheme, Window, family, phase};
use std::collections::BTreeMap;

pub(super) struct Rows<'a> {
    w: &'a Window,
    length: f64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(w: &'a Window) -> Self {
        Rows {
            w,
            // Never zero: it divides.
            length: w.length.as_secs_f64().max(1e-9),
        }
    }

    pub(super) fn coverage(&self) -> BTreeMap<String, f64> {
        let all = self.numbers(&family::COVERAGE);
        all.map(|([version], v)| (version.to_owned(), v)).collect()
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        let all = self.histograms(&family::OP_DURATION);
        let total: f64 = all.iter().map(|(_, h)| h.sum).sum();
        let row = |(labels, h): ([&str; 2], &Histogram)| {
            let errors = self.numbers(&family::OP_ERRORS);
            let errors = errors.filter(|([version, op, _], _)| [*version, *op] == labels);
            Op {
                version: labels[0].to_owned(),
                op: labels[1].to_owned(),
                rate: self.rate(h),
                p50: h.quantile(0.5),
                p99: h.quantile(0.99),
                max: max(h),
                // A sum of nothing is -0.
                errors_per_s: errors.fold(0.0, |sum, (_, n)| sum + n) / self.length,
                share: if total > 0.0 { h.sum / total } else { 0.0 },
                seconds: h.sum,
                phases: Phases::read(self.w, &family::OP_PHASE, &phase::OF_OP, &labels),
            }
        };
        all.into_iter().map(row).collect()
    }

    pub(super) fn pools(&self) -> Vec<Pool> {
        let value = |f: &Family<1>, pool: &str| self.w.delta.value(f, [pool]);
        let row = |([pool], threads): ([&str; 1], f64)| {
            let queue = self.w.delta.hist(&family::RPC_QUEUE, [pool]);
            let busy = value(&family::THREAD_BUSY, pool).filter(|_| threads > 0.0);
            Pool {
                pool: pool.to_owned(),
                threads,
                busy: value(&family::THREADS_BUSY, pool),
                limit: value(&family::THREADS_LIMIT, pool),
                busy_ratio: busy.map(|s| s / threads / self.length),
                saturated_ratio: value(&family::THREADS_SATURATED, pool).map(|s| s / self.length),
                rate: queue.map_or(0.0, |h| self.rate(h)),
                queue_p50: queue.and_then(|h| h.quantile(0.5)),
                queue_p99: queue.and_then(|h| h.quantile(0.99)),
                queue_max: queue.and_then(max),
            }
        };
        let mut all: Vec<_> = self.numbers(&family::THREADS).map(row).collect();
        let used = |p: &Pool| p.busy_ratio.unwrap_or(0.0) * p.threads;
        all.sort_by(|a, b| used(b).total_cmp(&used(a)));
        all
    }

    pub(super) fn rpc(&self) -> Vec<Rpc> {
        let per_s = |f: &Family<1>, version: &str| {
            let bytes = self.w.delta.value(f, [version])?;
            Some(bytes / self.length)
        };
        let row = |([version], h): ([&str; 1], &Histogram)| Rpc {
            version: version.to_owned(),
            rate: self.rate(h),
            p50: h.quantile(0.5),
            p99: h.quantile(0.99),
            max: max(h),
            seconds: h.sum,
            phases: Phases::read(self.w, &family::RPC_PHASE, &phase::OF_RPC, &[version]),
            received_per_s: per_s(&family::RPC_RECEIVED_BYTES, version),
            sent_per_s: per_s(&family::RPC_SENT_BYTES, version),
        };
        let all = self.histograms(&family::RPC_DURATION);
        all.into_iter().map(row).collect()
    }

    pub(super) fn logs(&self) -> Vec<Log> {
        let writes = self.histograms(&family::LOG_COMMIT);
        let mut rows = self.histograms(&family::LOG_WAIT);
        // A log that writes while nobody waits is worth its row as well.
        let none = Histogram::new(Scheme::TIME);
        for (labels, _) in &writes {
            if !rows.iter().any(|(l, _)| l == labels) {
                rows.push((*labels, &none));
            }
        }
        let written = |[fs, volume]: [&str; 2]| {
            let all = self.numbers(&family::LOG_BYTES);
            let of = all.filter(|([f, v, _], _)| [*f, *v] == [fs, volume]);
            of.map(|(_, bytes)| bytes).reduce(|a, b| a + b)
        };
        let row = |(labels, waits): ([&str; 2], &Histogram)| {
            let write = writes.iter().find(|(l, _)| *l == labels).map(|(_, h)| *h);
            Log {
                fs: labels[0].to_owned(),
                volume: labels[1].to_owned(),
                waits_per_s: self.rate(waits),
                wait_p50: waits.quantile(0.5),
                wait_p99: waits.quantile(0.99),
                wait_max: max(waits),
                seconds: waits.sum,
                writes_per_s: write.map(|h| self.rate(h)),
                write_p99: write.and_then(|h| h.quantile(0.99)),
                bytes_per_s: written(labels).map(|b| b / self.length),
                separate: (self.w.delta.value(&family::LOG_SEPARATE, labels)).map(|v| v > 0.0),
            }
        };
        rows.into_iter().map(row).collect()
    }

    pub(super) fn disks(&self) -> Vec<Disk> {
        let in_flight = |device: &str| self.w.delta.value(&family::BLOCK_INFLIGHT, [device]);
        let row = |(labels, h): ([&str; 2], &Histogram)| Disk {
            device: labels[0].to_owned(),
            op: labels[1].to_owned(),
            rate: self.rate(h),
            queue_p99: (self.w.delta.hist(&family::BLOCK_QUEUE, labels))
                .and_then(|q| q.quantile(0.99)),
            device_p50: h.quantile(0.5),
            device_p99: h.quantile(0.99),
            device_max: max(h),
            seconds: h.sum,
            bytes_per_s: (self.w.delta.value(&family::BLOCK_BYTES, labels))
                .filter(|b| *b > 0.0)
                .map(|b| b / self.length),
            in_flight: in_flight(labels[0]),
        };
        let mut all: Vec<_> = self
            .histograms(&family::BLOCK_DEVICE)
            .into_iter()
            .map(row)
            .collect();
        // A device that has requests and completes none is the one to look at.
        let none = Histogram::new(Scheme::TIME);
        for ([device], n) in self.numbers(&family::BLOCK_INFLIGHT) {
            if n > 0.0 && !all.iter().any(|d| d.device == device) {
                all.push(row(([device, ""], &none)));
            }
        }
        all
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        self.spenders(&family::CLIENT_OPS, &family::CLIENT_OP_SECONDS)
            .into_iter()
            .map(|s| Client {
                client: s.name.to_owned(),
                rate: s.rate,
                share: s.share,
                seconds: s.seconds,
                mean: s.mean,
                rtt: self.w.delta.value(&family::CLIENT_RTT, [s.name]),
            })
            .collect()
    }

    pub(super) fn exports(&self) -> Vec<Export> {
        self.spenders(&family::EXPORT_OPS, &family::EXPORT_OP_SECONDS)
            .into_iter()
            .map(|s| Export {
                export: s.name.to_owned(),
                rate: s.rate,
                share: s.share,
                seconds: s.seconds,
                mean: s.mean,
            })
            .collect()
    }

    pub(super) fn lost(&self) -> Vec<Lost> {
        self.numbers(&family::EVENTS_LOST)
            .filter(|(_, n)| *n > 0.0)
            .map(|([probe, reason], n)| Lost {
                probe: probe.to_owned(),
                reason: reason.to_owned(),
                rate: n / self.length,
            })
            .collect()
    }

    pub(super) fn findings(&self) -> Vec<Found> {
        let active = self.numbers(&family::BOTTLENECK_ACTIVE);
        let mut all: Vec<_> = active
            .filter(|(_, active)| *active > 0.0)
            .map(|([kind], _)| Found {
                kind: kind.to_owned(),
                share: (self.w.delta.value(&family::BOTTLENECK_SCORE, [kind])).unwrap_or(0.0),
            })
            .collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// Who had operations, the most time first.
    fn spenders(&self, ops: &Family<1>, seconds: &Family<1>) -> Vec<Spender<'a>> {
        let total: f64 = self.numbers(seconds).map(|(_, s)| s).sum();
        let row = |([name], n): ([&'a str; 1], f64)| {
            let seconds = self.w.delta.value(seconds, [name]);
            Spender {
                name,
                rate: n / self.length,
                share: seconds.filter(|_| total > 0.0).map(|s| s / total),
                seconds,
                mean: seconds.map(|s| s / n),
            }
        };
        let busy = self.numbers(ops).filter(|(_, n)| *n > 0.0);
        let mut all: Vec<_> = busy.map(row).collect();
        let time = |s: &Spender| s.seconds.unwrap_or(0.0);
        all.sort_by(|a, b| {
            (time(b).total_cmp(&time(a)))
                .then(b.rate.total_cmp(&a.rate))
                .then(a.name.cmp(b.name))
        });
        all
    }

    /// The non-empty histograms of a family, the most time first.
    fn histograms<const N: usize>(&self, f: &Family<N>) -> Vec<([&'a str; N], &'a Histogram)> {
        let mut all: Vec<_> = self.w.delta.histograms(f).collect();
        all.sort_by(|a, b| b.1.sum.total_cmp(&a.1.sum).then_with(|| a.0.cmp(&b.0)));
        all
    }

    /// The counters or gauges of a family.
    fn numbers<const N: usize>(
        &self,
        f: &Family<N>,
    ) -> impl Iterator<Item = ([&'a str; N], f64)> + use<'a, N> {
        self.w.delta.numbers(f)
    }

    fn rate(&self, h: &Histogram) -> f64 {
        h.count() as f64 / self.length
    }
}

struct Spender<'a> {
    name: &'a str,
    rate: f64,
    share: Option<f64>,
    seconds: Option<f64>,
    mean: Option<f64>,
}

/// Upper edge of the highest bucket with a value: at most one step of the scheme above the real maximum.
fn max(h: &Histogram) -> Option<f64> {
    let highest = h.counts.iter().rposition(|n| *n > 0)?;
    Some(h.scheme.upper(highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_never_below_the_real_one_nor_a_fifth_above_it() {
        for v in [1e-6, 0.0009, 0.001, 0.5, 1.0, 63.9] {
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[Scheme::TIME.bucket(v)] += 1;
            let got = max(&h).unwrap();
            assert!(got >= v && got <= v * 1.19, "{got} for {v}");
        }
        let mut h = Histogram::new(Scheme::TIME);
        assert_eq!(max(&h), None);
        h.counts[Scheme::TIME.len - 1] = 1;
        assert_eq!(max(&h), Some(f64::INFINITY));
    }
}

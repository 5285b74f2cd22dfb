//! The rows of each list, from the series of a window.

use crate::view::phases::Phases;
use crate::view::types::{Change, Client, Disk, Export, Found, Log, Lost, Op, Pool, Rpc};
use nfscope_api::worth::{cures, label};
use nfscope_model::finding::Kind;
use nfscope_model::window_parts::{self, WindowDisk, WindowLog, WindowOp, WindowUser};
use nfscope_model::{Family, Histogram, Scheme, Window, family, phase};
use nfscope_text::units::seconds;
use nfscope_whatif::MIN_GAIN;
use std::cmp::Ordering;
use std::collections::BTreeMap;

pub(super) struct Rows<'a> {
    w: &'a Window,
    length: f64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(w: &'a Window) -> Self {
        Rows {
            w,
            // The length is never zero, because it is a divisor.
            length: w.length.as_secs_f64().max(1e-9),
        }
    }

    pub(super) fn coverage(&self) -> BTreeMap<String, f64> {
        let all = self.numbers(&family::COVERAGE);
        all.map(|([version], v)| (version.to_owned(), v)).collect()
    }

    pub(super) fn ops(&self) -> Vec<Op> {
        let mut all = window_parts::ops(self.w);
        all.sort_by(|a, b| {
            (b.durations.sum.total_cmp(&a.durations.sum))
                .then_with(|| [a.version, a.op].cmp(&[b.version, b.op]))
        });
        let total: f64 = all.iter().map(|o| o.durations.sum).sum();
        let row = |o: WindowOp| Op {
            version: o.version.to_owned(),
            op: o.op.to_owned(),
            rate: self.rate(o.durations),
            p50: o.durations.quantile(0.5),
            p99: o.durations.quantile(0.99),
            max: max(o.durations),
            errors_per_s: o.errors.map(|n| n / self.length),
            share: if total > 0.0 {
                o.durations.sum / total
            } else {
                0.0
            },
            seconds: o.durations.sum,
            phases: o.phases.map(|p| Phases::new(&phase::OF_OP, p)),
        };
        all.into_iter().map(row).collect()
    }

    pub(super) fn pools(&self) -> Vec<Pool> {
        let value = |f: &Family<1>, pool: &str| self.w.delta.value(f, [pool]);
        // Requests in hand have kept threads busy, too, and are counted when they end. Their pool is known where there is one alone.
        let held = self.w.delta.held.iter().map(|r| r.seconds);
        let held: f64 = held.map(|s| s.min(self.length)).sum();
        let is_alone = self.numbers(&family::THREADS).count() == 1;
        let held = if is_alone { held } else { 0.0 };
        let row = |([pool], threads): ([&str; 1], f64)| {
            let queue = self.w.delta.hist(&family::RPC_QUEUE, [pool]);
            let busy = value(&family::THREAD_BUSY, pool).filter(|_| threads > 0.0);
            Pool {
                pool: pool.to_owned(),
                threads,
                busy: value(&family::THREADS_BUSY, pool),
                limit: value(&family::THREADS_LIMIT, pool),
                busy_ratio: busy.map(|s| ((s + held) / threads / self.length).min(1.0)),
                saturated_ratio: value(&family::THREADS_SATURATED, pool).map(|s| s / self.length),
                rate: queue.map(|h| self.rate(h)),
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
        let phases = window_parts::rpc_phases(self.w);
        let row = |([version], h): ([&str; 1], &Histogram)| Rpc {
            version: version.to_owned(),
            rate: self.rate(h),
            p50: h.quantile(0.5),
            p99: h.quantile(0.99),
            max: max(h),
            seconds: h.sum,
            phases: (phases.get(version)).map(|p| Phases::new(&phase::OF_RPC, *p)),
            received_per_s: per_s(&family::RPC_RECEIVED_BYTES, version),
            sent_per_s: per_s(&family::RPC_SENT_BYTES, version),
        };
        let all = self.histograms(&family::RPC_DURATION);
        all.into_iter().map(row).collect()
    }

    pub(super) fn logs(&self) -> Vec<Log> {
        let mut all = window_parts::logs(self.w);
        // A log that writes while no thread waits has a row as well, below the others.
        let waited = |l: &WindowLog| l.waits.map(|h| h.sum);
        let written = |l: &WindowLog| l.writes.map_or(0.0, |h| h.sum);
        all.sort_by(|a, b| {
            (waited(b).partial_cmp(&waited(a)).unwrap_or(Ordering::Equal))
                .then_with(|| match waited(a) {
                    Some(_) => Ordering::Equal,
                    None => written(b).total_cmp(&written(a)),
                })
                .then_with(|| [a.fs, a.volume].cmp(&[b.fs, b.volume]))
        });
        let row = |l: WindowLog| {
            let writes = l.writes.filter(|h| h.count() > 0);
            Log {
                fs: l.fs.to_owned(),
                volume: l.volume.to_owned(),
                waits_per_s: l.waits.map(|h| self.rate(h)),
                wait_p50: l.waits.and_then(|h| h.quantile(0.5)),
                wait_p99: l.waits.and_then(|h| h.quantile(0.99)),
                wait_max: l.waits.and_then(max),
                seconds: l.waits.map(|h| h.sum),
                writes_per_s: writes.map(|h| self.rate(h)),
                write_p99: writes.and_then(|h| h.quantile(0.99)),
                bytes_per_s: l.bytes.map(|b| b / self.length),
                separate: l.separate,
            }
        };
        all.into_iter().map(row).collect()
    }

    pub(super) fn disks(&self) -> Vec<Disk> {
        let in_flight = |device: &str| self.w.delta.value(&family::BLOCK_INFLIGHT, [device]);
        let measured = !(self.w.delta.series(&family::BLOCK_DEVICE.info)).is_empty();
        let row = |d: WindowDisk| Disk {
            device: d.device.to_owned(),
            op: d.op.to_owned(),
            rate: measured.then(|| self.rate(d.requests)),
            queue_p99: d.queue.and_then(|q| q.quantile(0.99)),
            device_p50: d.requests.quantile(0.5),
            device_p99: d.requests.quantile(0.99),
            device_max: max(d.requests),
            seconds: measured.then_some(d.requests.sum),
            bytes_per_s: d.bytes.filter(|b| *b > 0.0).map(|b| b / self.length),
            in_flight: in_flight(d.device),
        };
        let mut all = window_parts::disks(self.w);
        all.sort_by(|a, b| {
            (b.requests.sum.total_cmp(&a.requests.sum))
                .then_with(|| [a.device, a.op].cmp(&[b.device, b.op]))
        });
        let mut all: Vec<_> = all.into_iter().map(row).collect();
        // A device that has requests in flight and completes none has a row, because it is suspicious.
        let none = Histogram::new(Scheme::TIME);
        for ([device], n) in self.numbers(&family::BLOCK_INFLIGHT) {
            if n > 0.0 && !all.iter().any(|d| d.device == device) {
                all.push(row(WindowDisk {
                    device,
                    op: "",
                    requests: &none,
                    queue: None,
                    bytes: None,
                }));
            }
        }
        all
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        self.by_time(window_parts::clients(self.w))
            .map(|(user, share)| Client {
                client: user.name.to_owned(),
                name: None,
                rate: user.ops / self.length,
                share,
                seconds: user.seconds,
                mean: user.seconds.map(|s| s / user.ops),
                read_per_s: user.moved.map(|m| m.read as f64 / self.length),
                written_per_s: user.moved.map(|m| m.written as f64 / self.length),
                ops_per_request: user.requests.filter(|n| *n > 0.0).map(|n| user.ops / n),
                rtt: user.rtt,
                min_rtt: user.min_rtt,
            })
            .collect()
    }

    pub(super) fn exports(&self) -> Vec<Export> {
        self.by_time(window_parts::exports(self.w))
            .map(|(user, share)| Export {
                export: user.name.to_owned(),
                rate: user.ops / self.length,
                share,
                seconds: user.seconds,
                mean: user.seconds.map(|s| s / user.ops),
                read_per_s: user.moved.map(|m| m.read as f64 / self.length),
                written_per_s: user.moved.map(|m| m.written as f64 / self.length),
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

    pub(super) fn server_state(&self) -> Option<String> {
        let value = |family| self.w.delta.value(family, []);
        if value(&family::IN_GRACE) == Some(1.0) {
            return Some("in its grace period".to_owned());
        }
        let change = value(&family::SERVER_CHANGE).filter(|s| *s >= 1.0)?;
        Some(format!(
            "starting, stopping or changing its threads for {}",
            seconds(change)
        ))
    }

    pub(super) fn findings(&self) -> Vec<Found> {
        let active = self.numbers(&family::BOTTLENECK_ACTIVE);
        let mut all: Vec<_> = active
            .filter(|(_, active)| *active > 0.0)
            .map(|([kind], _)| Found {
                kind: kind.to_owned(),
                share: self.w.delta.value(&family::BOTTLENECK_SCORE, [kind]),
            })
            .collect();
        all.sort_by(|a, b| (b.share.partial_cmp(&a.share)).unwrap_or(Ordering::Equal));
        all
    }

    /// Changes that may cure the active findings.
    pub(super) fn changes(&self) -> Vec<Change> {
        let is_active = |kind: &&Kind| {
            let active = self
                .w
                .delta
                .value(&family::BOTTLENECK_ACTIVE, [kind.as_str()]);
            active == Some(1.0)
        };
        let parts: Vec<_> = (Kind::ALL.iter().filter(is_active))
            .flat_map(|kind| cures(*kind))
            .map(|part| label(*part))
            .collect();
        let mut all: Vec<_> = (self.numbers(&family::CHANGE_GAIN))
            .filter(|([change], gain)| *gain >= MIN_GAIN && parts.contains(change))
            .map(|([change], gain)| Change {
                change: change.to_owned(),
                gain,
            })
            .collect();
        all.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        all
    }

    /// Clients or exports by time, the most first, each with its part of all the time.
    fn by_time<'u>(
        &self,
        mut all: Vec<WindowUser<'u>>,
    ) -> impl Iterator<Item = (WindowUser<'u>, Option<f64>)> + use<'u> {
        let total: f64 = all.iter().filter_map(|u| u.seconds).sum();
        let time = |u: &WindowUser| u.seconds.unwrap_or(0.0);
        all.sort_by(|a, b| {
            (time(b).total_cmp(&time(a)))
                .then(b.ops.total_cmp(&a.ops))
                .then(a.name.cmp(b.name))
        });
        all.into_iter()
            .map(move |u| (u, u.seconds.filter(|_| total > 0.0).map(|s| s / total)))
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

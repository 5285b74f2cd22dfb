//! Assumptions of a prediction, in sentences.

use crate::assemble::disk_decides;
use crate::calibrate::Variant;
use crate::change::{Change, size};
use crate::measured::{Kind, Measured};
use crate::predict::log_seconds;
use crate::server::{Log, Pace};
use nfscope_text::units::seconds;

/// Assumptions of these variants, the first of which is the most likely one.
pub(crate) fn assumptions(m: &Measured, variants: &[Variant], change: &Change) -> Vec<String> {
    let s = &variants[0].server;
    let sizes = match change.write_bytes {
        Some(_) => "the sizes of READs",
        None => "their sizes",
    };
    let mut all = vec![
        format!(
            "the mix of operations, {sizes} and the share that caches answer stay as measured"
        ),
        "the CPU time of the kernel and of other programs grows with the requests; where CPUs become full the interval includes \
         that it does not"
            .to_owned(),
    ];
    if variants[0].base.cpu_used > 0.95 {
        all.push("the CPUs are full, and the scheduler decides which request waits: times are uncertain, the rate is not".to_owned());
    }
    let streams: usize = s.clients.iter().map(|c| c.streams).sum();
    let pause = s.clients.iter().map(|c| match c.pace {
        Pace::Think(pause) => c.streams as f64 * pause,
        Pace::Period(_) => 0.0,
    });
    let pause = pause.sum::<f64>() / streams.max(1) as f64;
    let paced = s.clients.iter().any(|c| matches!(c.pace, Pace::Period(_)));
    let have = format!("clients have at most {streams} requests under way");
    all.push(match (paced, pause > 0.1 * m.residence) {
        (true, _) => format!(
            "{have} and ask by the clock, as slowly as now; the interval includes clients that pause after each reply"
        ),
        (false, true) => format!("{have} and pause {} after each reply", seconds(pause)),
        (false, false) => format!("{have} and ask again after each reply"),
    });
    if let Some(log) = m.log.as_ref().filter(|_| m.per_request(|k| k.log) > 0.0) {
        all.push(match &s.log {
            Log::Group { at_once: 1, commit, .. } => format!(
                "a commit of the log of {} takes {}, and makes durable all that waited when it began; commits run one after the other",
                log.name,
                seconds(commit.mean())
            ),
            Log::Group { commit, .. } => format!(
                "a commit of the log of {} takes {}, and makes durable all that waited when it began; commits run side by side",
                log.name,
                seconds(commit.mean())
            ),
            Log::Delay(wait) => format!(
                "a wait for the log of {} takes {}, however many requests wait",
                log.name,
                seconds(wait.mean())
            ),
        });
        if let (Some(_), Some((device, mean, path))) = (log_seconds(m, change), &log.device) {
            let with = match change.log_seconds {
                None => ", and becomes faster with it",
                Some(_) => "",
            };
            all.push(format!(
                "the log lies on {device}, where a request takes {}; a commit makes {path} one after the other{with}",
                seconds(*mean)
            ));
        }
    }
    if let Some(disk) = m.disk.as_ref().filter(|_| m.per_request(|k| k.disk) > 0.0) {
        let limits = variants.iter().any(|v| v.server.disk.at_once.is_some());
        all.extend(match (s.disk.at_once, limits) {
            (None, true) => Some(format!(
                "{} serves more requests at once than now without being slower; the interval includes a disk that serves \
                 {:.1} at once, as many as it was seen to",
                disk.name, disk.in_flight
            )),
            // A server whose disk serves no more at once than was seen does not behave as measured.
            (None, false) if disk_decides(m) => Some(format!(
                "{} serves more requests at once than the {:.1} that it was seen to: a disk that serves no more does not give the measured \
                 rate and times",
                disk.name, disk.in_flight
            )),
            (None, false) => None,
            (Some(n), _) => Some(format!("{} serves {n} requests at once: requests wait for it already", disk.name)),
        });
    }
    if let (Some(bytes), Some(before)) = (change.write_bytes, m.write_bytes) {
        all.push(format!(
            "what a WRITE of {} costs lies between what one of {} costs and what its bytes make of that; the prediction is the middle",
            size(bytes),
            size(before as u64)
        ));
    }
    if m.per_request(Kind::sleep) > 0.02 * m.per_request(|k| k.mean) {
        all.push(match log_seconds(m, change) {
            None => "other waits (locks, other threads, anything that is not named) stay as long as measured".to_owned(),
            Some(_) => "other waits (locks, other threads, anything that is not named) stay as long as measured; the interval includes that they shrink with \
                        the log's device"
                .to_owned(),
        });
    }
    all
}

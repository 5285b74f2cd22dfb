//! A sample of single operations of one client.

use crate::view::phases::Phases;
use nfscope_model::{SlowOp, phase};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Operations of a client that ended in a short time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Address of the client.
    pub client: IpAddr,
    /// Time for which its operations were sampled.
    pub length: Duration,
    /// Most operations per second that are reported.
    pub per_second: u32,
    /// Number of operations.
    pub count: usize,
    /// Operations by version and name, the most time first.
    pub ops: Vec<SampledOp>,
}

/// Operations of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledOp {
    /// NFS version.
    pub version: String,
    /// The RFC's name in lower case.
    pub op: String,
    /// Number of operations.
    pub count: usize,
    /// Number of answers with a status other than OK.
    pub errors: usize,
    /// Median.
    pub p50: f64,
    /// Maximum.
    pub max: f64,
    /// Part of the time of all sampled operations.
    pub share: f64,
    /// Time of these operations.
    pub seconds: f64,
    /// Time of these operations by phase; `None` where one of them has no phases.
    pub phases: Option<Phases>,
}

impl Sample {
    /// Summary of the sampled operations of a client.
    pub fn of(client: IpAddr, length: Duration, per_second: u32, heard: &[SlowOp]) -> Sample {
        let mut kinds = BTreeMap::<_, Vec<&SlowOp>>::new();
        for op in heard {
            let kind = (op.version.clone(), op.op.clone());
            kinds.entry(kind).or_default().push(op);
        }
        let total: Duration = heard.iter().map(|op| op.duration).sum();
        let row = |((version, op), all): ((String, String), Vec<&SlowOp>)| {
            let mut times: Vec<_> = all.iter().map(|op| op.duration.as_secs_f64()).collect();
            times.sort_by(f64::total_cmp);
            let seconds: f64 = times.iter().sum();
            SampledOp {
                version,
                op,
                count: all.len(),
                errors: all.iter().filter(|op| op.status != "ok").count(),
                p50: times[(times.len() - 1) / 2],
                max: times[times.len() - 1],
                share: if total.is_zero() {
                    0.0
                } else {
                    seconds / total.as_secs_f64()
                },
                seconds,
                phases: phases(&all),
            }
        };
        let mut ops: Vec<_> = kinds.into_iter().map(row).collect();
        ops.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Sample {
            client,
            length,
            per_second,
            count: heard.len(),
            ops,
        }
    }
}

fn phases(all: &[&SlowOp]) -> Option<Phases> {
    let mut sum = [Some(0.0); phase::OPS];
    for op in all {
        for (sum, time) in sum.iter_mut().zip(op.phases?.all()) {
            *sum = sum.map(|s| s + time.as_secs_f64());
        }
    }
    Some(Phases::new(&phase::OF_OP, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{OpArguments, OpPhases};
    use std::time::SystemTime;

    fn op(name: &str, ms: u64, status: &str) -> SlowOp {
        SlowOp {
            arguments: OpArguments::default(),
            at: SystemTime::UNIX_EPOCH,
            client: None,
            version: "3".into(),
            op: name.into(),
            export: None,
            dataset: None,
            inode: None,
            path: None,
            xid: None,
            bytes: None,
            stability: None,
            status: status.into(),
            duration: Duration::from_millis(ms),
            phases: (name != "read").then(|| OpPhases {
                cpu: Duration::from_millis(ms),
                ..OpPhases::default()
            }),
        }
    }

    #[test]
    fn a_sample_is_counted_by_operation() {
        let heard = [
            op("read", 2, "ok"),
            op("write", 1, "ok"),
            op("write", 9, "nospc"),
            op("write", 4, "ok"),
        ];
        let client = IpAddr::from([192, 0, 2, 7]);
        let sample = Sample::of(client, Duration::from_millis(300), 1000, &heard);
        assert_eq!((sample.count, sample.ops.len()), (4, 2));
        let write = &sample.ops[0];
        assert_eq!(
            (write.op.as_str(), write.count, write.errors),
            ("write", 3, 1)
        );
        assert_eq!((write.p50, write.max), (0.004, 0.009));
        assert!((write.share - 14.0 / 16.0).abs() < 1e-9);
        let cpu = write.phases.as_ref().unwrap().parts()[0];
        assert!((cpu - 0.014).abs() < 1e-9);
        assert_eq!(sample.ops[1].phases, None);
        assert_eq!(Sample::of(client, Duration::ZERO, 1000, &[]).ops, []);
    }
}

//! Names the client behind a finding if the kernel does not count by client and operation ([`crate::counted`]): from a short sample of
//! single operations.

use nfscope_model::finding::{Evidence, Kind};
use nfscope_model::{SlowFilter, SlowOp, family};
use std::collections::BTreeMap;
use std::time::Duration;

/// Length of the sample.
pub const SAMPLE_DURATION: Duration = Duration::from_secs(3);
/// Most operations per second in the sample: enough for a share to within a tenth, at almost no cost.
const MAX_OPS_PER_SECOND: u32 = 200;
/// Least number of operations in a sample that is evidence.
const MIN_OPS: usize = 10;

/// The operations to sample for a finding of this kind; `None` where the client does not matter.
pub fn filter(kind: Kind) -> Option<SlowFilter> {
    let ops: &[&str] = match kind {
        Kind::SmallSyncWrites | Kind::SlowIntentLog => &["write", "commit"],
        Kind::ChattyClient => &["getattr", "lookup", "access", "readlink", "read"],
        _ => return None,
    };
    Some(SlowFilter {
        over: Duration::ZERO,
        ops: ops.iter().map(|&o| o.to_owned()).collect(),
        client: None,
        per_second: MAX_OPS_PER_SECOND,
    })
}

/// The client with most of the sampled operations, and its most frequent operation.
pub fn evidence(sample: &[SlowOp]) -> Option<Evidence> {
    if sample.len() < MIN_OPS {
        return None;
    }
    let mut by_client: BTreeMap<_, Vec<&SlowOp>> = BTreeMap::new();
    for op in sample {
        by_client.entry(op.client).or_default().push(op);
    }
    let (client, ops) = by_client.into_iter().max_by_key(|(_, ops)| ops.len())?;
    let name = client.map_or("a local client".to_owned(), |c| {
        c.to_canonical().to_string()
    });
    let share = ops.len() as f64 / sample.len() as f64;
    let stability = |op: &SlowOp| op.stability.clone().unwrap_or_default();
    let mut by_op: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for op in &ops {
        *by_op.entry((&op.op, stability(op))).or_default() += 1;
    }
    let ((op, how), _) = by_op.into_iter().max_by_key(|(_, n)| *n)?;
    let of_op = ops.iter().filter(|o| o.op == op && stability(o) == how);
    let bytes: Vec<_> = of_op.filter_map(|o| o.bytes).collect();
    let size = match bytes.iter().sum::<u64>().checked_div(bytes.len() as u64) {
        Some(mean) => format!(" of {mean} bytes on average"),
        None => String::new(),
    };
    let how = if how.is_empty() {
        String::new()
    } else {
        format!(" ({how})")
    };
    let text = format!(
        "of {} sampled operations, {:.0} % came from {name}, most of them {}{how}{size}",
        sample.len(),
        share * 100.0,
        op.to_uppercase()
    );
    Some(Evidence {
        text,
        metric: family::CLIENT_OPS.info.name.to_owned(),
        value: share,
        limit: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::OpArguments;
    use std::time::SystemTime;

    fn op(client: &str, op: &str, bytes: Option<u64>, stability: Option<&str>) -> SlowOp {
        SlowOp {
            arguments: OpArguments::default(),
            at: SystemTime::UNIX_EPOCH,
            client: client.parse().ok(),
            version: "3".into(),
            op: op.into(),
            export: None,
            dataset: None,
            inode: None,
            path: None,
            xid: None,
            bytes,
            stability: stability.map(str::to_owned),
            status: "ok".into(),
            duration: Duration::from_micros(50),
            phases: None,
        }
    }

    #[test]
    fn the_busiest_client_and_what_it_does_most() {
        let mut sample = vec![op("::ffff:192.0.2.7", "write", Some(4096), Some("file_sync")); 9];
        sample.extend(vec![op("192.0.2.8", "commit", None, None); 2]);
        sample.push(op(
            "::ffff:192.0.2.7",
            "write",
            Some(1 << 20),
            Some("unstable"),
        ));
        let e = evidence(&sample).unwrap();
        assert_eq!(
            e.text,
            "of 12 sampled operations, 83 % came from 192.0.2.7, most of them WRITE (file_sync) of 4096 bytes on average"
        );
        assert!(evidence(&sample[..MIN_OPS - 1]).is_none());
        let e = evidence(&vec![op("", "getattr", None, None); 10]).unwrap();
        assert!(
            e.text
                .ends_with("100 % came from a local client, most of them GETATTR"),
            "{}",
            e.text
        );
    }
}

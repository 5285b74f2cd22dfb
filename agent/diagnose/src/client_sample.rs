//! By whom: what clients do is not counted by client and operation, but single operations can be looked at for a moment.

use nfscope_model::finding::{Evidence, Kind};
use nfscope_model::{SlowFilter, SlowOp, family};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long to look, and at how many operations a second: enough for a share to within a tenth, for next to no cost.
pub const LOOK: Duration = Duration::from_secs(3);
const PER_SECOND: u32 = 200;
/// Fewer say nothing.
const FEW: usize = 10;

/// What to look at for this finding; `None` where the client does not matter.
pub fn wanted(kind: Kind) -> Option<SlowFilter> {
    let ops: &[&str] = match kind {
        Kind::SmallSyncWrites | Kind::SlowIntentLog => &["write", "commit"],
        Kind::ChattyClient => &["getattr", "lookup", "access", "readlink", "read"],
        _ => return None,
    };
    Some(SlowFilter {
        over: Duration::ZERO,
        ops: ops.iter().map(|&o| o.to_owned()).collect(),
        client: None,
        per_second: PER_SECOND,
    })
}

/// Whose most of the operations are that were seen.
pub fn evidence(seen: &[SlowOp]) -> Option<Evidence> {
    if seen.len() < FEW {
        return None;
    }
    let mut by: BTreeMap<_, Vec<&SlowOp>> = BTreeMap::new();
    for op in seen {
        by.entry(op.client).or_default().push(op);
    }
    let (client, ops) = by.into_iter().max_by_key(|(_, ops)| ops.len())?;
    let name = client.map_or("a local client".to_owned(), |c| {
        c.to_canonical().to_string()
    });
    let share = ops.len() as f64 / seen.len() as f64;
    let mut what: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for op in &ops {
        let how = op.stability.as_deref().unwrap_or_default();
        *what.entry((&op.op, how)).or_default() += 1;
    }
    let ((op, how), _) = what.into_iter().max_by_key(|(_, n)| *n)?;
    let of_it = ops
        .iter()
        .filter(|o| o.op == op && o.stability.as_deref().unwrap_or_default() == how);
    let bytes: Vec<_> = of_it.filter_map(|o| o.bytes).collect();
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
        "of {} operations looked at one by one, {:.0} % were {name}'s, most of them {}{how}{size}",
        seen.len(),
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
    use std::time::SystemTime;

    fn op(client: &str, op: &str, bytes: Option<u64>, stability: Option<&str>) -> SlowOp {
        SlowOp {
            at: SystemTime::UNIX_EPOCH,
            client: client.parse().ok(),
            version: "3".into(),
            op: op.into(),
            export: None,
            dataset: None,
            inode: None,
            bytes,
            stability: stability.map(str::to_owned),
            status: "ok".into(),
            duration: Duration::from_micros(50),
            phases: None,
        }
    }

    #[test]
    fn the_busiest_client_and_what_it_does_most() {
        let mut seen = vec![op("::ffff:192.0.2.7", "write", Some(4096), Some("file_sync")); 9];
        seen.extend(vec![op("192.0.2.8", "commit", None, None); 2]);
        seen.push(op(
            "::ffff:192.0.2.7",
            "write",
            Some(1 << 20),
            Some("unstable"),
        ));
        let e = evidence(&seen).unwrap();
        assert_eq!(
            e.text,
            "of 12 operations looked at one by one, 83 % were 192.0.2.7's, most of them WRITE (file_sync) of 4096 bytes on average"
        );
        assert!(evidence(&seen[..FEW - 1]).is_none());
        let e = evidence(&vec![op("", "getattr", None, None); 10]).unwrap();
        assert!(
            e.text
                .ends_with("100 % were a local client's, most of them GETATTR"),
            "{}",
            e.text
        );
    }
}

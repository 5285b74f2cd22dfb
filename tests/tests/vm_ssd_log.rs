//! The experiment of docs/performance.md: a fast log device joins a pool on a slow disk while it serves.

use anyhow::Result;
use lab::reconcile::merged;
use lab::ssd_log::{Half, Options, moved, run, table};
use nfscope_model::family;

#[test]
fn vm_6_12_a_log_device_helps_and_nfscope_says_by_how_much() -> Result<()> {
    let halves = run(&Options {
        ops: 400,
        ..Options::default()
    })?;
    println!("{}", table(&halves));
    let [without, with] = &halves;
    let mean = |h: &Half| h.write.mean().unwrap_or(0.0);
    // Four of 400 operations are above the 99 % quantile: too few on a busy host, which makes the clock leap.
    let p90 = |h: &nfscope_model::Histogram| h.quantile(0.9).unwrap_or(0.0);

    // All bytes of the log move from the pool's disk to the log device.
    assert_eq!((without.separate, with.separate), (Some(0.0), Some(1.0)));
    assert!(without.bytes[0] > 0.0 && without.bytes[1] == 0.0);
    assert!(with.bytes[1] > 0.0);
    assert!(with.bytes[0] <= without.bytes[0] * 0.02, "{:?}", with.bytes);

    // Every WRITE waits for the log, before and after; only the length differs. The machine counts instructions, so that its times do
    // not depend on the host's.
    for half in &halves {
        // CREATE and REMOVE wait for the log as well.
        assert!(half.wait.count() >= half.write.count());
        let ops = merged(&half.window.delta, &family::OP_DURATION.info, |_| true);
        assert!(half.wait.sum <= ops.map_or(0.0, |h| h.sum));
    }
    assert!(p90(&without.wait) > 8.0 * p90(&with.wait));
    assert!(p90(&without.write) > 8.0 * p90(&with.write));
    assert!(mean(without) > 8.0 * mean(with));
    assert!(with.rate > 8.0 * without.rate);

    // No other cost of a WRITE changes than those of the pool's disk and its log.
    assert!(
        (0.5..2.0).contains(&(with.cpu / without.cpu)),
        "{} {}",
        without.cpu,
        with.cpu
    );
    for change in moved(&halves, 2.0) {
        let of_the_log = ["nfscope_block_", "nfscope_log_bytes_total", "nfscope_zfs_l"];
        assert!(
            of_the_log.iter().any(|name| change.starts_with(name)),
            "{change}"
        );
    }
    Ok(())
}

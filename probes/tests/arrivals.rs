//! Tests of the ring of arrivals that the probe keeps for each connection.
#![allow(clippy::unwrap_used)]

use nfscope_probes::arrivals::{Arrivals, RING};

const LAST: u32 = u32::MAX;

#[test]
fn a_request_has_the_time_of_its_last_segment() {
    // Sequence numbers wrap during the test.
    let (mut ring, start) = (Arrivals::default(), LAST - 1_000);
    for n in 1..=1_000u32 {
        let segments = 1 + n % 3;
        for s in 1..=segments {
            let end = start.wrapping_add(n * 30 + s * 10);
            assert!(ring.note(end, u64::from(n * 10 + s)));
        }
        let record = start.wrapping_add(n * 30 + segments * 10);
        assert_eq!(ring.matching(record), Some(u64::from(n * 10 + segments)));
    }
}

#[test]
fn one_more_than_it_holds_keeps_the_time_of_the_last_but_one() {
    let mut ring = Arrivals::default();
    for n in 1..=RING as u32 {
        assert!(ring.note(n * 10, u64::from(n)));
    }
    assert!(!ring.note(10_000, 10_000));
    assert_eq!(ring.matching(500), Some(50));
    assert_eq!(ring.matching(10_000), Some(RING as u64));
}

/// Arrivals of a closed connection stay in its ring if the kernel skipped the BPF program at its end. Another connection then gets the
/// memory of its socket, with other sequence numbers, and must match its own arrivals alone.
#[test]
fn what_another_connection_left_is_not_taken_for_its_own() {
    for start in [0, 1 << 20, 1 << 30, (1 << 31) + 100, 3 << 30, LAST - 100] {
        let mut ring = Arrivals::default();
        for n in 1..=20u32 {
            ring.note(50_000_000 + n * 100, u64::from(n));
        }
        ring.matching(50_001_900);
        for n in 1..=1_000u32 {
            let (end, now) = (u32::wrapping_add(start, n * 100), u64::from(1_000 + n));
            assert!(ring.note(end, now), "from {start}, arrival {n}");
            assert_eq!(ring.matching(end), Some(now), "from {start}, arrival {n}");
        }
    }
}

/// Another CPU clears the ring while a match is about to write its progress.
#[test]
fn a_tail_past_the_head_is_mended_by_what_comes_next() {
    for tail in [1, 5, RING as u32, 1_000_000, LAST] {
        let mut ring = Arrivals::default();
        ring.tail = tail;
        assert_eq!(ring.clone().matching(10), None, "tail {tail}");
        for n in 1..=3 * RING as u32 {
            assert!(ring.note(n * 10, u64::from(n)), "tail {tail}, arrival {n}");
            let arrived = ring.matching(n * 10);
            assert_eq!(arrived, Some(u64::from(n)), "tail {tail}, arrival {n}");
        }
    }
}

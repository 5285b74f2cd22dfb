//! Encoded windows are decoded unchanged.

use crate::codec::decode::decode;
use crate::codec::encode::encode;
use crate::recording::Sample;
use nfscope_model::Scheme;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn number(rng: &mut SmallRng) -> f64 {
    match rng.random_range(0..7) {
        0 => 0.0,
        1 => rng.random_range(0..1000u32).into(),
        2 => 9_007_199_254_740_991.0,
        3 => rng.random_range(0.0..1e-3),
        4 => rng.random_range(0.0..1e6),
        5 => -rng.random_range(0.0..10.0),
        _ => 0.1 + 0.2,
    }
}

fn histogram(rng: &mut SmallRng) -> Sample {
    let time = Scheme::TIME;
    let all = [time, time.undivided(), Scheme::SIZE, Scheme::COUNT];
    let scheme = all[rng.random_range(0..4)];
    let filled = *[0.0, 0.2, 1.0].get(rng.random_range(0..3)).unwrap();
    let counts = (0..scheme.len as u16)
        .filter(|_| rng.random_bool(filled))
        .collect::<Vec<_>>();
    Sample::Histogram {
        scheme,
        counts: counts
            .into_iter()
            .map(|i| {
                let bits = rng.random_range(1..48);
                (i, rng.random_range(1..1u64 << bits))
            })
            .collect(),
        sum: number(rng),
    }
}

fn window(rng: &mut SmallRng) -> Vec<(u32, Sample)> {
    let here = *[0.0, 0.5, 0.95, 1.0].get(rng.random_range(0..4)).unwrap();
    (0..rng.random_range(0..300))
        .filter(|_| rng.random_bool(here))
        .collect::<Vec<u32>>()
        .into_iter()
        .map(|id| {
            let sample = match rng.random_range(0..3) {
                0 => Sample::Counter(number(rng)),
                1 => Sample::Gauge(number(rng)),
                _ => histogram(rng),
            };
            (id, sample)
        })
        .collect()
}

/// Values of series in seconds may move by up to a nanosecond.
fn same(a: &Sample, b: &Sample, within: f64) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= within;
    match (a, b) {
        (Sample::Counter(a), Sample::Counter(b)) | (Sample::Gauge(a), Sample::Gauge(b)) => {
            near(*a, *b)
        }
        (
            Sample::Histogram {
                scheme,
                counts,
                sum,
            },
            Sample::Histogram {
                scheme: s,
                counts: c,
                sum: b,
            },
        ) => (scheme, counts) == (s, c) && near(*sum, *b),
        _ => false,
    }
}

#[test]
fn random_windows_come_back() {
    let mut rng = SmallRng::seed_from_u64(0x5eed);
    for _ in 0..500 {
        let samples = window(&mut rng);
        let seconds = |id: u32| id.is_multiple_of(3);
        let data = encode(samples.iter().map(|(id, p)| (*id, seconds(*id), p))).unwrap();
        let back = decode(&data, |_| true).unwrap();
        assert_eq!(samples.len(), back.len());
        for ((a, p), (b, q)) in samples.iter().zip(&back) {
            let within = if seconds(*a) { 1e-9 } else { 0.0 };
            assert!(a == b && same(p, q, within), "{a} {p:?} is {b} {q:?}");
        }
        let some = decode(&data, |id| id % 2 == 0).unwrap();
        let wanted: Vec<_> = back.into_iter().filter(|(id, _)| id % 2 == 0).collect();
        assert_eq!(some, wanted);
    }
}

#[test]
fn not_measured_is_not_zero() {
    let samples = [(0, Sample::Counter(0.0)), (2, Sample::Gauge(0.0))];
    let data = encode(samples.iter().map(|(id, p)| (*id, false, p))).unwrap();
    assert_eq!(decode(&data, |_| true).unwrap(), samples);
}

#[test]
fn what_cannot_be_a_window_is_refused() {
    let mut rng = SmallRng::seed_from_u64(7);
    let samples = window(&mut rng);
    let data = encode(samples.iter().map(|(id, p)| (*id, true, p))).unwrap();
    assert!(decode(&data[..data.len() / 2], |_| true).is_err());
    assert!(decode(b"no window", |_| true).is_err());
    // Flipped bits give an error or other numbers, never a panic.
    for _ in 0..2_000 {
        let mut bad = data.clone();
        let at = rng.random_range(0..bad.len());
        bad[at] ^= 1 << rng.random_range(0..8);
        let _ = decode(&bad, |_| true);
    }
    // These bytes have the form of a window, but an impossible content.
    let decoded = |scheme: Scheme, counts: &[(u16, u64)]| {
        let sample = Sample::Histogram {
            scheme,
            counts: counts.to_vec(),
            sum: 1.0,
        };
        decode(&encode([(0, true, &sample)]).unwrap(), |_| true)
    };
    let time = Scheme::TIME;
    assert!(decoded(time, &[(109, 1)]).is_ok());
    assert!(decoded(time, &[(110, 1)]).is_err());
    assert!(decoded(time, &[(3, 1 << 48)]).is_ok());
    assert!(decoded(time, &[(3, (1 << 48) + 1)]).is_err());
    let plain = time.undivided();
    assert!(decoded(plain, &[(105, 1)]).is_ok());
    assert!(decoded(plain, &[(106, 1)]).is_err());
    for bad in [
        Scheme {
            schema: -1,
            ..plain
        },
        Scheme { schema: 9, ..plain },
        Scheme { len: 1, ..plain },
        Scheme { len: 106, ..time },
        Scheme {
            len: 1 << 40,
            ..plain
        },
        Scheme {
            first: i32::MIN,
            ..Scheme::SIZE
        },
        Scheme {
            first: i32::MAX,
            ..plain
        },
        Scheme {
            first: 128,
            len: 4096,
            ..Scheme::SIZE
        },
    ] {
        assert!(decoded(bad, &[(0, 1)]).is_err(), "{bad:?}");
    }
    let backwards = [
        (1, false, &Sample::Counter(1.0)),
        (0, false, &Sample::Counter(1.0)),
    ];
    assert!(encode(backwards).is_err());
}

/// The columns of a window as stores have them. Decoding these bytes must always work, whatever the fields are called.
#[test]
fn windows_in_existing_stores_are_read() {
    let samples = [
        (0, Sample::Counter(5.0)),
        (2, Sample::Gauge(0.25)),
        (3, Sample::Gauge(-1.5)),
        (
            4,
            Sample::Histogram {
                // A scheme from before there were edges at powers of ten.
                scheme: Scheme::TIME.undivided(),
                counts: vec![(3, 7), (40, 300)],
                sum: 2.5e-3,
            },
        ),
    ];
    let stored = [
        3, 0, 1, 0, 1, 2, 1, 0, 1, 2, // Runs: numbers skipped, length, kind.
        1, 2, 159, 1, 106, // Bucket schemes.
        4, 20, 129, 148, 235, 220, 3, 2, 129, 173, 226, 4, // Numbers with their units.
        1, 0, 0, 0, 0, 0, 0, 248, 191, // Exact numbers.
        3, 2, 3, 36, 2, 7, 172, 2, // Buckets and their counts.
    ];
    // A single block of deflate: final and not compressed, then length and its complement.
    let len = stored.len() as u16;
    let mut data = vec![1];
    data.extend(len.to_le_bytes());
    data.extend((!len).to_le_bytes());
    data.extend_from_slice(&stored);
    assert_eq!(decode(&data, |_| true).unwrap(), samples);
}

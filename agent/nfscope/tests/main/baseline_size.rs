//! Size of a long recording of a busy server in the store.

use nfscope_baseline::recording::Sample;
use nfscope_baseline::store::Store;
use std::time::Instant;

use crate::fixture::long_recording::DAY;

/// Limit of the size of a day in the store, in bytes.
const DAY_BYTES: usize = 64 << 20;

fn near(a: &Sample, b: &Sample) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9;
    match (a, b) {
        (Sample::Counter(a), Sample::Counter(b)) | (Sample::Gauge(a), Sample::Gauge(b)) => {
            near(*a, *b)
        }
        (
            Sample::Histogram { counts, sum, .. },
            Sample::Histogram {
                counts: c, sum: s, ..
            },
        ) => counts == c && near(*sum, *s),
        _ => false,
    }
}

#[test]
fn a_day_fits_into_64_megabytes_and_comes_back_as_it_was() {
    let dir = std::env::temp_dir().join(format!("nfscope-size-{}", std::process::id()));
    let path = dir.join("store.db");
    let windows = DAY / 10;
    let recording = crate::fixture::long_recording::recording("day", 1, windows);
    Store::create(&path).unwrap().put(&recording).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len() as usize;
    let begun = Instant::now();
    let back = Store::open(&path).unwrap().recording("day").unwrap();
    println!(
        "{} series: {} bytes a window, {:.1} MB a day; read back in {:?}",
        recording.series.len(),
        bytes / windows,
        (bytes * 10) as f64 / 1e6,
        begun.elapsed()
    );
    assert!(
        bytes <= DAY_BYTES / 10,
        "{bytes} bytes for a tenth of a day"
    );
    assert_eq!(
        (&back.metadata, &back.series),
        (&recording.metadata, &recording.series)
    );
    assert_eq!(back.windows.len(), windows);
    for (a, b) in recording.windows.iter().zip(&back.windows) {
        assert_eq!((a.began_ms, a.length), (b.began_ms, b.length));
        let same = |(p, q): (&(u32, Sample), &(u32, Sample))| p.0 == q.0 && near(&p.1, &q.1);
        assert!(a.samples.len() == b.samples.len() && a.samples.iter().zip(&b.samples).all(same));
    }
    // Removed recordings give their space back to the file system.
    let mut store = Store::open(&path).unwrap();
    store.remove(&["day".to_owned()]).unwrap();
    drop(store);
    let left = std::fs::metadata(&path).unwrap().len() as usize;
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(left < bytes / 10, "{left} of {bytes} bytes are left");
}

//! Work of an agent that takes only a CPU, to count its instructions: reads a window, encodes its scrape in each format, diagnoses it, and
//! takes one snapshot from another, as often as it is told. [docs/security.md](../../../docs/security.md#integer-overflow) has the command.

use nfscope::exposition::{Format, encode};
use nfscope_model::{Snapshot, Window};
use serde::Deserialize;
use std::error::Error;
use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct Recorded {
    length: Duration,
    delta: Snapshot,
}

fn main() -> Result<(), Box<dyn Error>> {
    let times: usize = std::env::args().nth(1).ok_or("how often?")?.parse()?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    for _ in 0..times {
        let Recorded { length, delta } = serde_json::from_str(&text)?;
        let snapshot = Arc::new(delta);
        for format in [Format::Plain, Format::OpenMetrics, Format::Protobuf] {
            black_box(encode(&snapshot, format)?);
        }
        black_box(snapshot.since(&snapshot));
        let window = Window {
            length,
            delta: Arc::unwrap_or_clone(snapshot),
        };
        black_box(nfscope_diagnose::evaluate(&window, &[]));
    }
    Ok(())
}

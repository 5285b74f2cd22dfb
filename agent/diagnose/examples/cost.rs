//! Work of an agent on numbers from outside, to count its instructions: reads a window, takes one snapshot from another, and diagnoses the
//! window, as often as an argument says. docs/security.md has the command.

use nfscope_model::{Snapshot, Window};
use serde::Deserialize;
use std::error::Error;
use std::hint::black_box;
use std::io::Read;
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
        let mut sum = delta.clone();
        for _ in 0..10 {
            sum = black_box(sum.since(&delta)).delta;
        }
        black_box(nfscope_diagnose::evaluate(&Window { length, delta }, &[]));
    }
    Ok(())
}

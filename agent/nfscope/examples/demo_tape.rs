//! Writes the recording of `nfscope demo` from windows that `lab scenarios --write` has measured: `cargo run -p nfscope --example demo_tape`.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use nfscope::demo::day::SCENARIOS;
use serde_json::{Value, json};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for name in SCENARIOS {
        let path = root.join(format!("tests/windows/6.12/{name}.json.gz"));
        let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let window: Value = serde_json::from_reader(GzDecoder::new(file))?;
        all.push(json!({"name": name, "length": window["length"], "delta": window["delta"]}));
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(&all)?)?;
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/demo/tape.json.gz");
    fs::write(tape, packed.finish()?)?;
    Ok(())
}

//! Objects name no directory of the machine that built them, so that two builds make the same packages.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;

#[test]
fn objects_name_no_directory_of_their_build() {
    let out = env!("OUT_DIR");
    let here = env!("CARGO_MANIFEST_DIR");
    let mut objects = 0;
    for entry in fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "o") {
            continue;
        }
        objects += 1;
        let bytes = fs::read(&path).unwrap();
        for directory in [out, here] {
            let named = bytes
                .windows(directory.len())
                .any(|part| part == directory.as_bytes());
            assert!(!named, "{} names {directory}", path.display());
        }
    }
    assert!(objects > 5, "{objects}");
}

//! Readers of the host: none assumes that its tables are UTF-8, and none drops an error.

use crate::fixture::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Calls that drop a failure, or accept UTF-8 only. `host_table` and `bounded` have them on behalf of all others.
const FORBIDDEN: [&str; 4] = [
    "read_to_string(",
    "fs::read(",
    "fs::read_dir(",
    "File::open(",
];

/// Files of the source that may have these calls, each with the reason.
const MAY: [(&str, &str); 4] = [
    ("host_table.rs", "counts failures"),
    ("bounded.rs", "hands failures to its caller"),
    (
        "file_path.rs",
        "directories of users: one that must not be read hides a name, and the answer says so",
    ),
    (
        "linux/load/maps.rs",
        "the object of --test-nfsd-object, with an error that ends the start",
    ),
];

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// Statements of a file outside of comments and tests.
fn statements(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let text = text.split("#[cfg(test)]\npub mod ").next().unwrap();
    let lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|l| [l, "\n"]).collect();
    code.split(';').map(str::to_owned).collect()
}

#[test]
fn the_source_reads_the_host_through_readers_that_count_failures() {
    let source = root().join("agent/source/src");
    let mut all = Vec::new();
    files(&source, &mut all);
    assert!(all.len() > 50, "{}", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let name = path.strip_prefix(&source).unwrap();
        // Scripts and tools of illumos print frames, which report errors.
        if name.starts_with("illumos") || MAY.iter().any(|(file, _)| name == Path::new(file)) {
            continue;
        }
        for statement in statements(&path) {
            if FORBIDDEN.iter().any(|call| statement.contains(call)) {
                wrong.push(format!("{}: {}", name.display(), statement.trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "use host_table, which counts failures:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn tables_of_the_host_are_not_read_as_utf8() {
    let mut all = Vec::new();
    for entry in fs::read_dir(root().join("agent")).unwrap() {
        files(&entry.unwrap().path().join("src"), &mut all);
    }
    let mut wrong = Vec::new();
    for path in all {
        for statement in statements(&path) {
            let of_host = ["\"/proc", "\"/sys", "\"/etc"];
            if statement.contains("read_to_string(")
                && of_host.iter().any(|place| statement.contains(place))
            {
                wrong.push(format!("{}: {}", path.display(), statement.trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "names there are bytes: read bytes, or use host_table:\n{}",
        wrong.join("\n")
    );
}

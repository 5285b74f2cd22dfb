//! Reasons of tests that cannot run here; the summary of `make test` repeats them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Notes that the calling test does not run, and its reason. Follow it with a `return`.
///
/// The reason goes to standard error and, under `make test`, into the file that `NFSCOPE_SKIPS` names.
pub fn skip(reason: &str) {
    let test = test_name();
    eprintln!("{test} skipped: {reason}");
    if let Some(path) = std::env::var_os("NFSCOPE_SKIPS") {
        let noted = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{test}: {reason}"));
        if let Err(e) = noted {
            eprintln!("noting that in {}: {e}", Path::new(&path).display());
        }
    }
}

/// Name of the test that this process runs for cargo-nextest, or of this thread.
pub(crate) fn test_name() -> String {
    std::env::var("NEXTEST_TEST_NAME").unwrap_or_else(|_| {
        let thread = std::thread::current();
        thread.name().unwrap_or("a_test").to_owned()
    })
}

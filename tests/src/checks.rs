//! Named checks on one machine: a check that fails names itself, and does not stop the checks after it.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::cpu_time;

/// Variable with parts of the names of the checks to run, separated by commas, for work on them. A test that ran only some of its
/// checks does not pass.
const ONLY: &str = "LAB_CHECKS";

/// Runs `body` and then `undo`, also after an error or a panic.
///
/// # Errors
/// The error of `body`, else that of `undo`.
pub fn finally(body: impl FnOnce() -> Result<()>, undo: impl FnOnce() -> Result<()>) -> Result<()> {
    let ended = catch_unwind(AssertUnwindSafe(body));
    let undone = undo();
    match ended {
        Ok(ended) => ended.and(undone),
        Err(panic) => resume_unwind(panic),
    }
}

/// Checks of one test. Each may return an error or panic; [`Checks::finish`] fails with all that did.
#[derive(Debug)]
pub struct Checks {
    test: String,
    started: Instant,
    failed: Vec<(String, String)>,
    took: Vec<(String, Duration)>,
    only: Option<String>,
    left_out: usize,
}

impl Checks {
    /// Begins the checks of this test, whose name stands in front of each.
    pub fn new(test: &str) -> Checks {
        Checks {
            test: test.to_owned(),
            started: Instant::now(),
            failed: Vec::new(),
            took: Vec::new(),
            only: std::env::var(ONLY).ok(),
            left_out: 0,
        }
    }

    /// Runs a check and prints how it ended, how long it took, and the CPU time of this test's machines. Returns the check's
    /// findings, or `None` if it failed or was not selected.
    ///
    /// An error becomes a panic, so that the machines that run now keep their logs.
    pub fn run<T>(&mut self, check: &str, body: impl FnOnce() -> Result<T>) -> Option<T> {
        if self
            .only
            .as_ref()
            .is_some_and(|parts| !parts.split(',').any(|part| check.contains(part)))
        {
            self.left_out += 1;
            return None;
        }
        let started = Instant::now();
        let cpu_before = cpu_time::of_machines();
        let ended = catch_unwind(AssertUnwindSafe(|| match body() {
            Ok(found) => found,
            Err(e) => panic!("{e:?}"),
        }));
        let took = started.elapsed();
        self.took.push((check.to_owned(), took));
        let word = if ended.is_ok() { "ok" } else { "FAILED" };
        report(&format!(
            "check {} {check} ... {word} ({:.1} s, {:.1} CPU s)",
            self.test,
            took.as_secs_f64(),
            // CPU time of a machine that ended during the check is lost.
            (cpu_time::of_machines() - cpu_before).max(0.0)
        ));
        match ended {
            Ok(found) => Some(found),
            Err(panic) => {
                self.failed.push((check.to_owned(), message(&*panic)));
                None
            }
        }
    }

    /// Fails with the checks that failed, if there are any.
    ///
    /// # Errors
    /// The names of the failed checks and the message of each.
    pub fn finish(self) -> Result<()> {
        println!(
            "{}: {} checks in {:.0} s",
            self.test,
            self.took.len(),
            self.started.elapsed().as_secs_f64()
        );
        if self.failed.is_empty() {
            ensure!(
                self.left_out == 0,
                "{}: what was asked for with {ONLY} passed, {} checks were left out",
                self.test,
                self.left_out
            );
            return Ok(());
        }
        let names: Vec<&str> = self.failed.iter().map(|(name, _)| name.as_str()).collect();
        let said: Vec<String> = self
            .failed
            .iter()
            .map(|(name, error)| format!("--- {name}\n{error}"))
            .collect();
        bail!(
            "{}: {} of {} checks failed: {}\n{}",
            self.test,
            names.len(),
            self.took.len(),
            names.join(", "),
            said.join("\n")
        )
    }
}

/// Message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Writes to standard output, which is shown for tests that fail, and to the file that `NFSCOPE_CHECKS` names. The lab's own unit
/// tests do not write to that file.
fn report(line: &str) {
    println!("{line}");
    if let Some(path) = std::env::var_os("NFSCOPE_CHECKS").filter(|_| !cfg!(test)) {
        let noted = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{line}"));
        if let Err(e) = noted {
            eprintln!("noting that in {}: {e}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_hides_none_behind_it() {
        let mut checks = Checks::new("test");
        let mut ran = 0;
        checks.run("error", || -> Result<()> { bail!("first") });
        checks.run("panic", || {
            assert_eq!(1, 2, "second");
            Ok(())
        });
        let found = checks.run("good", || {
            ran += 1;
            Ok(3)
        });
        assert_eq!((ran, found), (1, Some(3)));
        let said = checks.finish().unwrap_err().to_string();
        assert!(
            said.starts_with("test: 2 of 3 checks failed: error, panic\n"),
            "{said}"
        );
        assert!(said.contains("first") && said.contains("second"), "{said}");
    }

    #[test]
    fn good_checks_are_no_error() {
        let mut checks = Checks::new("test");
        assert_eq!(checks.run("good", || Ok(1)), Some(1));
        checks.finish().unwrap();
    }
}

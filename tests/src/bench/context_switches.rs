//! Measurement of context switches in the machine: two processes without any NFS hand the CPU to each other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::load::{Program, difference, running_programs};
use super::median::median;

/// Cost of context switches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Switches {
    /// Context switches of the whole machine during the measurement.
    pub switches: u64,
    /// Nanoseconds of the whole measurement.
    pub ns: u64,
    /// Nanoseconds per switch in each tenth of the measurement, each between two new processes.
    pub tenths: Vec<f64>,
    /// Programs of the kernel that ran during the measurement, as in [`super::load::Measure`].
    pub programs: BTreeMap<String, Program>,
}

impl Switches {
    /// Time, or counted instructions, per switch, with the system calls around it. It is the median of the tenths, because work that
    /// an agent does once in some seconds, at times millions of instructions, is no cost of switches.
    pub fn per_switch(&self) -> f64 {
        median(&mut self.tenths.clone())
    }
}

/// Passes a byte to another process and back, `trips` times in each tenth.
pub fn run(trips: u64, programs: bool) -> Result<Switches> {
    let before = programs.then(running_programs).transpose()?;
    let (mut switches, mut ns, mut tenths) = (0, 0, Vec::with_capacity(10));
    for n in 0..10 {
        let mut partner = Partner::start()?;
        partner.pass(100)?;
        let trips = trips * (n + 1) / 10 - trips * n / 10;
        let before = switched()?;
        let started = Instant::now();
        partner.pass(trips)?;
        let took = u64::try_from(started.elapsed().as_nanos())?;
        let switched = switched()? - before;
        partner.end()?;
        // A round trip is two switches; now and then another task runs between.
        ensure!(
            (2 * trips..2 * trips + trips / 10 + 50).contains(&switched),
            "{trips} round trips took {switched} switches"
        );
        tenths.push(took as f64 / switched as f64);
        switches += switched;
        ns += took;
    }
    let after = programs.then(running_programs).transpose()?;
    Ok(Switches {
        switches,
        ns,
        tenths,
        programs: difference(before, after),
    })
}

/// The partner process, and the pipes to and from it.
struct Partner {
    process: Child,
    there: ChildStdin,
    back: ChildStdout,
}

impl Partner {
    fn start() -> Result<Partner> {
        let program = std::env::current_exe().context("finding the running program")?;
        let mut process = Command::new(&program)
            .args(["bench-guest", "echo"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let there = process.stdin.take().context("the partner's input")?;
        let back = process.stdout.take().context("the partner's output")?;
        Ok(Partner {
            process,
            there,
            back,
        })
    }

    fn pass(&mut self, trips: u64) -> Result<()> {
        let mut byte = [1];
        for _ in 0..trips {
            self.there.write_all(&byte)?;
            self.back.read_exact(&mut byte)?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        drop(self.there);
        let status = self.process.wait()?;
        ensure!(status.success(), "the partner said {status}");
        Ok(())
    }
}

/// Runs the partner process: returns each byte until the input ends.
pub fn echo() -> Result<()> {
    // Files without buffers leave only the pipes and the system calls.
    let mut from = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let mut byte = [0];
    while from.read(&mut byte)? > 0 {
        to.write_all(&byte)?;
    }
    Ok(())
}

fn switched() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let number = stat.lines().find_map(|line| line.strip_prefix("ctxt "));
    number
        .and_then(|n| n.trim().parse().ok())
        .context("no ctxt in /proc/stat")
}

//! `lab conformance`: pynfs and cthon04, suites that send requests that no client sends, against the server in a machine with an
//! agent. Every count of the agent has to equal the kernel's. Neither suite can be part of this repository: an admin brings them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::agent::Agent;
use crate::kernel::Kernel;
use crate::kernel_counters::KernelCounters;
use crate::reconcile::{lost, missed_of, operations, settled, window};
use crate::server::Server;
use nfscope_model::Snapshot;

/// Suites to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of pynfs: nfs4.0/testserver.py and nfs4.1/testserver.py are in it
    #[arg(long)]
    pub pynfs: Option<PathBuf>,
    /// Directory of cthon04, which `make` has built: runtests is in it
    #[arg(long)]
    pub cthon: Option<PathBuf>,
    /// The machine's kernel: 6.1, 6.12, 6.18 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// The machine's export: ext4, xfs, btrfs or tmpfs
    #[arg(long, default_value = "ext4")]
    pub export: String,
    /// Minutes that one run of a suite may take
    #[arg(long, default_value_t = 120)]
    pub minutes: u64,
}

/// Instructions to get the suites.
const HOW: &str =
    "lab conformance runs suites that are not part of this repository. Get one, or both:
  git clone git://git.linux-nfs.org/projects/cdmackay/pynfs.git && (cd pynfs && ./setup.py build)
  git clone git://git.linux-nfs.org/projects/steved/cthon04.git && make -C cthon04
then: lab conformance --pynfs pynfs --cthon cthon04";

/// A run of a suite.
#[derive(Debug)]
struct Run {
    /// Name of the run in the report.
    name: String,
    /// Commands that run in the machine.
    script: String,
}

/// Operations of one run, by kind, as counted by the kernel and the agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, (u64, u64)>);

impl Counts {
    /// Pairs the two counts of each operation.
    pub fn of(counted: &KernelCounters, seen: &Snapshot) -> Counts {
        let (v3, v4) = operations(seen);
        let pairs = [
            ("v3", counted.procs3(), v3),
            ("v4", counted.ops4_by_name(), v4),
        ];
        let mut all = BTreeMap::new();
        for (version, kernel, agent) in pairs {
            let kinds: BTreeSet<_> = kernel.keys().chain(agent.keys()).cloned().collect();
            for kind in kinds {
                let n = |of: &BTreeMap<String, u64>| of.get(&kind).copied().unwrap_or(0);
                all.insert(format!("{version} {kind}"), (n(&kernel), n(&agent)));
            }
        }
        Counts(all)
    }

    /// All operations, as counted by the kernel.
    pub fn total(&self) -> u64 {
        self.0.values().map(|(kernel, _)| kernel).sum()
    }

    /// Kinds whose two counts differ by more than the kernel's number of skipped programs, `missed`.
    pub fn wrong(&self, missed: u64) -> Vec<String> {
        let differs = |(kernel, agent): (u64, u64)| agent > kernel || kernel - agent > missed;
        let wrong = self.0.iter().filter(|(_, both)| differs(**both));
        wrong
            .map(|(kind, (kernel, agent))| format!("{kind}: kernel {kernel}, nfscope {agent}"))
            .collect()
    }

    fn table(&self) -> String {
        let mut text = format!("  {:<28} {:>9} {:>9}\n", "OPERATION", "KERNEL", "NFSCOPE");
        for (kind, (kernel, agent)) in &self.0 {
            let _ = writeln!(text, "  {kind:<28} {kernel:>9} {agent:>9}");
        }
        text
    }
}

/// Runs the suites, and prints the counts.
///
/// # Errors
/// When there is no suite, one could not be run, or a count differs.
pub fn run(options: &Options) -> Result<()> {
    suites(options)?;
    let server = Server::boot(options.kernel)
        .driven()
        .export(&options.export)
        .clients(1)
        .start()?;
    let agent = server.agent(&[])?;
    print!("{}", all(&server, &agent, options)?);
    agent.stop().map(drop)
}

/// Runs the suites against a running server. No client may have it mounted.
///
/// # Errors
/// The errors of [`run`].
pub fn all(server: &Server, agent: &Agent, options: &Options) -> Result<String> {
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for suite in suites(options)? {
        // Some directories of the host are hidden in the machine by its own ones: the suite is copied to a shared one.
        let here = server.dir().join(suite.name);
        if !here.exists() {
            copy(&suite.directory, &here)?;
        }
        for run in (suite.runs)(&here, server)? {
            let (counts, said, missed) = one(server, agent, &run, options)?;
            let _ = writeln!(
                text,
                "{}: {} operations of {} kinds\n{}{}",
                run.name,
                counts.total(),
                counts.0.len(),
                said,
                counts.table()
            );
            ensure!(
                counts.total() > 0,
                "{} sent no operation; it said:\n{said}",
                run.name
            );
            let differ = counts.wrong(missed).into_iter();
            wrong.extend(differ.map(|what| format!("{}: {what}", run.name)));
        }
    }
    ensure!(
        wrong.is_empty(),
        "{text}\ncounts differ:\n{}",
        wrong.join("\n")
    );
    Ok(text + "every kind of operation: as many as the kernel has counted\n")
}

struct Suite {
    name: &'static str,
    directory: PathBuf,
    runs: fn(&Path, &Server) -> Result<Vec<Run>>,
}

fn suites(options: &Options) -> Result<Vec<Suite>> {
    let mut all = Vec::new();
    if let Some(directory) = &options.pynfs {
        is_there(directory, "nfs4.1/testserver.py")?;
        all.push(Suite {
            name: "pynfs",
            directory: directory.clone(),
            runs: pynfs,
        });
    }
    if let Some(directory) = &options.cthon {
        is_there(directory, "runtests")?;
        all.push(Suite {
            name: "cthon04",
            directory: directory.clone(),
            runs: cthon,
        });
    }
    if all.is_empty() {
        bail!("{HOW}");
    }
    Ok(all)
}

fn is_there(directory: &Path, file: &str) -> Result<()> {
    let at = directory.join(file);
    ensure!(at.is_file(), "{} is not there\n{HOW}", at.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = std::process::Command::new("cp")
        .arg("-rL")
        .args([from, to])
        .status();
    let status = status.context("cp")?;
    ensure!(status.success(), "copying {} failed", from.display());
    Ok(())
}

/// Runs of pynfs for 4.0 and 4.1, if the directory has them.
fn pynfs(directory: &Path, _: &Server) -> Result<Vec<Run>> {
    let versions = ["nfs4.0", "nfs4.1"];
    let there = versions
        .iter()
        .filter(|v| directory.join(v).join("testserver.py").is_file());
    let run = |version: &&str| Run {
        name: format!("pynfs {version}"),
        script: format!(
            "cd {}/{version} && PYTHONDONTWRITEBYTECODE=1 python3 ./testserver.py 127.0.0.1:/run/exp --maketree all",
            directory.display()
        ),
    };
    Ok(there.map(run).collect())
}

/// Runs of cthon04 on a mount of each version.
fn cthon(directory: &Path, server: &Server) -> Result<Vec<Run>> {
    let client = server.client(0);
    let mut runs = Vec::new();
    for version in ["3", "4.0", "4.1", "4.2"] {
        let mount = client.mount_version(version)?;
        runs.push(Run {
            name: format!("cthon04 over {version}"),
            script: format!(
                "cd {} && NFSTESTDIR={mount}/cthon-{version} ./runtests -a -f",
                directory.display()
            ),
        });
    }
    Ok(runs)
}

/// Result of a run: the counts, its last lines, and programs that the kernel skipped.
fn one(
    server: &Server,
    agent: &Agent,
    run: &Run,
    options: &Options,
) -> Result<(Counts, String, u64)> {
    let before = settled(server, &[agent])?;
    let mut running = server.spawn(&run.script)?;
    // Suites exit with the number of failed tests. Those are the server's matter, and no error here.
    let ended = running.wait(Duration::from_secs(options.minutes * 60))?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    let mut said = String::new();
    for stream in [&ended.stdout, &ended.stderr] {
        let lines: Vec<_> = stream.lines().filter(|l| !l.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(4)..] {
            let _ = writeln!(said, "  | {line}");
        }
    }
    println!("{}: lost {:?}", run.name, lost(&seen));
    let missed = missed_of(&after.1[0], "nfsd");
    Ok((Counts::of(&counted, &seen), said, missed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_suite_it_says_how_to_get_them() {
        let none = Options {
            pynfs: None,
            cthon: None,
            kernel: Kernel::V6_12,
            export: "ext4".to_owned(),
            minutes: 1,
        };
        let error = run(&none).unwrap_err().to_string();
        assert!(
            error.contains("git clone") && error.contains("--pynfs"),
            "{error}"
        );
        let empty = Options {
            cthon: Some(PathBuf::from("/proc")),
            ..none
        };
        let error = run(&empty).unwrap_err().to_string();
        assert!(error.starts_with("/proc/runtests is not there"), "{error}");
    }

    #[test]
    fn a_count_too_many_is_wrong_and_one_that_was_missed_is_not() {
        let of = |both| Counts([("v4 read".to_owned(), both)].into());
        assert!(of((5, 5)).wrong(0).is_empty());
        assert!(of((5, 4)).wrong(1).is_empty());
        assert_eq!(of((5, 4)).wrong(0), ["v4 read: kernel 5, nfscope 4"]);
        assert_eq!(of((5, 6)).wrong(9), ["v4 read: kernel 5, nfscope 6"]);
    }
}

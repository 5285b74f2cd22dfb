//! Measurements from the host's side: a machine, and programs attached in turn, in rounds.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::attach::{self, Attached, Beside, With};
use super::context_switches::Switches;
use super::features;
use super::load::Measure;
use super::options::Options;
use super::possible_cpus;
use super::results::{Measured, Results};
use crate::breakdown::Breakdown;
use crate::load::Load;
use crate::paths;
use crate::server::Server;

/// Mixed operations before the agent's memory and scrapes are measured.
const MIXED: u64 = 3000;

/// Programs of each round; alone comes twice, because everything is compared with it.
const ROUND: &[With] = &[With::Nothing, With::NoPhases, With::Nothing, With::Agent];
/// Programs of every other round. bpftrace takes as long to start as all else in a round, and its scripts cost so much more than the
/// agent that fewer measurements are enough.
const SCRIPTS: &[With] = &[
    With::Bpftrace,
    With::OffCpu,
    With::Empty,
    With::Entered,
    With::BrokenDown(attach::ALL),
];
const QUICK: &[With] = &[
    With::Nothing,
    With::NoPhases,
    With::Agent,
    With::Entered,
    With::BrokenDown(attach::ALL),
];

pub(super) fn run(options: &Options, results: &mut Results) -> Result<()> {
    let begun = Instant::now();
    let say = |what: &str| eprintln!("bench: [{:4.0} s] {what}", begun.elapsed().as_secs_f64());
    say(&format!("booting kernel {}", options.kernel));
    let bench = Bench::boot(options)?;
    let rounds = options.rounds();
    // Caches are warmed here, not by the first measurement.
    if rounds > 0 {
        bench.measure(100, false)?;
    }
    for round in 1..=rounds {
        let (steps, scripts) = match (options.quick, round % 2) {
            (true, _) => (QUICK, [].as_slice()),
            (false, 0) => (ROUND, [].as_slice()),
            (false, _) => (ROUND, SCRIPTS),
        };
        for with in steps.iter().chain(scripts) {
            say(&format!("round {round} of {rounds}: {}", with.name()));
            let measured = bench.measure_with(*with, false)?;
            bench.keep(&measured)?;
            results.measured.push(measured);
        }
    }
    if options.per_program {
        for with in [With::Agent, With::Bpftrace, With::OffCpu] {
            if options.quick && with != With::Agent {
                continue;
            }
            say(&format!("the programs {}", with.name()));
            bench.server.sh("sysctl -q kernel.bpf_stats_enabled=1")?;
            results.per_program.push(bench.measure_with(with, true)?);
            bench.server.sh("sysctl -q kernel.bpf_stats_enabled=0")?;
        }
    }
    if !options.quick {
        say("start, memory and scrapes");
        bench.resources(results)?;
        drop(bench);
        for possible in possible_cpus::SIZES {
            say(&format!("{possible} possible CPUs"));
            results.sized.push(possible_cpus::measure(possible)?);
        }
    }
    say("done");
    Ok(())
}

/// Measures only the costs of single features.
pub(super) fn features(options: &Options) -> Result<Vec<Measured>> {
    Bench::boot(options)?.features()
}

/// Measures only the agent's start, memory, scrapes and pages.
pub(super) fn resources(options: &Options, results: &mut Results) -> Result<()> {
    Bench::boot(options)?.resources(results)
}

struct Bench<'a> {
    options: &'a Options,
    server: Server,
}

impl Bench<'_> {
    fn boot(options: &Options) -> Result<Bench<'_>> {
        let server = Server::boot(options.kernel)
            .export("tmpfs")
            .clients(1)
            .icount()
            .faithful()
            .start()?;
        // ext4 has the journal that the probes and the script attach to; tmpfs has none.
        server.sh("set -e
             modprobe -a ext4 nfs nfsv3 nfsv4; mkdir -p /run/bench/{3,4}
             mount -t nfs -o vers=3,nolock,proto=tcp 127.0.0.1:/run/exp /run/bench/3
             mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /run/bench/4")?;
        Ok(Bench { options, server })
    }

    fn measure_with(&self, with: With, programs: bool) -> Result<Measured> {
        let attached = Attached::attach(&self.server, with, self.options.without_queue)?;
        let measures = match with.operations() {
            true => self.measure(self.options.ops, programs)?,
            false => Vec::new(),
        };
        let switches = match with.switches() {
            true => Some(self.switches(programs)?),
            false => None,
        };
        attached.detach()?;
        Ok(Measured {
            with,
            measures,
            switches,
        })
    }

    fn measure(&self, ops: u64, programs: bool) -> Result<Vec<Measure>> {
        let mut arguments = format!("load --ops {ops}");
        for client in self.options.clients() {
            arguments += &format!(" --client {}", client.name());
        }
        for (flag, on) in [
            (" --quick", self.options.quick),
            (" --programs", programs),
            (" /run/bench/3 /run/bench/4", true),
        ] {
            if on {
                arguments += flag;
            }
        }
        self.inside(&arguments)
    }

    /// Adds the measurement to the file that has every measurement.
    fn keep(&self, measured: &Measured) -> Result<()> {
        let Some(path) = &self.options.raw else {
            return Ok(());
        };
        let name = measured.with.name();
        let line = serde_json::to_string(&(name, &measured.measures, &measured.switches))?;
        let mut file = File::options().create(true).append(true).open(path)?;
        writeln!(file, "{line}").with_context(|| format!("writing {}", path.display()))
    }

    /// Measures the costs of single features, each several times while it is attached, because attaching takes longest.
    fn features(&self) -> Result<Vec<Measured>> {
        const TIMES: usize = 3;
        self.server.sh("sysctl -q kernel.bpf_stats_enabled=1")?;
        let ops = self.options.ops;
        let mut all = Vec::new();
        let mut measure = |with: With| -> Result<()> {
            let load = match with {
                With::ClientView => "--client mount /run/bench/3 /run/bench/4",
                _ => "--features",
            };
            for _ in 0..TIMES {
                let measures: Vec<Measure> =
                    self.inside(&format!("load --ops {ops} --programs {load}"))?;
                ensure!(
                    with != With::ClientView || measures.iter().all(features::sees_mounts),
                    "--client saw no RPCs: {measures:?}"
                );
                let measured = Measured {
                    with,
                    measures,
                    switches: None,
                };
                self.keep(&measured)?;
                all.push(measured);
            }
            eprintln!("bench: {}: {}", with.name(), features::told(&all, with));
            Ok(())
        };
        // All break-downs are made by the same agent, one after the other, because attaching takes longest.
        let agent = attach::agent(&self.server, true)?;
        measure(With::Agent)?;
        let only = &self.options.without;
        if only.is_empty() {
            for (by, _) in features::BREAKDOWNS {
                let stream = Breakdown::begin(agent.address(), by)?;
                measure(With::BrokenDown(by))?;
                let told = stream.end()?;
                ensure!(told.total().count > 0, "nothing was broken down by {by}");
            }
        }
        agent.stop()?;
        let is_asked = |beside: &&Beside| only.is_empty() || only.contains(beside);
        for beside in Beside::value_variants().iter().filter(is_asked) {
            let with = With::Without(*beside);
            let attached = Attached::attach(&self.server, with, false)?;
            measure(with)?;
            attached.detach()?;
        }
        if only.is_empty() {
            let attached = Attached::attach(&self.server, With::ClientView, false)?;
            measure(With::ClientView)?;
            attached.detach()?;
        }
        Ok(all)
    }

    fn switches(&self, programs: bool) -> Result<Switches> {
        let flag = if programs { " --programs" } else { "" };
        self.inside(&format!("switches --trips {}{flag}", self.options.trips))
    }

    fn inside<T: serde::de::DeserializeOwned>(&self, arguments: &str) -> Result<T> {
        let output = self.server.lab(&format!("bench-guest {arguments}"))?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab bench-guest {arguments} printed {:?}", output.stdout))
    }

    /// Measures the agent's start, and after a mixed load its memory and scrapes.
    fn resources(&self, results: &mut Results) -> Result<()> {
        let program = paths::nfscope_program()?;
        let started = self.inside(&format!("start {}", program.display()))?;
        let before = self.maps()?;
        let agent = attach::agent(&self.server, true)?;
        results.maps = self.maps()?.saturating_sub(before);
        self.server.load(Load::mixed().ops(MIXED))?;
        let pid = self
            .server
            .sh(&format!("pgrep -o -x {}", agent.process()))?;
        let (port, pid) = (agent.port(), pid.stdout);
        let scraped = self.inside(&format!(
            "scrape 127.0.0.1:{port} {} {}",
            pid.trim(),
            program.display()
        ))?;
        agent.stop()?;
        results.inside = Some((started, scraped));
        Ok(())
    }

    /// Bytes of all BPF maps in the kernel.
    fn maps(&self) -> Result<u64> {
        let listed = self.server.sh("bpftool -j map show")?.stdout;
        let maps: Vec<serde_json::Value> = serde_json::from_str(&listed)?;
        Ok(maps
            .iter()
            .filter_map(|m| m["bytes_memlock"].as_u64())
            .sum())
    }
}

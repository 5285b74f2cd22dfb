//! The host's side: a machine, and measurements in it in turn.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::load::Measure;
use super::{Options, Results};
use crate::control::Running;
use crate::load::Load;
use crate::server::Server;
use crate::{Agent, place};

const PEER: &str = include_str!("../../guest/peer.bt");
/// For one measurement, or for bpftrace to attach: emulated, and beside another machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Mixed operations before the agent's memory and scrapes are measured.
const MIXED: u64 = 3000;

/// The script, if so wished without the section that times the queue.
fn peer(without_queue: bool) -> Result<String> {
    if !without_queue {
        return Ok(PEER.to_owned());
    }
    let (before, rest) = PEER
        .split_once("/* Queue:")
        .context("no queue in the script")?;
    let (_, after) = rest.split_once("/* Reply:").context("no reply after it")?;
    Ok(format!("{before}/* Reply:{after}"))
}

/// What is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Nothing.
    Nothing,
    /// The agent, all its probes on, nobody scraping.
    Agent,
    /// The bpftrace script.
    Bpftrace,
}

/// One measurement of each case.
#[derive(Debug)]
pub struct Phase {
    pub with: With,
    pub measures: Vec<Measure>,
}

pub(super) fn run(options: &Options, results: &mut Results) -> Result<()> {
    let begun = Instant::now();
    let say = |what: &str| eprintln!("bench: [{:4.0} s] {what}", begun.elapsed().as_secs_f64());
    say(&format!("booting kernel {}", options.kernel));
    let bench = Bench::boot(options)?;
    let turns: &[With] = if options.quick {
        &[With::Nothing, With::Agent, With::Nothing]
    } else {
        &[With::Nothing, With::Agent, With::Nothing, With::Bpftrace]
    };
    let rounds = if options.quick { 1 } else { options.rounds };
    // The first measurement would warm caches for the others.
    bench.measure(100, false)?;
    for round in 1..=rounds {
        for with in turns {
            say(&format!("round {round} of {rounds}: {}", with.name()));
            let phase = bench.phase(*with, false)?;
            if let Some(path) = &options.raw {
                let line = serde_json::to_string(&(with.name(), &phase.measures))?;
                let mut file = File::options().create(true).append(true).open(path)?;
                writeln!(file, "{line}").with_context(|| format!("writing {}", path.display()))?;
            }
            results.phases.push(phase);
        }
    }
    if options.per_program {
        for with in [With::Agent, With::Bpftrace] {
            if options.quick && with == With::Bpftrace {
                continue;
            }
            say(&format!("the programs of {}", with.name()));
            bench.server.sh("sysctl -q kernel.bpf_stats_enabled=1")?;
            results.per_program.push(bench.phase(with, true)?);
            bench.server.sh("sysctl -q kernel.bpf_stats_enabled=0")?;
        }
    }
    if !options.quick {
        say("start, memory and scrapes");
        bench.resources(results)?;
    }
    say("done");
    Ok(())
}

impl With {
    pub fn name(self) -> &'static str {
        match self {
            With::Nothing => "alone",
            With::Agent => "with the agent",
            With::Bpftrace => "with bpftrace",
        }
    }
}

/// Dropping it detaches.
enum Attached {
    Nothing,
    Agent(Agent),
    Bpftrace(Running),
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
            .start()?;
        // ext4 for its journal, which the probes and the script attach to although tmpfs has none.
        server.sh("set -e
             modprobe -a ext4 nfs nfsv3 nfsv4; mkdir -p /run/bench/{3,4}
             mount -t nfs -o vers=3,nolock,proto=tcp 127.0.0.1:/run/exp /run/bench/3
             mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /run/bench/4")?;
        Ok(Bench { options, server })
    }

    fn phase(&self, with: With, programs: bool) -> Result<Phase> {
        let attached = match with {
            With::Nothing => Attached::Nothing,
            With::Agent => Attached::Agent(self.agent()?),
            With::Bpftrace => Attached::Bpftrace(self.bpftrace()?),
        };
        let measures = self.measure(self.options.ops, programs)?;
        match attached {
            Attached::Nothing => {}
            Attached::Agent(agent) => drop(agent.stop()?),
            Attached::Bpftrace(mut running) => {
                running.signal(2)?;
                let said = running.wait(PATIENCE)?.ok("bpftrace")?;
                // A script that sees nothing costs nothing.
                for name in ["@dispatch_ns:", "@queue_ns:", "@reply_ns:"] {
                    let wanted = !(name == "@queue_ns:" && self.options.without_queue);
                    if wanted && !said.stdout.contains(name) {
                        bail!("bpftrace measured no {name} {}{}", said.stdout, said.stderr);
                    }
                }
            }
        }
        Ok(Phase { with, measures })
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

    fn inside<T: serde::de::DeserializeOwned>(&self, arguments: &str) -> Result<T> {
        let output = self.server.lab(&format!("bench-guest {arguments}"))?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab bench-guest {arguments} printed {:?}", output.stdout))
    }

    fn agent(&self) -> Result<Agent> {
        let agent = self.server.agent_start(&[])?;
        agent.wait_until_healthy(PATIENCE)?;
        Ok(agent)
    }

    fn bpftrace(&self) -> Result<Running> {
        let script = self.server.dir().join("peer.bt");
        std::fs::write(&script, peer(self.options.without_queue)?)?;
        let running = self
            .server
            .spawn(&format!("exec bpftrace {}", script.display()))?;
        let begun = Instant::now();
        loop {
            let (out, err) = running.output_so_far();
            if out.contains("attached") {
                return Ok(running);
            }
            if running.has_ended() || begun.elapsed() > PATIENCE {
                bail!("bpftrace did not attach: {out}{err}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The agent's start, and after a mixed load its memory and scrapes.
    fn resources(&self, results: &mut Results) -> Result<()> {
        let program = place::nfscope_program()?;
        let started = self.inside(&format!("start {}", program.display()))?;
        let before = self.maps()?;
        let agent = self.agent()?;
        results.maps = self.maps()?.saturating_sub(before);
        self.server.load(Load::mixed().ops(MIXED))?;
        let pid = self.server.sh(&format!("pidof -s {}", agent.process()))?;
        let (port, pid) = (agent.port(), pid.stdout);
        let scraped = self.inside(&format!("scrape 127.0.0.1:{port} {}", pid.trim()))?;
        agent.stop()?;
        results.inside = Some((started, scraped));
        Ok(())
    }

    /// Bytes of all maps in the kernel.
    fn maps(&self) -> Result<u64> {
        let listed = self.server.sh("bpftool -j map show")?.stdout;
        let maps: Vec<serde_json::Value> = serde_json::from_str(&listed)?;
        Ok(maps
            .iter()
            .filter_map(|m| m["bytes_memlock"].as_u64())
            .sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_do_without_its_queue() -> Result<()> {
        let script = peer(true)?;
        for (part, there) in [
            ("svc_xprt_", false),
            ("nfsd_dispatch", true),
            ("svc_send", true),
        ] {
            assert_eq!(script.contains(part), there, "{part}");
        }
        Ok(())
    }
}

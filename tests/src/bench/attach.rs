//! What is attached in the machine while it measures, from the host's side.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nfscope_model::ProbeState;

use crate::Agent;
use crate::breakdown::Breakdown;
use crate::control::Running;
use crate::server::Server;

const PEER: &str = include_str!("../../guest/peer.bt");
const OFF_CPU: &str = include_str!("../../guest/offcpu.bt");
/// The most that a break-down can be asked for.
pub(super) const ALL: &str = "by=client,export,op,version,user,file";
const EMPTY: &str = include_str!("../../guest/empty.py");
/// For one measurement, or for bpftrace to attach: emulated, and beside another machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Nothing.
    Nothing,
    /// The agent, which does not split operations into phases, nobody scraping.
    NoPhases,
    /// The agent, all its probes on, nobody scraping.
    Agent,
    /// The bpftrace script that asks what the agent without phases answers.
    Bpftrace,
    /// The bpftrace script that asks what the phases answer.
    OffCpu,
    /// A program at every context switch that does nothing.
    Empty,
    /// The agent, whose programs end before they do anything: what the kernel takes to enter them.
    Entered,
    /// The agent, while somebody has operations broken down by what is named.
    BrokenDown(&'static str),
    /// The agent, which leaves something out that it counts beside operations.
    Without(Beside),
    /// The agent, which looks at the machine's own mounts, too.
    ClientView,
}

/// What the agent counts beside operations and their time: enum counted_beside in probes/bpf/lib/tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Beside {
    /// Slots of sessions.
    Slots,
    /// Requests of each client that only walk, or open.
    Walks,
    /// Writes that may be lost.
    Durable,
}

impl Beside {
    /// The nfsd probe's object without it.
    fn left_out(self) -> &'static [u8] {
        match self {
            Beside::Slots => nfscope_probes::NFSD_WITHOUT_SLOTS,
            Beside::Walks => nfscope_probes::NFSD_WITHOUT_WALKS,
            Beside::Durable => nfscope_probes::NFSD_WITHOUT_DURABLE,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Beside::Slots => "slots of sessions",
            Beside::Walks => "walks and opens by client",
            Beside::Durable => "writes that may be lost",
        }
    }
}

impl With {
    pub fn name(self) -> String {
        let name = match self {
            With::Nothing => "alone",
            With::NoPhases => "with the agent without phases",
            With::Agent => "with the agent",
            With::Bpftrace => "with bpftrace",
            With::OffCpu => "with the off-CPU script",
            With::Empty => "with an empty program",
            With::Entered => "with the agent's programs emptied",
            With::BrokenDown(ALL) => "with the agent and a break-down",
            With::BrokenDown(by) => by,
            With::Without(beside) => return format!("without {}", beside.name()),
            With::ClientView => "with --client",
        };
        name.to_owned()
    }

    /// Whether it concerns NFS operations.
    pub fn operations(self) -> bool {
        self != With::Empty
    }

    /// Whether it concerns context switches.
    pub fn switches(self) -> bool {
        matches!(
            self,
            With::Nothing | With::NoPhases | With::Agent | With::OffCpu | With::Empty
        )
    }
}

/// Attached; dropping it detaches, but [`Attached::detach`] also looks whether it saw anything.
pub(super) enum Attached {
    Nothing,
    Agent(Agent),
    /// With a stream.
    Breakdown(Agent, Breakdown),
    /// With what the script must have printed.
    Script(Running, Vec<&'static str>),
}

impl Attached {
    /// Attaches it, the script perhaps without its queue.
    pub fn attach(server: &Server, with: With, without_queue: bool) -> Result<Attached> {
        Ok(match with {
            With::Nothing => Attached::Nothing,
            With::NoPhases => Attached::Agent(agent(server, false)?),
            With::Agent => Attached::Agent(agent(server, true)?),
            With::Entered => Attached::Agent(healthy(server, &["--test-skip-one-in", "1"])?),
            With::BrokenDown(by) => {
                let agent = agent(server, true)?;
                let stream = Breakdown::begin(agent.address(), by)?;
                Attached::Breakdown(agent, stream)
            }
            With::Without(beside) => {
                let object = server.dir().join("nfsd.bpf.o");
                fs::write(&object, beside.left_out())
                    .with_context(|| format!("writing {}", object.display()))?;
                let object = object.display().to_string();
                Attached::Agent(healthy(server, &["--test-nfsd-object", &object])?)
            }
            With::ClientView => Attached::Agent(healthy(server, &["--client"])?),
            With::Bpftrace => {
                let mut prints = vec!["@dispatch_ns:", "@reply_ns:"];
                if !without_queue {
                    prints.push("@queue_ns:");
                }
                Attached::Script(script(server, "bpftrace", &peer(without_queue)?)?, prints)
            }
            With::OffCpu => {
                Attached::Script(script(server, "bpftrace", OFF_CPU)?, vec!["@off_ns["])
            }
            With::Empty => Attached::Script(script(server, "python3", EMPTY)?, Vec::new()),
        })
    }

    /// Detaches it.
    pub fn detach(self) -> Result<()> {
        match self {
            Attached::Nothing => {}
            Attached::Agent(agent) => drop(agent.stop()?),
            Attached::Breakdown(agent, stream) => {
                let told = stream.end()?;
                agent.stop()?;
                // One that sees nothing costs nothing.
                ensure!(told.total().count > 0, "nothing was broken down");
            }
            Attached::Script(mut running, prints) => {
                running.signal(2)?;
                let said = running.wait(PATIENCE)?.ok("the script")?;
                // A script that sees nothing costs nothing.
                for name in prints {
                    if !said.stdout.contains(name) {
                        bail!(
                            "the script measured no {name} {}{}",
                            said.stdout,
                            said.stderr
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

/// An agent with these arguments that times operations.
fn healthy(server: &Server, arguments: &[&str]) -> Result<Agent> {
    let agent = server.agent_start(arguments)?;
    agent.wait_until_healthy(PATIENCE)?;
    Ok(agent)
}

/// The agent, attached.
pub(super) fn agent(server: &Server, phases: bool) -> Result<Agent> {
    let arguments: &[&str] = if phases { &[] } else { &["--no-phases"] };
    let agent = healthy(server, arguments)?;
    let probes = agent.snapshot()?.probes;
    let mut switched = probes.iter().filter(|p| p.probe == "sched");
    let there = switched.any(|p| p.state == ProbeState::Attached);
    ensure!(
        there == phases,
        "the agent {arguments:?} splits operations into phases: {there}"
    );
    Ok(agent)
}

/// Runs a script, which says so when it is attached.
fn script(server: &Server, interpreter: &str, text: &str) -> Result<Running> {
    let path = server.dir().join("script");
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    let running = server.spawn(&format!("exec {interpreter} {}", path.display()))?;
    let begun = Instant::now();
    loop {
        let (out, err) = running.output_so_far();
        if out.contains("attached") {
            return Ok(running);
        }
        if running.has_ended() || begun.elapsed() > PATIENCE {
            bail!("{interpreter} did not attach: {out}{err}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

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

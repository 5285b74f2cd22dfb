//! The agent of nfscope, running in the machine and reached from the host.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nfscope_model::Snapshot;

use crate::control::{self, Output, Running};
use crate::http::{self, Lines, Response};
use crate::machine::Machine;
use crate::protocol::AGENT_PORTS;

/// A running agent. Dropping it kills it.
#[derive(Debug)]
pub struct Agent {
    n: usize,
    address: SocketAddr,
    log: PathBuf,
    running: Running,
    port: Port,
    /// Time of the last snapshot by the machine's CLOCK_MONOTONIC; zero before the first one and while the agent attaches.
    last: Mutex<Duration>,
}

/// Ports of the machine for agents: true if taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports(Arc<Mutex<[bool; AGENT_PORTS.len()]>>);

impl Ports {
    fn take(&self) -> Result<Port> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = taken.iter().position(|t| !t).with_context(|| {
            format!(
                "{} agents run in this machine, and it forwards no more ports",
                AGENT_PORTS.len()
            )
        })?;
        taken[n] = true;
        Ok(Port {
            n,
            ports: self.clone(),
        })
    }
}

/// A port of the machine for an agent, given back when it is dropped.
#[derive(Debug)]
struct Port {
    n: usize,
    ports: Ports,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.ports.0.lock().unwrap_or_else(PoisonError::into_inner)[self.n] = false;
    }
}

/// Longest wait for an answer, other than while the agent attaches.
const PATIENCE: Duration = Duration::from_secs(60);

impl Agent {
    pub(crate) fn start(
        machine: &Machine,
        program: &Path,
        n: usize,
        ports: &Ports,
        arguments: &[&str],
    ) -> Result<Agent> {
        let port = ports.take()?;
        let address = machine
            .agent(port.n)
            .context("the machine forwards no port")?;
        let log = machine.shared().join(format!("agent-{n}.log"));
        let program = machine.install(program, &format!("nfscope-{n}"))?;
        let program = program.display();
        // An icount machine gets the program into its memory, as `in_memory` does with the programs of its boot.
        let own = if machine.icount() {
            format!("touch {program} && ")
        } else {
            String::new()
        };
        let number = AGENT_PORTS[port.n];
        // A killed agent keeps its port until the kernel has detached its programs, which takes seconds here.
        let free = format!(
            "for try in {{1..300}}; do (exec 3<>/dev/tcp/127.0.0.1/{number}) 2>/dev/null || break; sleep 0.1; done"
        );
        let mut command = format!(
            "{own}{free}; exec {program} agent --web.allow-details --web.allow-file-names --web.listen-address 0.0.0.0:{number}"
        );
        for argument in arguments {
            command += &format!(" '{}'", argument.replace('\'', r"'\''"));
        }
        let running = machine.run(None, &format!("{command} >{} 2>&1", log.display()))?;
        let agent = Agent {
            n,
            address,
            log,
            running,
            port,
            last: Mutex::default(),
        };
        agent.wait_for("an answer at /healthz", PATIENCE, |status| status > 0)?;
        Ok(agent)
    }

    /// Address and port at which the host reaches the agent.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Port of the agent inside the machine.
    pub fn port(&self) -> u16 {
        AGENT_PORTS[self.port.n]
    }

    /// Name of the agent's process: `pidof` in the machine finds this agent and no other.
    pub fn process(&self) -> String {
        format!("nfscope-{}", self.n)
    }

    /// Waits until /healthz answers 200: NFS operations are being timed.
    pub fn wait_until_healthy(&self, patience: Duration) -> Result<()> {
        self.wait_for("200 at /healthz", patience, |status| status == 200)
    }

    fn wait_for(&self, what: &str, patience: Duration, enough: fn(u16) -> bool) -> Result<()> {
        let patience = self.running.slower() * patience;
        let started = Instant::now();
        loop {
            let answer = http::get(self.address, "/healthz", &[]);
            // An answer counts only if the agent still runs: after its end another process may listen at that address.
            let end = self.running.end();
            let last = match answer {
                Ok(response) if enough(response.status) && end.is_none() => return Ok(()),
                Ok(response) => format!("{} {}", response.status, response.text().trim()),
                Err(e) => format!("{e:#}"),
            };
            if let Some(end) = end {
                bail!(
                    "the agent {end} instead of giving {what}; its log ({}):\n{}",
                    self.log.display(),
                    self.log()
                );
            }
            if started.elapsed() > patience {
                bail!(
                    "the agent did not give {what} within {patience:?} (last: {last}); its log ({}):\n{}",
                    self.log.display(),
                    self.log()
                );
            }
            // An emulated agent takes a good part of a tenth of a second for each question, and attaches later for it.
            control::pass(if self.running.slower() > 1 {
                Duration::from_secs(1)
            } else {
                Duration::from_millis(100)
            });
        }
    }

    /// The body at this path; an error unless the status is 200.
    pub fn get(&self, path: &str) -> Result<String> {
        Ok(self.get_with(path, &[])?.text())
    }

    /// The answer to a request with these headers; an error unless the status is 200. Repeats the request while the agent attaches,
    /// which takes a minute on two emulated CPUs.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        let mut response = self.get_raw(path, headers)?;
        for _ in 0..PATIENCE.as_secs() {
            if response.status != 503 || !response.text().contains("is busy") {
                break;
            }
            control::pass(Duration::from_secs(1));
            response = self.get_raw(path, headers)?;
        }
        if response.status != 200 {
            bail!(
                "GET http://{}{path} answered {}: {}",
                self.address,
                response.status,
                response.text()
            );
        }
        Ok(response)
    }

    /// Newest snapshot of the agent: never the one before, which the agent repeats to a client that asks at once. A quarter of a
    /// second of an icount machine may be a whole load. Empty while the agent attaches.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while started.elapsed() < self.running.slower() * PATIENCE {
            let body = self.get("/snapshot")?;
            let now: Snapshot = serde_json::from_str(&body)
                .with_context(|| format!("http://{}/snapshot is no snapshot", self.address))?;
            if now.at.is_zero() || now.at != *last {
                *last = now.at;
                return Ok(now);
            }
            control::pass(Duration::from_millis(50));
        }
        bail!(
            "the agent reads nothing new: its last snapshot is of {:?}",
            *last
        )
    }

    /// The whole answer at this path to a request with these headers.
    pub fn get_raw(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        http::get(self.address, path, headers)
    }

    /// Listens for slow operations that the query of `/slow` describes, from now on.
    pub fn slow(&self, query: &str) -> Result<Lines> {
        Lines::open(self.address, &format!("/slow?{query}"))
    }

    /// Log of the agent so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// True while the agent runs.
    pub fn is_running(&self) -> bool {
        !self.running.has_ended()
    }

    /// Sends the agent a signal: 2, 9, 15, 18 or 19.
    pub fn signal(&mut self, signal: i32) -> Result<()> {
        self.running.signal(signal)
    }

    /// Waits for the agent's end, which the caller must cause; its log is the standard error.
    pub fn wait(&mut self, patience: Duration) -> Result<Output> {
        let mut output = self.running.wait(patience)?;
        output.stderr = self.log();
        Ok(output)
    }

    /// Stops the agent as systemd would (SIGTERM), and checks that it ends within the minute that it has to detach.
    pub fn stop(mut self) -> Result<Output> {
        self.running.signal(15)?;
        let output = self.wait(PATIENCE)?;
        output.ok("nfscope agent, stopped by SIGTERM,")
    }
}

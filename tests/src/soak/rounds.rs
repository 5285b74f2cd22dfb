//! A round: the server works, onlookers ask, clients come and go. Then the load ends, and everything is counted.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::clock::Clock;
use super::event::Event;
use super::exposition::Exposition;
use super::figures::{self, Figures};
use super::onlookers::{Excuse, Onlookers};
use crate::agent::Agent;
use crate::kernel_counters::KernelCounters;
use crate::load::Load;
use crate::server::Server;

/// Network namespaces with mounts.
pub const MOUNTS: usize = 3;
/// Groups of clients that come back again and again, each with a series of its own that must be exact.
const GROUPS: u32 = 3;
/// Clients of a group, and clients in each round that come once and never again.
const CLIENTS: u32 = 100;
const KNOWN: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);
const STRANGERS: Ipv4Addr = Ipv4Addr::new(127, 32, 0, 1);

/// Shortest time of a round's load.
const LASTS: Duration = Duration::from_secs(30);

/// Longest time in which `nfscope-http` is killed now and then.
const KILLS: Duration = Duration::from_secs(3600);

/// Result of a round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Number of the round, from 0.
    pub n: usize,
    /// Event before the round.
    pub event: Option<Event>,
    /// Hours until its end.
    pub hours: f64,
    /// Operations that the kernel counted since the last round.
    pub operations: u64,
    /// Clients that came back and whose series grew by exactly what they had sent.
    pub exact_clients: usize,
    /// Clients that lost their series so far, and rows of clients in use.
    pub evictions: u64,
    pub rows: u64,
    /// Quantities that are to be flat.
    pub figures: Figures,
    /// Seconds since `nfscope-http` was started.
    pub http_age: f64,
    /// Operations so far while no probe was attached.
    pub unseen: u64,
    /// Counts that differ.
    pub wrong: Vec<String>,
}

/// Rounds, played one after the other.
#[derive(Debug)]
pub struct Rounds<'a> {
    server: &'a Server,
    agent: &'a mut Agent,
    onlookers: &'a Onlookers,
    hours: Duration,
    n: usize,
    /// Begin of the comparison: zero, and after a reload the readings with the probe attached again.
    first: (KernelCounters, Exposition),
    /// Readings at the end of the last round; both begin anew with nfsd's module.
    kernel: KernelCounters,
    seen: Exposition,
    /// Operations while no probe was attached.
    unseen: u64,
    /// True once every group has come since the counters' begin.
    introduced: bool,
}

impl<'a> Rounds<'a> {
    pub fn new(
        server: &'a Server,
        agent: &'a mut Agent,
        onlookers: &'a Onlookers,
        hours: Duration,
    ) -> Rounds<'a> {
        Rounds {
            server,
            agent,
            onlookers,
            hours,
            n: 0,
            first: Default::default(),
            kernel: KernelCounters::default(),
            seen: Exposition::default(),
            unseen: 0,
            introduced: false,
        }
    }

    /// Log of the agent so far.
    pub fn log(&self) -> String {
        self.agent.log()
    }

    /// Plays the next round.
    ///
    /// # Errors
    /// When the machine, a load or the agent fails. Counts that differ are in the round.
    pub fn play(&mut self, clock: &Clock) -> Result<Round> {
        let n = self.n;
        self.n += 1;
        let event = Event::before(n, clock.elapsed() < (self.hours / 2).min(KILLS));
        let mut wrong = Vec::new();
        if let Some(event) = event {
            self.happens(event, &mut wrong)
                .with_context(|| format!("{} before round {n}", event.name()))?;
        }
        let sent = self.load().with_context(|| format!("round {n}"))?;
        let nobody = self.onlookers.pause();
        let (kernel, seen) = self.quiet()?;
        wrong.extend(self.differ(&kernel, &seen));
        let (exact_clients, others) = self.clients(&sent, &seen);
        wrong.extend(others);
        let (figures, http_age) = figures::read(self.server, self.agent, seen.series)?;
        drop(nobody);
        let round = Round {
            n,
            event,
            hours: clock.elapsed().as_secs_f64() / 3600.0,
            operations: (&kernel - &self.kernel).operations(),
            exact_clients,
            evictions: seen.evictions,
            rows: seen.rows,
            figures,
            http_age,
            unseen: self.unseen,
            wrong,
        };
        (self.kernel, self.seen) = (kernel, seen);
        Ok(round)
    }

    /// Runs the load: mounts of both versions work all the time; meanwhile a group comes back, and then strangers. Returns the
    /// operations of each client of the group.
    fn load(&mut self) -> Result<BTreeMap<String, u64>> {
        let (seed, began) = (self.n as u64, Instant::now());
        // A fresh mount beside two old ones.
        self.server.client(self.n % MOUNTS).unmount_all()?;
        let mixed = Load::mixed().endless().seed(seed);
        let mut mixed = self
            .server
            .start_load(mixed.every(Duration::from_millis(20)))?;
        let mut sent = BTreeMap::new();
        let groups = match std::mem::replace(&mut self.introduced, true) {
            true => self.n as u32 % GROUPS..self.n as u32 % GROUPS + 1,
            // All groups come while the table has room: a new client in a full table is counted for `other` at first.
            false => 0..GROUPS,
        };
        for group in groups {
            let from = Ipv4Addr::from_bits(KNOWN.to_bits() + group * CLIENTS);
            let load =
                format!("revalidate --from {from} --clients {CLIENTS} --threads 8 --times 20");
            for client in self.server.run_clients(&load)? {
                sent.insert(client.address.to_string(), client.operations);
            }
        }
        let from = Ipv4Addr::from_bits(STRANGERS.to_bits() + self.n as u32 * CLIENTS);
        let load = format!("write --from {from} --clients {CLIENTS} --at-once 8 --times 1");
        self.server.run_clients(&load)?;
        thread::sleep(LASTS.saturating_sub(began.elapsed()));
        ensure!(
            !mixed.has_ended(),
            "the load ended: {}",
            mixed.output_so_far().1.trim()
        );
        mixed.signal(2)?;
        mixed.wait(Duration::from_secs(120))?;
        Ok(sent)
    }

    /// Number of clients whose series grew by their operations, and errors of the others. If rows were given back meanwhile, a series
    /// may have less, and `other` has the rest.
    fn clients(&self, sent: &BTreeMap<String, u64>, seen: &Exposition) -> (usize, Vec<String>) {
        let given_back = seen.rows < self.seen.rows;
        let (mut exact, mut wrong) = (0, Vec::new());
        for (client, sent) in sent {
            let of = |e: &Exposition| e.clients.get(client).copied().unwrap_or(0);
            let grew = of(seen).saturating_sub(of(&self.seen));
            if grew == *sent {
                exact += 1;
            } else if grew > *sent || !given_back {
                wrong.push(format!("{client}: {grew} by /metrics, {sent} were sent"));
            }
        }
        (exact, wrong)
    }

    /// Differences between both counts of the operations since the module was loaded.
    fn differ(&self, kernel: &KernelCounters, seen: &Exposition) -> Vec<String> {
        seen.since(&self.first.1).differs(&(kernel - &self.first.0))
    }

    /// Readings of both counts at the same moment.
    fn quiet(&self) -> Result<(KernelCounters, Exposition)> {
        let mut last = self.server.kernel_counters()?;
        for _ in 0..120 {
            // Clients close files and return delegations after a load's end. The pause is longer than the agent repeats an answer.
            thread::sleep(Duration::from_millis(500));
            let seen = Exposition::parse(&self.agent.get("/metrics")?)?;
            let now = self.server.kernel_counters()?;
            if now == last {
                return Ok((now, seen));
            }
            last = now;
        }
        bail!("requests keep coming without a load")
    }

    fn happens(&mut self, event: Event, wrong: &mut Vec<String>) -> Result<()> {
        match event {
            Event::Restart => {
                self.server.nfsd_stop()?;
                self.server.nfsd_start()
            }
            Event::Reload => self.reload(wrong),
            Event::Hangup => {
                let exports = 50 + self.n % 50;
                let agent = self.agent.process();
                self.server.sh(&format!(
                    "printf '[limits]\\nexports = {exports}\\n' >/run/soak/nfscope.toml; kill -HUP $(pgrep -o -x {agent})"
                ))?;
                Ok(())
            }
            Event::Kill => {
                self.onlookers.excuse(Excuse::Unserved);
                self.server.sh("kill -9 $(pgrep -x nfscope-http)")?;
                self.agent.wait_until_healthy(Duration::from_secs(60))?;
                self.onlookers.excuse(Excuse::None);
                Ok(())
            }
        }
    }

    /// Replaces the module. The kernel's counters and the probe's begin anew; the old ones are compared before.
    fn reload(&mut self, wrong: &mut Vec<String>) -> Result<()> {
        self.onlookers.excuse(Excuse::Untimed);
        for client in self.server.clients() {
            client.unmount_all()?;
        }
        let (kernel, seen) = self.quiet()?;
        wrong.extend(self.differ(&kernel, &seen));
        self.server.nfsd_stop()?;
        let (nfscope, port) = (self.server.nfscope_path()?, self.agent.port());
        // mountd holds a reference to the module by the caches that it fills.
        self.server.sh(&format!(
            "set -e
             {} detach nfsd --url http://127.0.0.1:{port}
             exportfs -ua
             pkill -x rpc.mountd
             pkill -x nfsdcld || true
             umount /proc/fs/nfsd
             for try in {{1..100}}; do rmmod nfsd 2>/run/soak/rmmod && break; sleep 0.2; done
             if grep '^nfsd ' /proc/modules >&2; then cat /run/soak/rmmod >&2; exit 1; fi",
            nfscope.display()
        ))?;
        self.server.nfsd_start()?;
        self.agent.wait_until_healthy(Duration::from_secs(300))?;
        self.onlookers.excuse(Excuse::None);
        // Clients that had already unmounted may still end their sessions at the new server before the probe is attached to it.
        let (kernel, seen) = self.quiet()?;
        self.unseen += kernel.operations().saturating_sub(seen.operations());
        self.first = (kernel.clone(), seen.clone());
        (self.kernel, self.seen) = (kernel, seen);
        self.introduced = false;
        Ok(())
    }
}

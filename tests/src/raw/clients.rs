//! Many clients, each with an address and a connection of its own, each doing one thing again and again and knowing how
//! often.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

pub use super::operation::Operation;
use super::operation::Ready;
use super::rpc::root_handle;
use super::{EXPORT, Wire};

/// Who calls, what and how often.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientLoad {
    /// What each client does
    #[arg(value_enum)]
    pub operation: Operation,
    /// ClientLoad
    #[arg(long, default_value_t = 1)]
    pub clients: u32,
    /// So many of them at a time; unless told so, all, and none begins before all are prepared
    #[arg(long)]
    pub at_once: Option<u32>,
    /// Operations of the first client
    #[arg(long, default_value_t = 10)]
    pub times: u32,
    /// Go on for so many seconds instead, however many operations that makes
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Milliseconds from one operation of a client to its next one, which comes at once where the last one took longer; the
    /// clients take turns
    #[arg(long, default_value_t = 0.0)]
    pub every: f64,
    /// Each operation not at the beginning of its turn but somewhere in it, at random and the same each time: else what else happens
    /// every so often always meets the same clients
    #[arg(long)]
    pub scatter: bool,
    /// Each client does so many more than the one before
    #[arg(long, default_value_t = 0)]
    pub more: u32,
    /// NFS version: 3, 4.0, 4.1 or 4.2
    #[arg(long, default_value = "3")]
    pub nfs: String,
    /// The path of the export
    #[arg(long, default_value = EXPORT)]
    pub export: String,
    /// The first client's address; each other has the next one
    #[arg(long, default_value = "127.0.0.1")]
    pub from: Ipv4Addr,
    /// Bytes of each READ and WRITE
    #[arg(long, default_value_t = 4096)]
    pub size: u32,
    /// READs and WRITEs keep to the first so many megabytes: READs, twice their size apart, are in an order that
    /// reading ahead does not help, WRITEs begin anew at the end
    #[arg(long)]
    pub within: Option<u32>,
    /// WRITEs ask for nothing durable
    #[arg(long)]
    pub unstable: bool,
    /// WRITEs of all clients go to the file that all share
    #[arg(long)]
    pub together: bool,
    /// The file in the export that READs are from
    #[arg(long, default_value = "shared")]
    pub file: String,
    /// Milliseconds that a client lets each reply wait on its socket
    #[arg(long, default_value_t = 0)]
    pub stall: u64,
    /// Bytes of each client's receive buffer
    #[arg(long)]
    pub buffer: Option<usize>,
}

impl ClientLoad {
    /// Where a READ is from: no two from one place, and none that reading ahead of another one would bring.
    pub(super) fn read_at(&self, n: u32, step: u32) -> u64 {
        let place = u64::from(step) * u64::from(self.clients) + u64::from(n);
        match self.within {
            None => place << 20,
            Some(megabytes) => {
                let apart = u64::from(self.size.max(1)) * 2;
                let places = ((u64::from(megabytes) << 20) / apart).max(1);
                // A prime number of places away from the last one: every place comes once before one comes again.
                place * 40_503 % places * apart
            }
        }
    }

    /// Where a WRITE goes: behind the client's last one.
    pub(super) fn write_at(&self, n: u32, step: u32) -> u64 {
        let place = if self.together {
            u64::from(step) * u64::from(self.clients) + u64::from(n)
        } else {
            u64::from(step)
        };
        let at = place * u64::from(self.size);
        match self.within {
            None => at,
            Some(megabytes) => at % (u64::from(megabytes) << 20),
        }
    }

    /// One client's operations, from the first to the last.
    fn play(&self, n: u32, mut client: Ready) -> Result<Wire> {
        let every = Duration::try_from_secs_f64(self.every / 1e3)?;
        let end = self.seconds.map(Duration::try_from_secs_f64).transpose()?;
        let started = Instant::now();
        let mut next = every * n / self.clients;
        let mut random = SmallRng::seed_from_u64(n.into());
        client.wire.stall = Duration::from_millis(self.stall);
        for step in 0.. {
            let enough = match end {
                Some(end) => started.elapsed() >= end,
                None => step >= self.times + n * self.more,
            };
            if enough {
                break;
            }
            let late = match self.scatter {
                true => every.mul_f64(random.random()),
                false => Duration::ZERO,
            };
            thread::sleep((next + late).saturating_sub(started.elapsed()));
            next = started.elapsed().saturating_sub(late).max(next) + every;
            client.go(step)?;
        }
        client.wire.stall = Duration::ZERO;
        client.end()
    }
}

/// What one client has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Its address.
    pub address: Ipv4Addr,
    /// NFSv3 procedures and NFSv4 component operations that it sent, those that prepared the rest included.
    pub operations: u64,
    /// From just before each call was sent until its reply was read, all calls together.
    pub seconds: f64,
}

/// Lets them all call, and says who has done what.
pub fn run(load: &ClientLoad) -> Result<Vec<ClientReport>> {
    let root = root_handle(&load.export)?;
    let next = AtomicU32::new(0);
    let done = Mutex::new(Vec::new());
    let prepared = Barrier::new(if load.at_once.is_none() {
        load.clients as usize
    } else {
        1
    });
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= load.clients {
                    return Ok(());
                }
                let address = Ipv4Addr::from_bits(load.from.to_bits() + n);
                let ready = Ready::prepare(load, n, address, &root);
                // Also with one that failed, or the others would wait for it for ever.
                prepared.wait();
                let wire = ready
                    .and_then(|client| load.play(n, client))
                    .with_context(|| format!("client {n}, {address}"))?;
                done.lock()
                    .map_err(|_| anyhow!("a client panicked"))?
                    .push(ClientReport {
                        address,
                        operations: wire.sent.operations(),
                        seconds: wire.waited.as_secs_f64(),
                    });
            }
        };
        let at_once = load.at_once.unwrap_or(load.clients);
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(())
    })?;
    let mut done = done
        .into_inner()
        .map_err(|_| anyhow!("a client panicked"))?;
    done.sort_by_key(|client| client.address);
    Ok(done)
}

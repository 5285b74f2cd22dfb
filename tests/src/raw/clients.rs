//! Many clients, each with an address and a connection of its own. Each repeats one operation and counts it.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::client::Client;
pub use super::client_load::ClientLoad;
pub use super::operation::Operation;
use super::rpc::root_handle;
use super::wire::Wire;
use crate::begun;

/// Counts of one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Address of the client.
    pub address: Ipv4Addr,
    /// NFSv3 procedures and NFSv4 component operations that the client sent, those that prepared the rest included.
    pub operations: u64,
    /// RPC calls of these operations.
    pub requests: u64,
    /// Seconds from just before each call was sent until its reply was read, all calls together.
    pub seconds: f64,
}

/// Lets all clients call, and returns the counts of each.
pub fn run(load: &ClientLoad) -> Result<Vec<ClientReport>> {
    let root = root_handle(&load.export)?;
    let next = AtomicU32::new(0);
    let done = Mutex::new(Vec::new());
    let threads = load.at_once.or(load.threads).unwrap_or(load.clients);
    let threads = threads.min(load.clients).max(1);
    // Clients that a thread prepares before one of them begins.
    let each = load.threads.map_or(1, |_| load.clients.div_ceil(threads));
    let prepared = Barrier::new(match load.at_once {
        Some(_) => 1,
        None => threads as usize,
    });
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            loop {
                let first = next.fetch_add(each, Ordering::Relaxed);
                let clients = first..first.saturating_add(each).min(load.clients);
                // A thread may be left without clients, because each takes several at once; the others wait for it all the same.
                if clients.is_empty() && (each == 1 || first >= each * threads) {
                    return Ok(());
                }
                let prepare = |n: u32| {
                    let address = Ipv4Addr::from_bits(load.from.to_bits() + n);
                    (n, address, Client::prepare(load, n, address, &root))
                };
                let ready: Vec<_> = clients.map(prepare).collect();
                // A client that failed takes part in the barrier, too, or the others would wait for it for ever.
                if prepared.wait().is_leader() {
                    begun::tell();
                }
                for (n, address, client) in ready {
                    let wire = client
                        .and_then(|client| call(load, n, client))
                        .with_context(|| format!("client {n}, {address}"))?;
                    done.lock()
                        .map_err(|_| anyhow!("a client panicked"))?
                        .push(ClientReport {
                            address,
                            operations: wire.sent.operations(),
                            requests: wire.sent.calls,
                            seconds: wire.waited.as_secs_f64(),
                        });
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
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

/// Runs one client's operations, from the first to the last.
fn call(load: &ClientLoad, n: u32, mut client: Client) -> Result<Wire> {
    let every = Duration::try_from_secs_f64(load.every / 1e3)?;
    let end = load.seconds.map(Duration::try_from_secs_f64).transpose()?;
    let started = Instant::now();
    let mut next = every * n / load.clients;
    let mut random = SmallRng::seed_from_u64(n.into());
    client.wire.stall = Duration::from_millis(load.stall);
    for step in 0.. {
        let enough = match end {
            Some(end) => started.elapsed() >= end,
            None => step >= load.times + n * load.more,
        };
        if enough {
            break;
        }
        let late = match load.scatter {
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

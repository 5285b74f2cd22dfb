//! Replays a trace against a server, as NFSv3 over TCP without a mount.
//!
//! The trace is read twice: once for the files and directories that it implies, and once for its operations. Memory grows with its files
//! (some 150 bytes each, times the copies) and not with its operations.

mod counterpart;
mod dispatch;
mod engine;
mod image;
mod leaving;
mod nfs3;
mod plan;
mod quantiles;
mod report;
mod rpc;
mod xdr;

pub use nfs3::{Ports, Target};
pub use plan::Repairs;
pub use quantiles::Quantiles;
pub use report::{LeftOut, OperationReport, Report};
pub use rpc::Credentials;

use crate::Operation;
use anyhow::Context;
use dispatch::Dispatch;
use engine::{Connection, Counts, Engine};
use nfs3::Handle;
use plan::Plan;
use rpc::Caller;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Longest READ and WRITE that are sent, in bytes.
const MAX_TRANSFER: u32 = 1 << 20;

/// Times at which operations are issued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At the recorded times, divided by `speed`, whether or not earlier calls were answered.
    Open {
        /// 1 for the original times.
        speed: f64,
    },
    /// Speed of the server. An operation follows those that had ended when it arrived, if they are of its client or its file.
    Closed,
}

/// Options of a replay.
#[derive(Debug, Clone)]
pub struct Options {
    /// Server and export.
    pub target: Target,
    /// Ports of the server, if its rpcbind is not asked for them.
    pub ports: Ports,
    /// User as whom calls are made.
    pub who: Credentials,
    /// Times of operations.
    pub pace: Pace,
    /// Independent copies, each with its own files and connections.
    pub times: u32,
    /// Most connections; clients of the trace share them if there are more of them.
    pub max_connections: u32,
    /// Files of the image get their sizes without data.
    pub sparse: bool,
    /// The directory of the replay stays.
    pub keep: bool,
    /// Name of the directory of the replay in the export.
    pub directory: String,
}

/// A trace that was read once.
#[derive(Debug)]
pub struct Replay {
    plan: Plan,
}

impl Replay {
    /// Reads the trace for the files that it implies.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no operations.
    pub fn plan<E: Into<anyhow::Error>>(
        operations: impl Iterator<Item = Result<Operation, E>>,
    ) -> anyhow::Result<Replay> {
        let mut plan = Plan::default();
        for operation in operations {
            plan.see(&operation.map_err(Into::into)?)?;
        }
        anyhow::ensure!(plan.operations > 0, "the trace has no operations");
        plan.finish();
        Ok(Replay { plan })
    }

    /// Operations of the trace.
    pub fn operations(&self) -> u64 {
        self.plan.operations
    }

    /// Nanoseconds from the first arrival to the last.
    pub fn nanoseconds(&self) -> u64 {
        self.plan.last.saturating_sub(self.plan.first)
    }

    /// Missing history that the image makes up for, of one copy.
    pub fn repairs(&self) -> Repairs {
        self.plan.repairs
    }

    /// Bytes that the WRITEs of one copy store.
    pub fn written_bytes(&self) -> u64 {
        self.plan.written
    }

    /// Makes the image, replays the operations, and removes the image. `progress` gets the number of operations that were dispatched.
    ///
    /// # Errors
    /// When the server cannot be used, the image does not fit, a connection fails, or the trace is another one than before.
    pub fn run<E: Into<anyhow::Error>>(
        &self,
        operations: impl Iterator<Item = Result<Operation, E>>,
        options: &Options,
        mut progress: impl FnMut(u64),
    ) -> anyhow::Result<Report> {
        let plan = &self.plan;
        let mounted = nfs3::mount(&options.target, options.ports, options.who)?;
        let to = (mounted.address, options.who);
        let mut server = Caller::new(rpc::connect(mounted.address)?, options.who);
        let (read_size, write_size) = server.transfer_sizes(&mounted.root)?;
        let need = match options.sparse {
            true => 0,
            false => plan.repairs.bytes,
        };
        let need = need
            .saturating_add(plan.written)
            .saturating_mul(u64::from(options.times));
        let available = server.available(&mounted.root)?;
        anyhow::ensure!(
            need <= available,
            "the replay needs up to {need} bytes, and the export has {available}: with --sparse, the files that are read need none"
        );
        let top = server
            .mkdir(&mounted.root, &options.directory)
            .with_context(|| {
                format!(
                    "user {} may not make a directory in {}:{}: give --uid and --gid of a user who may",
                    options.who.uid, options.target.host, options.target.export
                )
            })?;
        let result = self.run_in(
            &top,
            to,
            (read_size, write_size),
            operations,
            options,
            &mut progress,
        );
        if options.keep {
            return result;
        }
        // The connection may have been closed since, because it was silent.
        let removed = rpc::connect(mounted.address)
            .map_err(anyhow::Error::from)
            .and_then(|stream| {
                let mut server = Caller::new(stream, options.who);
                image::remove(&mut server, &mounted.root, &options.directory)
            })
            .with_context(|| {
                let Target { host, export } = &options.target;
                format!("{host}:{export}/{} remains", options.directory)
            });
        result.and_then(|report| removed.map(|()| report))
    }

    fn run_in<E: Into<anyhow::Error>>(
        &self,
        top: &Handle,
        to: (std::net::SocketAddr, Credentials),
        (read_size, write_size): (u32, u32),
        operations: impl Iterator<Item = Result<Operation, E>>,
        options: &Options,
        progress: &mut impl FnMut(u64),
    ) -> anyhow::Result<Report> {
        let plan = &self.plan;
        let data = image::data();
        let mut copies = Vec::new();
        for copy in 0..options.times {
            let mut server = Caller::new(rpc::connect(to.0)?, to.1);
            let top = server.mkdir(top, &format!("c{copy}"))?;
            copies.push(image::make(
                plan,
                to,
                top,
                write_size,
                options.sparse,
                &data,
            )?);
        }
        let connections = u64::from(plan.clients)
            .saturating_mul(u64::from(options.times))
            .clamp(1, u64::from(options.max_connections.max(1))) as u32;
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(Connection::new(rpc::connect(to.0)?, plan.kinds.len()));
        }
        let mut engine = Engine::new(plan, copies, open, options, data);
        engine.began = std::time::Instant::now();
        let engine = &engine;
        let mut dispatch = Dispatch::new(
            plan,
            options,
            connections,
            (read_size.min(MAX_TRANSFER), write_size.min(MAX_TRANSFER)),
        );
        let ended = std::thread::scope(|scope| -> anyhow::Result<u64> {
            let threads = || -> std::io::Result<()> {
                for at in 0..connections {
                    let thread = || std::thread::Builder::new().name("replay".to_owned());
                    thread().spawn_scoped(scope, move || engine.send_all(at))?;
                    thread().spawn_scoped(scope, move || engine.receive_all(at))?;
                }
                Ok(())
            };
            let dispatched = threads()
                .context("the system gives no thread for each connection")
                .and_then(|()| {
                    for (n, operation) in operations.enumerate() {
                        let operation = operation.map_err(Into::into)?;
                        if !dispatch.operation(engine, &operation)? {
                            break;
                        }
                        progress(n as u64 + 1);
                    }
                    Ok(())
                });
            if let Err(why) = dispatched {
                engine.stop(None);
                return Err(why);
            }
            engine.wait()?;
            Ok(engine.now())
        })?;
        let mut counts = Counts::new(plan.kinds.len());
        for connection in &engine.connections {
            let of_one = connection
                .counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            counts.merge(&of_one);
        }
        debug_assert!(
            engine.finished.load(Ordering::Relaxed) >= counts.kinds.iter().map(|k| k.issued).sum()
        );
        let run = report::Run {
            directory: options.directory.clone(),
            connections,
            length: std::time::Duration::from_nanos(ended),
            shortened: dispatch.shortened,
            left_out: dispatch.left_out,
        };
        Ok(Report::new(plan, options, &counts, run))
    }
}

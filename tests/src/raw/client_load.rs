//! Options of a load of many raw clients.

use std::net::Ipv4Addr;

use super::lab_server::EXPORT;
use super::operation::Operation;

/// Clients, their operation, and its number.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientLoad {
    /// Operation of each client
    #[arg(value_enum)]
    pub operation: Operation,
    /// Number of clients
    #[arg(long, default_value_t = 1)]
    pub clients: u32,
    /// Number of clients that call at a time; by default all, and none begins before all are prepared
    #[arg(long)]
    pub at_once: Option<u32>,
    /// Prepare all clients before any begins, but let only this number call at a time: each thread prepares its part of the clients,
    /// and then lets one after the other call
    #[arg(long, conflicts_with = "at_once")]
    pub threads: Option<u32>,
    /// Operations of the first client
    #[arg(long, default_value_t = 10)]
    pub times: u32,
    /// Go on for this number of seconds instead, whatever number of operations that makes
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Milliseconds from one operation of a client to its next one, which begins at once if the last one took longer; the clients
    /// take turns
    #[arg(long, default_value_t = 0.0)]
    pub every: f64,
    /// Send each operation at a random place in its turn, the same each time, instead of at its beginning: otherwise other periodic
    /// work would always meet the same clients
    #[arg(long)]
    pub scatter: bool,
    /// Operations that each client sends more than the one before
    #[arg(long, default_value_t = 0)]
    pub more: u32,
    /// NFS version: 3, 4.0, 4.1 or 4.2
    #[arg(long, default_value = "3")]
    pub nfs: String,
    /// Path of the export
    #[arg(long, default_value = EXPORT)]
    pub export: String,
    /// User ID of the calls
    #[arg(long, default_value_t = 0)]
    pub user: u32,
    /// Address of the first client; each other has the next one
    #[arg(long, default_value = "127.0.0.1")]
    pub from: Ipv4Addr,
    /// Bytes of each READ and WRITE
    #[arg(long, default_value_t = 4096)]
    pub size: u32,
    /// Keep READs and WRITEs to this number of megabytes at the beginning: READs are twice their size apart, in an order that reading
    /// ahead does not help, and WRITEs begin anew at the end
    #[arg(long)]
    pub within: Option<u32>,
    /// Send unstable WRITEs
    #[arg(long)]
    pub unstable: bool,
    /// Send WRITEs of all clients to the same shared file
    #[arg(long)]
    pub together: bool,
    /// File in the export that READs read
    #[arg(long, default_value = "shared")]
    pub file: String,
    /// Milliseconds that a client leaves each reply on its socket
    #[arg(long, default_value_t = 0)]
    pub stall: u64,
    /// Bytes of each client's receive buffer
    #[arg(long)]
    pub buffer: Option<usize>,
}

impl ClientLoad {
    /// Offset of a READ: no two READs have the same, and reading ahead of one does not bring another.
    pub(super) fn read_at(&self, n: u32, step: u32) -> u64 {
        let place = u64::from(step) * u64::from(self.clients) + u64::from(n);
        match self.within {
            None => place << 20,
            Some(megabytes) => {
                let apart = u64::from(self.size.max(1)) * 2;
                let places = ((u64::from(megabytes) << 20) / apart).max(1);
                // The multiplier is odd: each of a power of two of places comes once before one comes again.
                place * 40_503 % places * apart
            }
        }
    }

    /// Offset of a WRITE: behind the client's last one.
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
}

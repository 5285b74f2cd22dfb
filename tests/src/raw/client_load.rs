//! What many clients are to do.

use std::net::Ipv4Addr;

use super::lab_server::EXPORT;
use super::operation::Operation;

/// Who calls, what and how often.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientLoad {
    /// What each client does
    #[arg(value_enum)]
    pub operation: Operation,
    /// How many clients
    #[arg(long, default_value_t = 1)]
    pub clients: u32,
    /// So many of them at a time; by default all, and none begins before all are prepared
    #[arg(long)]
    pub at_once: Option<u32>,
    /// All are prepared before any begins, but only so many call at a time: each of so many threads prepares its part of the
    /// clients, and then lets one after the other call
    #[arg(long, conflicts_with = "at_once")]
    pub threads: Option<u32>,
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
    /// Whose calls they are
    #[arg(long, default_value_t = 0)]
    pub user: u32,
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
}

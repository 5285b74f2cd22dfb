//! The places of time are reported truly: phases add up, a delay shows in its own phase and in no other, and clients, exports and
//! slow operations are reported as they were.

mod added;
pub mod books;
pub mod causes;
pub mod conservation;
pub mod slow;
pub mod who;

use std::time::Duration;

use anyhow::Result;
use lab::{Agent, KernelCounters, Server};
use nfscope_model::Snapshot;

/// Delay of a slow disk. It is not less than 50 ms: see [`lab::Delay`].
const DELAY: Duration = Duration::from_millis(100);

/// Windows of the agent, each from the end of the last one: no request comes in between.
pub struct Watch<'a> {
    pub server: &'a Server,
    pub agent: &'a Agent,
    last: (KernelCounters, Vec<Snapshot>),
}

impl<'a> Watch<'a> {
    pub fn begin(server: &'a Server, agent: &'a Agent) -> Result<Self> {
        Ok(Watch {
            server,
            agent,
            last: lab::reconcile::settled(server, &[agent])?,
        })
    }

    /// Counts of the kernel and of the agent for a `load`.
    pub fn during(
        &mut self,
        load: impl FnOnce() -> Result<()>,
    ) -> Result<(KernelCounters, Snapshot)> {
        load()?;
        let now = lab::reconcile::settled(self.server, &[self.agent])?;
        let window = lab::reconcile::window(&self.last, &now, 0);
        self.last = now;
        Ok(window)
    }

    /// Counts of the agent for clients with these arguments of `lab clients`.
    fn run_clients(&mut self, arguments: &str) -> Result<Snapshot> {
        let server = self.server;
        Ok(self.during(|| server.run_clients(arguments).map(drop))?.1)
    }
}

//! Where time goes is reported truly: phases add up, a delay that is put somewhere is found there and nowhere else, and
//! clients, exports and slow operations are reported as they were.

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

/// What a slow disk takes longer. Not less than 50 ms: see [`lab::Delay`].
const DELAY: Duration = Duration::from_millis(100);

/// Windows of what the agent sees, each from where the last one ended: nothing moves in between.
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

    /// What the kernel counted and the agent saw while `load` ran.
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

    /// What the agent saw while clients called as `lab clients --help` describes it.
    fn run_clients(&mut self, arguments: &str) -> Result<Snapshot> {
        let server = self.server;
        Ok(self.during(|| server.run_clients(arguments).map(drop))?.1)
    }
}

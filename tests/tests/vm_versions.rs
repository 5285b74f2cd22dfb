//! `nfscope versions` in machines of its own.

use anyhow::Result;
use lab::{Kernel, Server};

use crate::versions;

/// An icount machine: time that a busy host adds to an open is not in its clock.
#[test]
fn vm_a_distant_open_is_its_round_trips() -> Result<()> {
    let server = Server::boot(Kernel::V6_12)
        .export("tmpfs")
        .clients(1)
        .icount()
        .start()?;
    let agent = server.agent(&[])?;
    versions::an_open_is_its_round_trips(&server, &agent)?;
    versions::the_server_tells_the_distance(&server, &agent)?;
    agent.stop().map(drop)
}

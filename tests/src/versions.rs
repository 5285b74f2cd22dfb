//! `lab versions`: NFSv3 beside 4.0, 4.1 and 4.2, by `nfscope versions` on a client of a real server.
//!
//! Client and server are one machine, with a network of the kernel's own between them. The CPU time of the client therefore contains
//! that of the server. Ratios are valid for this machine only; RPCs and component operations are the same on every machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::kernel::Kernel;
use crate::server::Server;

/// Number and length of the measurements.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1, 6.12, 6.18 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Rounds, each with a block of every version
    #[arg(long, default_value_t = 8)]
    pub rounds: u32,
    /// Seconds of a block
    #[arg(long, default_value_t = 2)]
    pub seconds: u32,
    /// Directory that keeps the pages
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Output of `nfscope versions`: the comparison, and throughput against threads.
#[derive(Debug)]
pub struct Done {
    /// The comparison.
    pub compared: String,
    /// Output with `--scale`.
    pub scaled: String,
}

/// Boots a machine and measures in it.
///
/// # Errors
/// When the machine, the agent or a measurement fails.
pub fn run(options: &Options) -> Result<Done> {
    let server = Server::boot(options.kernel)
        .export("tmpfs")
        .clients(1)
        .start()?;
    let agent = server.agent(&[])?;
    let nfscope = server.nfscope_path()?;
    let versions = |arguments: &str| -> Result<String> {
        let mut running = server.client(0).spawn(&format!(
            "modprobe -a nfs nfsv3 nfsv4
             {} versions 10.9.0.1:/ --v3-export 10.9.0.1:/run/exp --url http://10.9.0.1:{} \
             --runtime {}s {arguments}",
            nfscope.display(),
            agent.port(),
            options.seconds
        ))?;
        let output = running.wait(Duration::from_secs(7200))?;
        Ok(output.ok("nfscope versions")?.stdout)
    };
    let page = |name: &str| server.dir().join(format!("{name}.html"));
    let done = Done {
        compared: versions(&format!(
            "--rounds {} --html {}",
            options.rounds,
            page("versions").display()
        ))?,
        scaled: versions(&format!(
            "--scale 1,2,4,8 --rounds 4 --html {}",
            page("scale").display()
        ))?,
    };
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir)?;
        for name in ["versions", "scale"] {
            std::fs::copy(page(name), dir.join(format!("{name}.html")))?;
        }
    }
    agent.stop()?;
    Ok(done)
}

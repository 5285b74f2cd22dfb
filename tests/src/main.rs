//! `lab`: the program beside the library - a shell in a machine, and what the library runs inside one.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use lab::load::Kind;
use lab::{Kernel, Server};

/// Virtual machines with a real NFS server.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Show nfscope on this host's NFS server, or on one in a machine under load, until Ctrl-C
    Run {
        /// The machine's kernel: 5.10, 6.1, 6.12 or 7.2
        #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
        kernel: Kernel,
        /// What the machine exports: ext4, xfs, btrfs or tmpfs
        #[arg(long, default_value = "ext4")]
        export: String,
    },
    /// Boot a machine that serves NFS, and give a shell in it
    Shell {
        /// 5.10, 6.1, 6.12 or 7.2
        #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
        kernel: Kernel,
        /// ext4, xfs, btrfs or tmpfs
        #[arg(long, default_value = "ext4")]
        export: String,
        /// Client namespaces, each with mounts over v3 and v4.2 at /run/c0, /run/c1 and so on
        #[arg(long, default_value_t = 1)]
        clients: usize,
        /// Milliseconds that each write and flush of the exported disk takes longer
        #[arg(long, default_value_t = 0)]
        slow: u64,
        /// Count instructions instead of time
        #[arg(long)]
        icount: bool,
        /// Run this and end, instead of a shell
        #[arg(short = 'c')]
        command: Option<String>,
    },
    /// Send wrong and right RPC calls to the server on this machine; prints what was sent, as JSON
    Raw {
        /// One scenario, or `all`
        scenario: String,
    },
    /// Write synchronously over NFSv3 to the server on this machine, many at once on one connection; prints how long
    /// each call took, as JSON
    Pipeline {
        /// WRITEs under way at any time
        #[arg(long, default_value_t = 8)]
        writers: u32,
        /// WRITEs of each writer
        #[arg(long, default_value_t = 15)]
        writes: u32,
    },
    /// Run a load over NFS mounts of the server on this machine; prints what was done, as JSON
    Load {
        /// What the load is made of
        #[arg(long, value_enum, default_value_t)]
        kind: Kind,
        /// Stop after so many NFS operations, as the kernel counts them
        #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
        ops: u64,
        /// Stop after so many seconds
        #[arg(long)]
        seconds: Option<f64>,
        /// Another seed, another sequence of actions
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Mount points
        #[arg(required = true)]
        mounts: Vec<PathBuf>,
    },
    /// Measure what the probes cost, in counted instructions, beside a bpftrace script that does the same
    Bench(lab::bench::Options),
    /// Measure inside a machine (the bench starts this itself)
    #[command(hide = true)]
    BenchGuest {
        #[command(subcommand)]
        what: lab::bench::Inside,
    },
    /// Be a machine's first process (the lab starts this itself)
    #[command(hide = true)]
    #[command(name = "pid1")]
    // a bare `init` on the kernel command line confuses virtme-ng's initramfs
    Init { dir: PathBuf, modules: PathBuf },
    /// Serve commands inside a machine (the lab starts this itself)
    #[command(hide = true)]
    Guest,
    /// Keep a machine from outliving its owner (the lab starts this itself)
    #[command(hide = true)]
    Guard {
        dir: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("lab: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: What) -> Result<()> {
    match what {
        What::Run { kernel, export } => lab::show::run(kernel, &export)?,
        What::Shell {
            kernel,
            export,
            clients,
            slow,
            icount,
            command,
        } => {
            let mut builder = Server::boot(kernel)
                .export(&export)
                .clients(clients)
                .slow(Duration::from_millis(slow));
            if icount {
                builder = builder.icount();
            }
            let what = format!("Booting kernel {kernel} with an NFS server");
            let server = lab::show::during(&what, || builder.start())?;
            lab::show::during("Mounting the export over v3 and v4.2", || {
                for client in server.clients() {
                    client.mount_v3()?;
                    client.mount_v4_2()?;
                }
                Ok(())
            })?;
            println!(
                "It serves {export} from /run/exp; {} is shared with this host.",
                server.dir().display()
            );
            match command {
                Some(command) => {
                    let output = server.sh_within(Duration::from_secs(3600), &command)?;
                    print!("{}", output.stdout);
                    eprint!("{}", output.stderr);
                }
                None => shell(&server)?,
            }
        }
        What::Raw { scenario } => {
            println!("{}", serde_json::to_string(&lab::raw::play(&scenario)?)?);
        }
        What::Pipeline { writers, writes } => {
            let calls = lab::raw::pipeline::run(writers, writes)?;
            println!("{}", serde_json::to_string(&calls)?);
        }
        What::Load {
            kind,
            ops,
            seconds,
            seed,
            mounts,
        } => {
            let duration = seconds.map(Duration::try_from_secs_f64).transpose()?;
            let report = lab::load::run(kind, ops, duration, seed, &mounts)?;
            println!("{}", serde_json::to_string(&report)?);
        }
        What::Init { dir, modules } => lab::init::run(&dir, &modules)?,
        What::Bench(options) => lab::bench::run(&options)?,
        What::BenchGuest { what } => println!("{}", what.run()?),
        What::Guest => lab::guest::serve()?,
        What::Guard { dir, command } => lab::guard::run(&dir, &command)?,
    }
    Ok(())
}

/// The terminal is the machine's while the shell runs: keys go there as they are, Ctrl-C too.
fn shell(server: &Server) -> Result<()> {
    eprintln!("Leave it with `exit` or Ctrl-D.");
    let stty = |arguments: &[&str]| Command::new("stty").args(arguments).output();
    let before = stty(&["-g"])?;
    let is_terminal = before.status.success();
    if is_terminal {
        stty(&["raw", "-echo"])?;
    }
    let ended = server.shell();
    if is_terminal {
        stty(&[String::from_utf8_lossy(&before.stdout).trim()])?;
    }
    ended.map(drop)
}

//! `lab`: the program beside the library. It gives a shell in a machine, and runs the library's commands inside a machine.

#![forbid(unsafe_code)]

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
        /// The machine's kernel: 5.10, 6.1, 6.12, 6.18 or 7.2
        #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
        kernel: Kernel,
        /// The machine's export: ext4, xfs, btrfs, tmpfs or (6.1 and 6.12) zfs
        #[arg(long, default_value = "ext4")]
        export: String,
    },
    /// Boot a machine that serves NFS, and give a shell in it
    Shell {
        /// The machine's kernel: 5.10, 6.1, 6.12, 6.18 or 7.2
        #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
        kernel: Kernel,
        /// The machine's export: ext4, xfs, btrfs, tmpfs or (6.1 and 6.12) zfs
        #[arg(long, default_value = "ext4")]
        export: String,
        /// Client namespaces, each with mounts over v3 and v4.2 at /run/c0, /run/c1 and so on
        #[arg(long, default_value_t = 1)]
        clients: usize,
        /// Milliseconds that each write and flush of the exported disk takes longer
        #[arg(long, default_value_t = 0)]
        slow: u64,
        /// The file system's log (ext4, xfs, zfs) on a disk of its own; disk_delay changes the disks' speed
        #[arg(long)]
        external_log: bool,
        /// Count instructions instead of time
        #[arg(long)]
        icount: bool,
        /// Run this command and end, instead of a shell
        #[arg(short = 'c')]
        command: Option<String>,
    },
    /// Send wrong and right RPC calls to the server on this machine; prints the calls as JSON
    Raw {
        /// Name of a scenario, or `all`
        scenario: String,
    },
    /// Have the server on this machine answer from a slot, or refuse a call, in one of the ways that NFSv4 has; prints the statuses
    /// as JSON
    Refused {
        /// Name of the case
        case: String,
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
    /// Call the server on this machine from many clients, each with an address and a connection; prints the calls of each as JSON
    Clients(lab::raw::clients::ClientLoad),
    /// Send this number of SETATTRs to the server on this machine at the same time, on 32 connections
    AtOnce {
        /// Number of calls
        calls: u32,
    },
    /// Open connections to the server on this machine and hold them until killed
    Hold(lab::raw::hold::Hold),
    /// Hold a delegation of a file of the server on this machine, and never return it
    Delegation(lab::raw::delegation::Keep),
    /// Ask the server on this machine for pNFS layouts, but read through the server; prints the granted layouts as JSON
    Layouts(lab::raw::layouts::Ask),
    /// Keep every CPU busy, again and again until killed; needs a real-time priority
    CpuHog {
        /// Milliseconds that the CPUs are busy
        #[arg(long, default_value_t = 30)]
        busy: u64,
        /// Milliseconds between that are left to other processes
        #[arg(long, default_value_t = 10)]
        idle: u64,
    },
    /// Evict a file from the page cache, again and again until killed
    EvictCache {
        /// The file, which must not be on an NFS mount
        file: PathBuf,
        /// Milliseconds between two evictions
        #[arg(long, default_value_t = 500)]
        every: u64,
    },
    /// Run a load over NFS mounts of the server on this machine; prints its operations as JSON
    Load {
        /// Kind of the load
        #[arg(long, value_enum, default_value_t)]
        kind: Kind,
        /// Stop after this number of NFS operations, as the kernel counts them
        #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
        ops: u64,
        /// Stop after this number of seconds
        #[arg(long)]
        seconds: Option<f64>,
        /// Seed of the sequence of actions
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Milliseconds from one action of a thread to its next one, which begins at once if the last one took longer
        #[arg(long, default_value_t = 0.0)]
        every: f64,
        /// Mount points
        #[arg(required = true)]
        mounts: Vec<PathBuf>,
    },
    /// Ask the kernel for the requests that nfsd's threads have in hand (Linux 6.7 and later); prints them as JSON
    RpcStatus,
    /// Measure the cost of the probes, in counted instructions, beside a bpftrace script that measures the same
    Bench(lab::bench::Options),
    /// Measure the cost of the block probe on this host, beside that of biolatency
    BlockCost(lab::block_cost::Options),
    /// Show the effect of a fast log device on synchronous writes over NFS to a ZFS pool on a slow disk
    SsdLog(lab::ssd_log::Options),
    /// Compare NFS versions on a client of a real server, by `nfscope versions`
    Versions(lab::versions::Options),
    /// Record and compare servers with and without a change, by nfscope's own commands
    Baselines(lab::baselines::Options),
    /// Record anew what is out of date in tests/recordings, for the tests to judge without a machine
    Recordings,
    /// Run the campaigns of plan files, as those of tests/campaigns, on a client of a real server
    Campaign(lab::campaign::Options),
    /// Run a designed experiment on a real server: log device, threads and the property sync
    Experiment(lab::experiment::Options),
    /// Run pynfs and cthon04 against the server in a machine, and compare every count with the kernel's
    Conformance(lab::conformance::Options),
    /// Count every operation of thousands of threads, connections and clients
    BigServer(lab::big_server::Options),
    /// Run a busy server for hours, with every event that can happen to it: nothing may grow, and every count must be exact
    Soak(lab::soak::Options),
    /// Play servers with a known bottleneck, and check the findings of the diagnosis
    Scenarios(lab::scenarios::Options),
    /// Predict the effects of changes, make them, and compare
    #[command(name = "what-if")]
    Predictions(lab::what_if::Options),
    /// Take a window inside a machine (the scenarios start this themselves)
    #[command(hide = true)]
    Window {
        /// Port of the agent
        #[arg(long)]
        port: u16,
        /// File that exists once a load has begun; may be given more than once
        #[arg(long)]
        begun: Vec<PathBuf>,
        /// Seconds from the begin of the loads to the window
        #[arg(long)]
        settling: f64,
        /// Seconds of the window
        #[arg(long)]
        seconds: f64,
    },
    /// Wait inside a machine until a load has begun (the baselines start this themselves)
    #[command(hide = true)]
    Begun {
        /// File that exists once the load has begun
        file: PathBuf,
    },
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
    Init {
        dir: PathBuf,
        modules: PathBuf,
        /// Path of the host's root, if the machine's is another one, and its directories that the machine has at the same path
        host: Vec<PathBuf>,
    },
    /// Serve commands inside a machine (the lab starts this itself)
    #[command(hide = true)]
    Guest,
    /// Keep a machine from outliving its owner (the lab starts this itself)
    #[command(hide = true)]
    Supervisor {
        dir: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

fn is_broken_pipe(e: &anyhow::Error) -> bool {
    let kind = e.downcast_ref().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn main() -> ExitCode {
    match run(Cli::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe: it has read enough.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("lab: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: What) -> Result<()> {
    match what {
        What::Run { kernel, export } => lab::demo::run(kernel, &export)?,
        What::Shell {
            kernel,
            export,
            clients,
            slow,
            external_log,
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
            if external_log {
                builder = builder.delayed().external_log();
            }
            let what = format!("Booting kernel {kernel} with an NFS server");
            let server = lab::demo::during(&what, || builder.start())?;
            lab::demo::during("Mounting the export over v3 and v4.2", || {
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
        What::Conformance(options) => lab::conformance::run(&options)?,
        What::Refused { case } => {
            let answers = lab::refused::run(&case)?;
            println!("{}", serde_json::to_string(&answers)?);
        }
        What::Raw { scenario } => {
            println!("{}", serde_json::to_string(&lab::raw::run(&scenario)?)?);
        }
        What::Pipeline { writers, writes } => {
            let calls = lab::raw::pipeline::run(writers, writes)?;
            println!("{}", serde_json::to_string(&calls)?);
        }
        What::RpcStatus => {
            let status = lab::rpc_status::read()?;
            println!("{}", serde_json::to_string(&status)?);
        }
        What::Clients(load) => {
            let clients = lab::raw::clients::run(&load)?;
            println!("{}", serde_json::to_string(&clients)?);
        }
        What::AtOnce { calls } => lab::raw::at_once::run(calls)?,
        What::Hold(hold) => lab::raw::hold::run(&hold)?,
        What::Delegation(keep) => lab::raw::delegation::run(&keep)?,
        What::Layouts(ask) => {
            let asked = lab::raw::layouts::run(&ask)?;
            println!("{}", serde_json::to_string(&asked)?);
        }
        What::CpuHog { busy, idle } => {
            lab::cpu_hog::run(Duration::from_millis(busy), Duration::from_millis(idle))?;
        }
        What::EvictCache { file, every } => {
            lab::evict_cache::run(&file, Duration::from_millis(every))?
        }
        What::Load {
            kind,
            ops,
            seconds,
            seed,
            every,
            mounts,
        } => {
            let duration = seconds.map(Duration::try_from_secs_f64).transpose()?;
            let every = Duration::try_from_secs_f64(every / 1e3)?;
            let report = lab::load::run(kind, ops, duration, seed, every, &mounts)?;
            println!("{}", serde_json::to_string(&report)?);
        }
        What::Init { dir, modules, host } => lab::init::run(&dir, &modules, &host)?,
        What::Bench(options) => lab::bench::run(&options)?,
        What::BlockCost(options) => {
            let costs = lab::block_cost::run(&options)?;
            println!("| ns a run | insert | issue | complete |");
            println!("| --- | ---: | ---: | ---: |");
            for (tool, cost) in [
                ("nfscope agent, block probe", &costs.nfscope),
                ("biolatency -Q", &costs.queued),
                ("biolatency", &costs.device),
            ] {
                let cells = cost.map(|ns| ns.map_or("-".into(), |ns| format!("{ns:.0}")));
                println!("| {tool} | {} |", cells.join(" | "));
            }
            println!(
                "\nnfscope takes {:.0} % of the two together",
                100.0 * costs.part()
            );
        }
        What::BigServer(options) => {
            println!("| | operations | timed | with a wait for a thread | clients exact | lost |");
            println!("| --- | ---: | ---: | ---: | ---: | --- |");
            lab::big_server::run(&options, |c| {
                let lost: Vec<_> = c.lost.iter().map(|(of, n)| format!("{of} {n}")).collect();
                println!(
                    "| {} | {} | {} | {} | {} | {} |",
                    c.what,
                    c.kernel,
                    c.agent,
                    c.queued,
                    c.clients,
                    lost.join(", ")
                );
            })?;
        }
        What::Soak(options) => {
            let report = lab::soak::run(&options, |round| {
                println!(
                    "round {} after {:.2} h: {} operations, {} differences, {} clients exact{}",
                    round.n,
                    round.hours,
                    round.operations,
                    round.wrong.len(),
                    round.exact_clients,
                    round
                        .event
                        .map_or(String::new(), |e| format!(" ({})", e.name()))
                );
            })?;
            println!("\n{report}");
        }
        What::Baselines(options) => {
            let done = lab::baselines::run(&options)?;
            for (name, compared) in done.all() {
                println!("## {name}\n\n{}", compared.text);
            }
            println!("## capacity of one thread\n\n{}", done.capacity);
            let of = &done.group_commit;
            println!("## capacity of a journal on a disk of 8 ms\n\n{}", of.text);
            println!(
                "predicted {:.0} requests per second, measured {:.0}; {:.0} with one thread",
                of.predicted, of.measured, of.single
            );
        }
        What::Recordings => match &*lab::recordings::write_stale()? {
            [] => println!("tests/recordings is up to date"),
            written => println!("recorded anew: {}", written.join(", ")),
        },
        What::Campaign(options) => print!("{}", lab::campaign::run(&options)?),
        What::Experiment(options) => print!("{}", lab::experiment::run(&options)?.text),
        What::Versions(options) => {
            let done = lab::versions::run(&options)?;
            print!("{}\n{}", done.compared, done.scaled);
        }
        What::SsdLog(options) => {
            let halves = lab::ssd_log::run(&options)?;
            print!("{}", lab::ssd_log::table(&halves));
            for line in lab::ssd_log::moved(&halves, 2.0) {
                println!("{line}");
            }
        }
        What::Scenarios(options) => {
            let verdicts = lab::scenarios::run(&options)?;
            let wrong = verdicts.iter().filter(|v| !v.wrong.is_empty()).count();
            anyhow::ensure!(
                wrong == 0 || options.measure,
                "{wrong} of {} scenarios are not diagnosed as expected",
                verdicts.len()
            );
        }
        What::Predictions(options) => drop(lab::what_if::run(&options)?),
        What::Window {
            port,
            begun,
            settling,
            seconds,
        } => {
            let ends = lab::scenarios::window::take(
                port,
                &begun,
                Duration::try_from_secs_f64(settling)?,
                Duration::try_from_secs_f64(seconds)?,
            )?;
            println!("{}", serde_json::to_string(&ends)?);
        }
        What::Begun { file } => {
            let missing = lab::begun::wait_for(&[file], Duration::from_secs(60));
            anyhow::ensure!(missing == 0, "the load has not begun within a minute");
        }
        What::BenchGuest { what } => println!("{}", what.run()?),
        What::Guest => lab::guest::serve()?,
        What::Supervisor { dir, command } => lab::supervisor::run(&dir, &command)?,
    }
    Ok(())
}

/// Runs a shell in the machine, whose terminal is this one meanwhile: keys go there unchanged, Ctrl-C too.
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

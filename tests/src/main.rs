//! `lab`: the program beside the library - a shell in a machine, and what the library runs inside one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use lab::load::Kind;

/// Virtual machines with a real NFS server.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Send wrong and right RPC calls to the server on this machine; prints what was sent, as JSON
    Raw {
        /// One scenario, or `all`
        scenario: String,
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
        What::Raw { scenario } => {
            println!("{}", serde_json::to_string(&lab::raw::play(&scenario)?)?);
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
        What::Guest => lab::guest::serve()?,
        What::Guard { dir, command } => lab::guard::run(&dir, &command)?,
    }
    Ok(())
}

//! `lab campaign`: runs plan files of `tests/campaigns` on a client of a real server.
//!
//! Client and server are one machine, with a network of the kernel's own between them. `tc` makes it slower if a campaign asks for
//! that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::agent::Agent;
use crate::baselines;
use crate::kernel::Kernel;
use crate::paths;
use crate::recordings::{LOG_DEVICE, STORE};
use crate::server::Server;

/// Plan files, and how to run them.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1, 6.12, 6.18 or 7.2; one of the first two with --zfs
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// The plan files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Check the campaigns with `nfscope experiment check`, and make no run
    #[arg(long)]
    pub check: bool,
    /// Read the campaigns with `nfscope experiment check --dry-run`, and set nothing
    #[arg(long, conflicts_with_all = ["check", "short"])]
    pub dry_run: bool,
    /// Make one round of short runs: every combination once, for a second or two, with 2 and 4 processes
    #[arg(long, conflicts_with = "check")]
    pub short: bool,
    /// Serve a pool on a disk of 8 ms, with a log device of 0.1 ms beside it, and run on the server
    #[arg(long)]
    pub zfs: bool,
    /// Directory that keeps the store and the plans of experiments
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Keep the store in `tests/recordings`.
    #[arg(skip)]
    pub write: bool,
}

/// Longest time of a campaign.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// Runs the campaigns; returns their output.
///
/// # Errors
/// When the machine, the agent or a campaign fails.
pub fn run(options: &Options) -> Result<String> {
    let (server, agent_of): (Server, fn(&Server) -> Result<Agent>) = match options.zfs {
        true => (baselines::boot(options.kernel)?, baselines::agent_of),
        false => {
            let server = Server::boot(options.kernel).export("tmpfs").clients(1);
            (server.start()?, |server| server.agent(&[]))
        }
    };
    let agent = agent_of(&server)?;
    if options.zfs {
        let zfs = options.kernel.zfs()?;
        // Space of logged data is free again some transaction groups later. A full device would leave the log to the disk.
        server.sh(&format!(
            "set -e; zfs_load {}; scene_up zfs 8; nfsd_up 16; grace_over
             null_disk slog 0.1 512",
            zfs.display()
        ))?;
    }
    let nfscope = server.nfscope_path()?;
    let programs = nfscope.parent().context("a program without a folder")?;
    // The store is on a file system of the machine: the shared folder has no locks for a database.
    let store = STORE;
    let mut said = String::new();
    for file in &options.files {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.file_name().context("a file without a name")?;
        let plan = server.dir().join(name);
        let text = text.replace("{lab}", &server.lab_command(""));
        let text = if options.short { short(&text) } else { text };
        std::fs::write(&plan, text)?;
        let address = if options.zfs { "127.0.0.1" } else { "10.9.0.1" };
        let url = format!("--url http://{address}:{}", agent.port());
        let (word, more) = match (options.dry_run, options.check) {
            (true, _) => ("check", "--dry-run"),
            (_, true) => ("check", &*url),
            _ => ("run", &*url),
        };
        let script = format!(
            "modprobe -a nfs nfsv3 nfsv4 sch_netem; PATH={}:$PATH
             nfscope experiment {word} {} {more} --store {store}",
            programs.display(),
            plan.display(),
        );
        let mut running = match options.zfs {
            true => server.spawn(&script)?,
            false => server.client(0).spawn(&script)?,
        };
        let output = running.wait(PATIENCE)?.ok("nfscope experiment")?;
        said += &output.stderr;
        said += &output.stdout;
    }
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir.join("experiments"))?;
        let shared = server.dir().display();
        server.sh(&format!(
            "cp {store} {shared}; cp -r $(dirname {store})/experiments {shared}"
        ))?;
        std::fs::copy(server.dir().join("baselines.db"), dir.join("baselines.db"))?;
        for entry in std::fs::read_dir(server.dir().join("experiments"))? {
            let from = entry?.path();
            let name = from.file_name().context("a file without a name")?;
            std::fs::copy(&from, dir.join("experiments").join(name))?;
        }
    }
    agent.stop()?;
    if options.write {
        LOG_DEVICE.keep(&LOG_DEVICE.copied(&server)?)?;
    }
    Ok(said)
}

/// Makes a round of `tests/campaigns/log-device.toml` with one client and with four, each of which asks thirty times a second: all that
/// the log device takes would keep the emulated CPU busy.
///
/// # Errors
/// When the plan has other loads, or when the machine, the agent or a run fails.
pub fn log_device(write: bool) -> Result<String> {
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("campaigns/log-device.toml");
    let mut text = std::fs::read_to_string(&plan)?;
    for (of_the_plan, here) in [
        (r#"levels = ["1", "2", "4", "8"]"#, r#"levels = ["1", "4"]"#),
        ("--every 0 ", "--every 30 "),
    ] {
        ensure!(text.contains(of_the_plan), "no {of_the_plan}: {text}");
        text = text.replace(of_the_plan, here);
    }
    let folder = paths::machine_dir("campaign")?;
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("log-device.toml");
    std::fs::write(&file, text)?;
    let said = run(&Options {
        kernel: Kernel::V6_12,
        files: vec![file],
        check: false,
        dry_run: false,
        short: true,
        zfs: true,
        keep: None,
        write,
    });
    std::fs::remove_dir_all(folder)?;
    said
}

/// Keys of a plan file that make it long, and their values in a short one. A recording has at least ten windows.
const SHORT: [(&str, &str); 5] = [
    ("replicates", "1"),
    ("runtime", "\"1s\""),
    ("warmup", "\"1s\""),
    ("record", "\"5s\""),
    ("interval", "\"500ms\""),
];

/// Shortens a plan: the same combinations in one round of short runs, with few processes and without a condition for more. An
/// emulated machine takes minutes for fifty processes.
fn short(text: &str) -> String {
    let (mut out, mut section, mut factor) = (String::new(), "", "");
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        if line.starts_with("name = ") {
            factor = line;
        }
        if factor == "name = \"processes\"" && line.starts_with("levels = ") {
            out += "levels = [\"2\", \"4\"]\n";
            continue;
        }
        if section == "[until]" {
            continue;
        }
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        match SHORT.iter().find(|(name, _)| *name == key) {
            Some((_, value)) => out += &format!("{key} = {value}"),
            None => out += line,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_campaign_has_one_round_of_every_combination() {
        let text = "name = \"a\"\nreplicates = 6\n[run]\nruntime = \"10s\"\n[[factor]]\nname = \"processes\"\n\
                    levels = [\"10\", \"50\"]\n[[factor]]\nname = \"depth\"\nlevels = [\"0\", \"2\"]\n[until]\nci = \"5%\"\n\
                    replicates = 40\n";
        let short = short(text);
        for line in [
            "replicates = 1",
            "runtime = \"1s\"",
            "levels = [\"2\", \"4\"]",
            "levels = [\"0\", \"2\"]",
        ] {
            assert!(short.lines().any(|l| l == line), "{line}: {short}");
        }
        assert!(!short.contains("until") && !short.contains("40"), "{short}");
    }
}

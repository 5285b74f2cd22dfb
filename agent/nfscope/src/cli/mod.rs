//! Command line of nfscope.

pub mod access;
pub mod asks;
mod examples;
#[cfg(test)]
mod tests;
pub mod values;

pub use crate::baseline::cli::{
    BaselineArgs, BaselineCommand, CapacityArgs, CheckStoreArgs, CompareArgs, ExportArgs,
    ImportArgs, ListArgs, OpenArgs, RecordArgs, RmArgs, ShowArgs, StoreArgs,
};
pub use crate::what_if::cli::WhatIfArgs;
pub use access::AccessArgs;
pub use values::{FailOn, MatchUnit, Names, Probes, history};

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use examples::{
    CHECK_EXAMPLES, COMPLETIONS_EXAMPLES, DEMO_EXAMPLES, DETACH_EXAMPLES, DIAGNOSE_EXAMPLES,
    DOCTOR_EXAMPLES, EXAMPLES, FLEET_EXAMPLES, MCP_EXAMPLES, PATH_EXAMPLES, REPORT_EXAMPLES,
    SLOW_EXAMPLES, STUCK_EXAMPLES, TOP_EXAMPLES,
};
use nfscope_api::build_info;
use nfscope_api::{breakdown_query, slow_filter, stuck_query};
use nfscope_model::Dimension;
use nfscope_source::MOST_PAIRS;
use nfscope_text::suggest::near;
use nfscope_text::{parse, timestamp};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use values::{interval, probe};

/// Highest number of clients, and of exports, with time series of their own.
pub const MOST_SERIES: u16 = 10_000;

/// Exit code if `--until-ci` was not reached.
pub const UNREACHED: u8 = 3;

/// Exit code of `compare --fail-on worse` if a verdict is worse.
pub const WORSE: u8 = 4;

/// Exit code of `compare` if acknowledged writes are less durable after the change.
pub const LESS_DURABLE: u8 = 5;

/// Exit code of `compare --fail-on` if the comparison is undecided.
pub const UNDECIDED: u8 = 6;

/// Shows where each NFS operation spends its time on a Linux NFS server.
#[derive(Debug, Parser)]
#[command(name = "nfscope", version = build_info::VERSION_AND_REVISION, after_help = EXAMPLES, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Completion script for `shell`.
    pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "nfscope", &mut script);
        script
    }

    /// Parses the command line; on an error, prints it and exits.
    pub fn from_command_line() -> Cli {
        Cli::try_parse().unwrap_or_else(|mistake| with_nearest(mistake).exit())
    }
}

/// Adds a suggestion for a mistyped command. clap's similarity misses swapped letters: `tpo` for `top`.
fn with_nearest(mut mistake: clap::Error) -> clap::Error {
    let typed = match mistake.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return mistake,
    };
    let mut within = Cli::command();
    // Words before the mistyped one select its parent, as in `baseline recrod`. `help` has the names of all commands.
    let before = std::env::args().skip(1).take_while(|arg| *arg != typed);
    for arg in before.skip_while(|arg| arg == "help") {
        match within.find_subcommand(&arg) {
            Some(command) => within = command.clone(),
            None => return mistake,
        }
    }
    let names = within.get_subcommands().map(clap::Command::get_name);
    if let (None, Some(name)) = (
        mistake.get(ContextKind::SuggestedSubcommand),
        near(&typed, names),
    ) {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        mistake.insert(ContextKind::SuggestedSubcommand, name);
    }
    mistake
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach the probes and serve metrics until SIGTERM or SIGINT
    Agent(AgentArgs),
    /// Report what nfscope can measure on this host, and why something is missing
    Check(CheckArgs),
    /// Check the configuration of this NFS server without a load: threads, exports, logs, TCP, kernel
    Doctor(DoctorArgs),
    /// Demonstrate nfscope on a recorded day with three incidents, without a server and without root
    Demo(DemoArgs),
    /// Show operations, threads, disks and clients live, in a terminal or as plain tables
    Top(TopArgs),
    /// Stream slow operations, each with its latency breakdown
    Slow(SlowArgs),
    /// Show requests that nfsd threads have been serving for long, and where in the kernel they wait
    Stuck(StuckArgs),
    /// Find the causes of request latency, with evidence and recommended actions
    Diagnose(DiagnoseArgs),
    /// Report the last hour of an agent: a summary as text, and one file with the page and its data
    Report(ReportArgs),
    /// Show where this client's RPCs to a server spend their time: client, network, server
    Path(PathArgs),
    /// Record baselines of a server and compare them
    Baseline(BaselineArgs),
    /// Estimate from a baseline which resource saturates first, and at which load
    Capacity(CapacityArgs),
    /// Plan and analyse experiments with several factors
    Experiment(crate::experiment::cli::ExperimentArgs),
    /// Predict the effect of a change: threads, log, disks, CPUs, clients, WRITE size
    WhatIf(WhatIfArgs),
    /// List the servers of a Prometheus with their findings, the most urgent first
    Fleet(FleetArgs),
    /// Detach probes of the running agent, so that their kernel modules can be unloaded
    Detach(DetachArgs),
    /// Re-attach probes detached with `nfscope detach`
    Attach(AttachArgs),
    /// Run reproducible loads on an NFS client, with confidence intervals
    Workload(crate::workload::cli::WorkloadArgs),
    /// Compare NFS versions on a client: mounts of one export, with loads in random order
    Versions(crate::versions::cli::VersionsArgs),
    /// Serve AI assistants over standard input and output (Model Context Protocol, read-only)
    Mcp(McpArgs),
    /// Print the reference of all metrics
    Metrics(MetricsArgs),
    /// Print a completion script for a shell, such as bash, zsh or fish
    Completions(CompletionsArgs),
}

/// `nfscope agent`
#[derive(Debug, Default, Args)]
#[command(after_help = examples::agent())]
pub struct AgentArgs {
    /// Address to serve on; may be given more than once [default: 127.0.0.1:9943]
    #[arg(
        long = "web.listen-address",
        aliases = ["listen", "listen-address"],
        value_name = "HOST:PORT",
        conflicts_with = "systemd_socket"
    )]
    pub listen_addresses: Vec<String>,
    /// YAML file with TLS, client certificates and passwords, in the format of Prometheus' exporter-toolkit
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Serve on sockets that systemd passes (socket activation), instead of addresses
    #[arg(long = "web.systemd-socket")]
    pub systemd_socket: bool,
    /// Serve /slow, /breakdown, /stuck, /snapshot and baselines, which name clients and files, to every host that can connect. Otherwise
    /// only this host, and clients with a password or certificate, can read them
    #[arg(long = "web.allow-details")]
    pub allow_details: bool,
    /// Serve /breakdown by user and by file to other hosts, too, if they may read /slow. Otherwise only this host can read it
    #[arg(long = "web.allow-file-names")]
    pub allow_file_names: bool,
    /// Accept on SIGHUP a web configuration that no longer has TLS, passwords or client certificates. Otherwise a second SIGHUP must
    /// confirm it
    #[arg(long = "web.allow-open")]
    pub allow_open: bool,
    /// Confinement of the process that serves HTTP. With `require` the agent serves only if the process is confined as far as this
    /// kernel allows. With `try` it serves even if a part of the confinement is missing [default: try, and require in the packages' unit]
    #[arg(long, value_name = "MODE", value_parser = ["require", "try"])]
    pub sandbox: Option<String>,
    /// Name that a request over loopback may have in its Host header; may be given more than once. Addresses, localhost and the names
    /// of this host are always allowed
    #[arg(long = "web.allowed-host", value_name = "NAME")]
    pub allowed_hosts: Vec<String>,
    /// TOML file with settings [default: /etc/nfscope/nfscope.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Drop every capability once the probes are attached. Modules that load later (nfsd, sunrpc) are then not observed, and neither
    /// slow operations nor the state that NFSv4 clients hold is reported
    #[arg(long)]
    pub no_late_attach: bool,
    /// Let the kernel count the runs and the run time of every probe program. This slows the probes down
    #[arg(long)]
    pub probe_stats: bool,
    /// Do not split operations into phases (CPU, run queue, log, disk, lock). The probe programs that time waits are then not attached
    #[arg(long)]
    pub no_phases: bool,
    /// Also measure where the RPCs of this host's own NFS mounts wait. This host needs no NFS server for that
    #[arg(long)]
    pub client: bool,
    /// Number of clients with their own time series, 0 to 10000; all others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_clients: Option<u16>,
    /// Number of exports with their own time series, 0 to 10000; all others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_exports: Option<u16>,
    /// Pairs of client and export that the probes count separately at a time, 64 to 16384. Each takes 150 bytes of kernel memory
    /// [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=i64::from(MOST_PAIRS)))]
    pub max_pairs: Option<u32>,
    /// Length of the history on a disk that the page at / can show: 1h to 7d. With 0 the page has the last quarter of an hour, in memory
    /// only [default: 1d]
    #[arg(long, value_name = "TIME", value_parser = history)]
    pub history: Option<Duration>,
    /// Directory of the history on a disk [default: the StateDirectory of the systemd unit; without one, memory only]
    #[arg(long, value_name = "DIRECTORY")]
    pub history_directory: Option<PathBuf>,
    /// Do not ask name servers for the names of clients
    #[arg(long)]
    pub no_reverse_dns: bool,
    /// TOML file with names, racks and tenants of clients. A [[client]] entry has address (or range), name, rack and tenant. A [[user]]
    /// entry has id and name
    #[arg(long, value_name = "FILE")]
    pub names_file: Option<PathBuf>,
    /// Lowest level of messages to print [default: info]
    #[arg(long = "log.level", value_name = "LEVEL", value_parser = ["debug", "info", "warn", "error"])]
    pub log_level: Option<String>,
    /// Format of messages: lines of text, or one JSON object per line [default: text]
    #[arg(long = "log.format", value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log_format: Option<String>,
    /// Serve a recording as if it happened now, instead of measuring. The recording starts again when it ends. FILE is a file of
    /// `nfscope baseline export`. Needs no privileges
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// For tests: skip one run in N of every probe program, as kernels do that preempt tracing programs
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    pub test_skip_one_in: u32,
    /// For tests: rows of a break-down's table in the kernel
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub test_breakdown_rows: u32,
    /// For measurements: an object of the nfsd probe in place of the program's own
    #[arg(long, hide = true, value_name = "FILE")]
    pub test_nfsd_object: Option<PathBuf>,
    /// For tests: note waits at every context switch, as on kernels whose scheduler's books cannot be read
    #[arg(long, hide = true)]
    pub test_no_books: bool,
}

/// `nfscope check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Print every fact about this host and every probe program
    #[arg(long, conflicts_with_all = ["json", "report", "show_script"])]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a report on an illumos server for the developers: releases, states and errors of the scripts, probes. The file has no
    /// addresses, paths or names of pools
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "show_script"])]
    pub report: Option<PathBuf>,
    /// Print a D script for dtrace of illumos, instead of checking this host: nfs, rpc, zil, txg, io, slow
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub show_script: Option<String>,
    /// Show the state of the probes of the agent at this URL, instead of checking this host
    #[arg(long, value_name = "URL", conflicts_with_all = ["report", "show_script"])]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope demo`
#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// Part of the program to show
    #[arg(value_enum, default_value = "page", value_name = "PART")]
    pub part: DemoPart,
    /// Port of the page [default: 9943, or any that is free]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
}

/// Parts of the program that `nfscope demo` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoPart {
    /// The page, until Ctrl-C
    Page,
    /// Tables of each incident
    Top,
    /// The cause of each incident, with evidence
    Diagnose,
    /// A change, and whether it helped
    Compare,
}

/// The past, for commands that can look back
#[derive(Debug, Clone, Args)]
pub struct PastArgs {
    /// Show this time in the past, from the history that this host's agent keeps on the disk: 03:10, "2026-11-27 03:10"
    #[arg(long, value_name = "TIME", conflicts_with = "url", value_parser = past)]
    pub at: Option<SystemTime>,
    /// With --at: the file of the history, or its directory
    #[arg(long, value_name = "PATH", default_value = "/var/lib/nfscope")]
    pub history: PathBuf,
}

/// Parses a time in the past.
fn past(text: &str) -> Result<SystemTime, String> {
    timestamp::moment(text, SystemTime::now())
}

/// `nfscope top`
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// Agent to read from [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Length of one window: 500ms, 2s, 1m
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    pub interval: Duration,
    /// Print one window and stop
    #[arg(long)]
    pub once: bool,
    /// Print N windows and stop
    #[arg(long, value_name = "N", conflicts_with = "once", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Print each window as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Print plain tables with all columns and whole names, however wide
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// Group operations by these dimensions: client, export, op, version, user, file. The kernel counts by them only while this command
    /// runs
    #[arg(long, value_name = "DIMENSION", value_delimiter = ',', conflicts_with = "at", value_parser = breakdown_query::dimension)]
    pub by: Vec<Dimension>,
    /// With --by: only operations with this value: export=/srv/a, op=write; may be given more than once. Several values of one dimension
    /// are alternatives
    #[arg(long = "where", value_name = "DIMENSION=VALUE", requires = "by", value_parser = breakdown_query::Filter::parse)]
    pub filters: Vec<breakdown_query::Filter>,
    /// With --by file: print the paths of files and directories. The agent asks the kernel for them only while this command runs
    #[arg(long, requires = "by")]
    pub paths: bool,
    /// The past
    #[command(flatten)]
    pub past: PastArgs,
}

/// `nfscope slow`
#[derive(Debug, Args)]
#[command(after_help = SLOW_EXAMPLES)]
pub struct SlowArgs {
    /// Only operations slower than this: 10ms, 1.5s, 200us
    #[arg(long, alias = "over", value_name = "TIME", default_value = slow_filter::MIN_LATENCY, value_parser = slow_filter::min_latency)]
    pub min_latency: Duration,
    /// Only these operations: write,commit
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = parse::operation)]
    pub op: Vec<String>,
    /// Only operations of this client
    #[arg(long, value_name = "ADDR", value_parser = parse::client)]
    pub client: Option<IpAddr>,
    /// Print at most N operations per second, and count the rest
    #[arg(long, value_name = "N", default_value_t = slow_filter::LIMIT, value_parser = parse::events_per_second)]
    pub limit: u32,
    /// Stop after N operations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Print all columns and whole names, however wide
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// Agent to read from [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope stuck`
#[derive(Debug, Args)]
#[command(after_help = STUCK_EXAMPLES)]
pub struct StuckArgs {
    /// Only requests that a thread has been serving for longer than this: 1s, 500ms, 0
    #[arg(long, value_name = "TIME", default_value = stuck_query::OVER, value_parser = stuck_query::over)]
    pub over: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print whole names, however wide
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// Agent to ask [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope diagnose`
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub struct DiagnoseArgs {
    /// How long to watch: 10s, 1m
    #[arg(long = "duration", alias = "for", value_name = "TIME", default_value = "60s", value_parser = interval)]
    pub length: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Agent to watch [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// The past
    #[command(flatten)]
    pub past: PastArgs,
}

/// `nfscope report`
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// File for the page with its data, such as report.html. Without it the command prints the text only
    #[arg(value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Time to report, up to now: 15m, 1h, 1d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::last)]
    pub last: Duration,
    /// Replace the names of hosts, clients, exports and volumes with pseudonyms, and leave out all sentences
    #[arg(long, alias = "anonymize")]
    pub anonymise: bool,
    /// Agent to ask [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope doctor`
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `nfscope path`
#[derive(Debug, Args)]
#[command(after_help = PATH_EXAMPLES)]
pub struct PathArgs {
    /// Agent of the server: its host name, or its URL
    pub server: String,
    /// How long to watch: 10s, 1m
    #[arg(long = "duration", value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub length: Duration,
    /// Another name or address of the server that mounts on this client have; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub mounted_as: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Agent of this client, which runs with --client [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to both agents
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope fleet`
#[derive(Debug, Args)]
#[command(after_help = FLEET_EXAMPLES)]
pub struct FleetArgs {
    /// URL of a Prometheus, or of a server with its API: Thanos, Mimir, VictoriaMetrics [default: the one in client.toml]
    pub url: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Access to it
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope detach`
#[derive(Debug, Args)]
#[command(after_help = DETACH_EXAMPLES)]
pub struct DetachArgs {
    /// Probes to detach: nfsd, jbd2, xfs, btrfs, zfs, ... or all
    #[arg(required = true, value_name = "PROBE", value_parser = probe)]
    pub probes: Vec<Probes>,
    /// Address of this host's agent [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `nfscope attach`
#[derive(Debug, Args)]
#[command(after_help = DETACH_EXAMPLES)]
pub struct AttachArgs {
    /// Probes to attach again [default: all]
    #[arg(value_name = "PROBE", value_parser = probe)]
    pub probes: Vec<Probes>,
    /// Address of this host's agent [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `nfscope mcp`
#[derive(Debug, Args)]
#[command(after_help = MCP_EXAMPLES)]
pub struct McpArgs {
    /// Agent to ask [default: http://127.0.0.1:9943]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Where recordings are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Print a Markdown page
    #[arg(long)]
    pub markdown: bool,
}

/// `nfscope completions`
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell of the script
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

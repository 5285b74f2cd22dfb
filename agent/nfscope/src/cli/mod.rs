//! The command line.

mod baseline;
pub mod experiment;
#[cfg(test)]
mod tests;
mod values;
mod what_if;
pub mod workload;

pub use baseline::{
    BaselineArgs, BaselineCommand, CapacityArgs, CheckStoreArgs, CompareArgs, ExportArgs,
    ImportArgs, ListArgs, RecordArgs, RmArgs, ShowArgs, StoreArgs,
};
pub use values::{FailOn, MatchUnit, Names, Probes};
pub use what_if::WhatIfArgs;

use crate::api::slow_filter;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use nfscope_source::MOST_PAIRS;
use nfscope_text::parse;
use nfscope_text::suggest::near;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use values::{interval, probe};

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NFSCOPE_REVISION"),
    ")"
);

/// Highest limit of clients and of exports with series of their own.
pub const MOST_SERIES: u16 = 10_000;

/// Exit code where --until-ci was not reached.
pub const UNREACHED: u8 = 3;

/// Exit code of `compare --fail-on worse` where something is worse.
pub const WORSE: u8 = 4;

// Lines of these stay below 80 columns: clap would wrap them, and lose their columns.
const EXAMPLES: &str = "\
Examples:
  sudo nfscope check       what can be measured on this host, and what is missing
  sudo nfscope agent       serve Prometheus metrics at 127.0.0.1:9943/metrics
  nfscope top              live table: rates, latency, phases
  nfscope slow             operations slower than 10 ms, as they happen
  nfscope diagnose         the causes of request latency, with evidence
  nfscope baseline list    recorded baselines; also record, show, compare
  nfscope capacity friday  what saturates first, by the baseline `friday`
  nfscope what-if          what a change would be worth: threads, log, disks
  nfscope workload list    reproducible loads for an NFS client
  nfscope metrics          every metric with its labels and meaning";

const AGENT_EXAMPLES: &str = "\
Examples:
  sudo nfscope agent
  sudo nfscope agent --web.listen-address 0.0.0.0:9943
  sudo nfscope agent --config nfscope.toml --no-late-attach

Every setting can be given in three places. A flag overrides the environment,
and the environment overrides the file:
  --max-clients 500
  NFSCOPE_LIMITS_CLIENTS=500
  [limits]
  clients = 500           in /etc/nfscope/nfscope.toml
deploy/nfscope.toml of the sources lists all keys and variables. NFSCOPE_CONFIG
names another file. An empty variable counts as not set. A flag without a value,
such as --probe-stats, cannot undo what the environment or the file sets.

Served, packed by gzip where the client takes that:
  /metrics     for Prometheus: text, OpenMetrics, native histograms; collect[]=op
               and exclude[]=clients choose parts of it: op, rpc, threads, log,
               zfs, block, clients, exports, cpu, findings, coverage, agent
  /-/healthy   200 while the agent runs
  /-/ready     200 once the probes are attached
  /healthz     200 while NFS operations are being timed, else 503 and the reason;
               the text is ok, or degraded while requests are stuck in the server
  /probes      state and reason of every probe program, as JSON
  /snapshot    every value, as JSON
  /findings    active and past findings, and what changes would be worth (worth,
               or worth_unknown with the reason; worth_at), as JSON
  /slow        slow operations as they happen, one JSON object per line, until
               the client disconnects; at most 8 clients, 6 of one address
  /            a landing page for people

/slow takes min_latency=10ms, op=write,commit, client=192.0.2.7 and limit=1000
(per second):
  curl -N 'http://127.0.0.1:9943/slow?min_latency=50ms&op=write,commit'
A line {\"left_out\":N} says that N more operations happened since the last such
line. A line with N = 0 only keeps the connection alive.

SIGHUP reads the settings, the web configuration and its certificates again. The
agent applies what it can while it runs: [limits] clients and exports, [log], and
the whole web configuration. It prints what only a restart applies.
The agent stops on SIGTERM and SIGINT. No probe stays attached when it ends.";

const CHECK_EXAMPLES: &str = "\
Exit code:
  0   NFS operations can be timed, and all probes attach as designed
  3   NFS operations can be timed, but some probes are absent or use a fallback
  1   NFS operations cannot be timed

Examples:
  sudo nfscope check
  sudo nfscope check --json
  nfscope check --show-script nfs        the D script for operations, for illumos
  nfscope check --report nfscope.json    on illumos: a file to send to the developers";

const TOP_EXAMPLES: &str = "\
Examples:
  nfscope top                            the agent on this host; without an
                                         agent, own probes (needs root)
  nfscope top --url http://nfs1:9943     an agent on another host
  nfscope top --once --interval 10s      one plain table over ten seconds
  nfscope top --json | jq '.ops[0]'      the operation with the most time

The key ? explains keys, columns and phases. Into a pipe or a file, and where
TERM is dumb, nfscope top prints plain tables one after another.
SHARE is the part of all operations' time that this operation took. MAX is the
upper edge of the highest bucket with a value: at most 19 % too high.
NO_COLOR turns colours off: letters then show the phases.

A JSON object is one line. Times are in seconds, rates per second, and unknown
values are null. Each list is sorted by time, largest first.
  window_seconds, host, coverage {version: ratio}, timed
  ops      version op rate p50 p99 max errors_per_s share seconds
           phases {cpu runqueue log disk throttle upcall recall
           reclaim lock}, in seconds, or null
  pools    pool threads busy limit busy_ratio saturated_ratio rate
           queue_p50 queue_p99 queue_max
  rpc      version rate p50 p99 max seconds received_per_s sent_per_s
           phases {queue receive upcall execute reply} or null
  logs     fs volume waits_per_s wait_p50 wait_p99 wait_max seconds
           writes_per_s write_p99 bytes_per_s separate
  disks    device op rate queue_p99 device_p50 device_p99 device_max seconds
           bytes_per_s in_flight
  clients  client rate share seconds mean rtt
  exports  export rate share seconds mean
  lost     probe reason rate
  findings kind share: active findings of the agent
  not_measured [list]; not_attached: probe programs as in /probes";

const SLOW_EXAMPLES: &str = "\
Examples:
  nfscope slow                           operations slower than 10 ms, from the
                                         agent on this host; without an agent,
                                         from own probes (needs root)
  nfscope slow --op write,commit --min-latency 100ms
  nfscope slow --client 192.0.2.7        only operations of this client
  nfscope slow --url http://nfs1:9943 --count 20
  nfscope slow --json | jq 'select(.phases_seconds.log > 0.01)'

A line:
  TIME CLIENT VER OP BYTES SYNC STATUS TOTAL CPU RUNQ LOG DISK LOCK INODE EXPORT
  SYNC   stability of a WRITE: none (unstable), data, file (file_sync)
  TOTAL  execution time of the operation on the server; it consists of
  CPU    time on a CPU
  RUNQ   runnable, waiting for a CPU
  LOG    asleep until the journal or intent log was durable
  DISK   asleep for block I/O outside the log
  LOCK   any other sleep
The largest of the five is in colour. `-` means unknown. A narrow terminal shows
fewer columns; --json always prints all of them.

A JSON object is one line; unknown values are null:
  time client version op export dataset (ZFS only) inode path (illumos only) bytes stability
  status duration_seconds
  phases_seconds {cpu runqueue log disk throttle upcall recall reclaim lock}
A line {\"left_out\":N} says that N more operations happened since the last such
line.

nfscope slow stops on Ctrl-C and SIGTERM. NO_COLOR turns colours off.";

const DIAGNOSE_EXAMPLES: &str = "\
Exit code:
  0   healthy
  2   at least one finding
  1   unknown: no finding, but this host cannot measure everything

Examples:
  nfscope diagnose                       the agent on this host; without an
                                         agent, own probes (needs root)
  nfscope diagnose --duration 10m --url http://nfs1:9943
  nfscope diagnose --json | jq '.findings[0]'

Findings are sorted by the share of request time in the server (residence) that
each explains. A cause with 25 % or more is a finding:
  stuck_requests     requests are in hand for a second or longer, now
  retry_later        clients are told to try again later (NFS4ERR_DELAY,
                     NFS3ERR_JUKEBOX), and wait outside the server
  thread_starvation  requests wait for a thread, whatever the threads wait for
  slow_intent_log    operations wait for the journal or intent log, most of the
                     time in waits of 1 ms or more
  slow_disk          operations wait for block I/O outside the log, and the
                     waits or the devices are slow
  write_throttle     writers are held back until written data is stored
  slow_upcall        nfsd threads wait for rpc.mountd or another daemon
  delegation_recalls nfsd threads wait for clients to return delegations
  memory_reclaim     nfsd threads wait for free memory
  cpu_saturation     nfsd threads wait for a CPU
  lock_contention    nfsd threads wait for locks or other threads
  slow_reply         replies wait for the client or the network
  chatty_client      most requests are metadata queries or tiny READs
  small_sync_writes  synchronous writes make few bytes durable at a time
Where something is found, a simulation of the server tells what changes of it
would be worth: nfscope what-if. The agent evaluates every ten seconds;
/findings and nfscope_bottleneck_active have the result.

A JSON object: window_seconds, verdict (healthy, findings, unknown), reason,
requests, residence_seconds,
  findings   kind severity share summary evidence advice; evidence is a list of
             text metric value limit (base units; limit null where there is none)
  worth      gain gain_low gain_high is_rate prediction: a list of changes, where
             something is found; worth_unknown has the reason where there is none
  ruled_out  kind share why; share null where this host cannot measure it
  headroom   resource utilization (0 to 1)
  warnings   sentences: exports that acknowledge writes before they are durable";

const DETACH_EXAMPLES: &str = "\
Examples:
  sudo nfscope detach zfs        detach from module zfs; list its other users
  sudo nfscope attach zfs        attach again
  sudo nfscope detach all --url http://127.0.0.1:9944

Attached probes keep their kernel modules loaded. To replace a module while the
agent runs, detach its probe, unload the module and load the new one. The probe
then attaches automatically, and its counters restart. While the nfsd probe is
detached, no operation is timed, and /healthz reports it.";

/// Shows where each NFS operation spends its time on a Linux NFS server.
#[derive(Debug, Parser)]
#[command(name = "nfscope", version = VERSION, after_help = EXAMPLES, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the command line, or ends the program with what is wrong with it.
    pub fn from_command_line() -> Cli {
        Cli::try_parse().unwrap_or_else(|mistake| with_nearest(mistake).exit())
    }
}

/// Two letters that changed places are no likeness to clap: `tpo` gets its `top` here.
fn with_nearest(mut mistake: clap::Error) -> clap::Error {
    let typed = match mistake.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return mistake,
    };
    let first = std::env::args().nth(1).is_some_and(|arg| arg == typed);
    let cli = Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    if let (true, None, Some(name)) = (
        first,
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
    /// Show operations, threads, disks and clients live, in a terminal or as plain tables
    Top(TopArgs),
    /// Stream slow operations, each with its latency breakdown
    Slow(SlowArgs),
    /// Find the causes of request latency, with evidence and recommended actions
    Diagnose(DiagnoseArgs),
    /// Record baselines of a server and compare them
    Baseline(BaselineArgs),
    /// Estimate from a baseline what saturates first, and at which load
    Capacity(CapacityArgs),
    /// Plan and analyse experiments with several factors
    Experiment(experiment::ExperimentArgs),
    /// Predict what a change would do: threads, log, disks, CPUs, clients
    WhatIf(WhatIfArgs),
    /// Detach probes of the running agent, so that their kernel modules can be unloaded
    Detach(DetachArgs),
    /// Re-attach probes detached with `nfscope detach`
    Attach(AttachArgs),
    /// Run reproducible loads on an NFS client, with confidence intervals
    Workload(workload::WorkloadArgs),
    /// Print the reference of all metrics
    Metrics(MetricsArgs),
}

/// `nfscope agent`
#[derive(Debug, Default, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub struct AgentArgs {
    /// Address to serve on, given once or several times [default: 127.0.0.1:9943]
    #[arg(
        long = "web.listen-address",
        value_name = "HOST:PORT",
        conflicts_with = "systemd_socket"
    )]
    pub listen_addresses: Vec<String>,
    /// YAML file with TLS, certificates of clients and passwords, in the form of Prometheus' exporter-toolkit
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Serve on the sockets that systemd hands over, instead of addresses
    #[arg(long = "web.systemd-socket")]
    pub systemd_socket: bool,
    /// TOML file with settings [default: /etc/nfscope/nfscope.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Drop every capability once the probes are attached. Modules that load later (nfsd, sunrpc) are then not observed,
    /// and slow operations are not reported
    #[arg(long)]
    pub no_late_attach: bool,
    /// Make the kernel count runs and run time of every probe program (slows the probes down)
    #[arg(long)]
    pub probe_stats: bool,
    /// Do not split operations into phases (CPU, run queue, log, disk, lock). This removes the programs at waits
    #[arg(long)]
    pub no_phases: bool,
    /// Number of clients with their own time series, 0 to 10000; all others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_clients: Option<u16>,
    /// Number of exports with their own time series, 0 to 10000; all others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_exports: Option<u16>,
    /// Pairs of client and export that the probes tell apart at a time, 64 to 16384; 150 bytes of kernel memory each
    /// [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=i64::from(MOST_PAIRS)))]
    pub max_pairs: Option<u32>,
    /// Lowest level of messages to print [default: info]
    #[arg(long = "log.level", value_name = "LEVEL", value_parser = ["debug", "info", "warn", "error"])]
    pub log_level: Option<String>,
    /// Form of messages: lines of text, or one JSON object per line [default: text]
    #[arg(long = "log.format", value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log_format: Option<String>,
    /// For tests: skip one run in N of every probe program, as kernels do that preempt tracing programs
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    pub test_skip_one_in: u32,
    /// For tests: note waits at every context switch, as on kernels whose scheduler's books cannot be read
    #[arg(long, hide = true)]
    pub test_no_books: bool,
}

/// `nfscope check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write what the developers want to know of an illumos server into a file: releases, states and errors of the scripts,
    /// probes. It has no addresses, paths or names of pools
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "show_script"])]
    pub report: Option<PathBuf>,
    /// Print the D script that illumos's dtrace runs, instead of checking this host: nfs, rpc, zil, txg, io, slow
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub show_script: Option<String>,
}

/// `nfscope top`
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// Agent to read from [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
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
    /// Agent to listen to [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
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

/// `nfscope metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Print a Markdown page
    #[arg(long)]
    pub markdown: bool,
}

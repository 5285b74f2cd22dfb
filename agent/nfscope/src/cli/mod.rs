//! The command line.

mod baseline;
pub mod config;
pub mod workload;

pub use baseline::{
    BaselineArgs, BaselineCommand, CapacityArgs, CompareArgs, ExportArgs, ImportArgs, ListArgs,
    RecordArgs, RmArgs, ShowArgs, StoreArgs,
};

use crate::api::slow_filter as filter;
use clap::{Args, Parser, Subcommand};
use nfscope_source as source;
use nfscope_text::suggest::nearest;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

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

// Lines of these stay below 80 columns: clap would wrap them, and lose their columns.
const EXAMPLES: &str = "\
Examples:
  sudo nfscope check    what can be measured here, and what would help the rest
  sudo nfscope agent    measure, and serve Prometheus at 127.0.0.1:9943/metrics
  nfscope top           operations per second, latency and share of time, live
  nfscope slow          each operation over 10 ms as it happens, and what kept it
  nfscope diagnose      what keeps requests, with the evidence, and what to do
  nfscope baseline      record what the server does, and compare recordings
  nfscope capacity      from a recording: what saturates first, and when
  nfscope workload list loads for a client to run, and what they stand for
  nfscope metrics       every metric with its labels and meaning";

const AGENT_EXAMPLES: &str = "\
Examples:
  sudo nfscope agent
  sudo nfscope agent --web.listen-address 0.0.0.0:9943
  sudo nfscope agent --config /etc/nfscope.toml --no-late-attach

A configuration file holds the same settings; a flag overrides it:
  [web]
  listen_address = \"127.0.0.1:9943\"
  [probes]
  late_attach = true      # --no-late-attach makes it false
  statistics = false      # --probe-stats makes it true
  phases = true           # --no-phases makes it false
  [limits]
  clients = 100           # --max-clients
  exports = 100           # --max-exports

Served:
  /metrics     for Prometheus: text, OpenMetrics, native histograms
  /healthz     200 while NFS operations are being timed, else 503 and why
  /probes      every probe, its state and the reason, as JSON
  /snapshot    every value, as JSON
  /findings    what makes requests slow, now and before, as JSON
  /slow        slow operations as they happen, one JSON object a line, until
               the client hangs up; 8 clients at most
  /            a page for people

/slow takes over=10ms, op=write,commit, client=192.0.2.7 and limit=1000 (a second):
  curl -N 'http://127.0.0.1:9943/slow?over=50ms&op=write,commit'
Among its lines, {\"left_out\":N} says that N more happened since the last such
line; N is 0 where it is only a sign of life.

Stops on SIGTERM and SIGINT. Nothing stays attached, however it ends.";

const CHECK_EXAMPLES: &str = "\
Exit code:
  0   NFS operations can be timed, with everything that belongs to it
  3   they can, but some probes are absent or use a fallback
  1   they cannot

Examples:
  sudo nfscope check
  sudo nfscope check --json";

const TOP_EXAMPLES: &str = "\
Examples:
  nfscope top                            this host's agent; where none runs,
                                         probes of its own (needs root)
  nfscope top --url http://nfs1:9943     an agent elsewhere
  nfscope top --once --interval 10s      one plain table over ten seconds
  nfscope top --json | jq '.ops[0]'      what takes the most time, every window

On the screen ? explains keys, columns and phases. Into a pipe or a file, and
where TERM is dumb, tables are printed one after another.
SHARE is the part of all operations' time that went into this one. MAX is the
upper edge of the highest bucket with a value: at most 19 % too high.
Set NO_COLOR to do without colours: phases are then told apart by letters.

A JSON object is one line: times in seconds, rates per second, null where it is
not known, the most time first in each list.
  window_seconds, host, coverage {version: ratio}, timed
  ops      version op rate p50 p99 max errors_per_s share seconds
           phases {cpu runqueue log disk lock}, in seconds, or null
  pools    pool threads busy limit busy_ratio saturated_ratio rate
           queue_p50 queue_p99 queue_max
  rpc      version rate p50 p99 max seconds received_per_s sent_per_s
           phases {queue receive execute reply} or null
  logs     fs volume waits_per_s wait_p50 wait_p99 wait_max seconds
           writes_per_s write_p99 bytes_per_s separate
  disks    device op rate queue_p99 device_p50 device_p99 device_max seconds
           bytes_per_s in_flight
  clients  client rate share seconds mean rtt
  exports  export rate share seconds mean
  lost     probe reason rate
  findings kind share, by the agent's last windows of ten seconds
  not_measured [list]; not_attached: probe programs as in /probes";

const SLOW_EXAMPLES: &str = "\
Examples:
  nfscope slow                           every operation over 10 ms on this
                                         host's agent; where none runs, probes
                                         of its own (needs root)
  nfscope slow --op write,commit --over 100ms
  nfscope slow --client 192.0.2.7        what this client waits for
  nfscope slow --url http://nfs1:9943 --count 20
  nfscope slow --json | jq 'select(.phases_seconds.log > 0.01)'

A line:
  TIME CLIENT VER OP BYTES SYNC STATUS TOTAL CPU RUNQ LOG DISK LOCK INODE EXPORT
  SYNC   what a WRITE asked for: none (unstable), data, file (file_sync)
  TOTAL  time in which the server executed the operation; of that
  CPU    on a processor
  RUNQ   runnable, and waiting for a processor
  LOG    asleep until the journal or intent log was durable
  DISK   asleep for block I/O outside the log
  LOCK   any other sleep
The largest of the five is in colour. Where something is not known, there is a
`-`. A narrow terminal shows fewer columns, --json always everything.

Stops on Ctrl-C and SIGTERM. Set NO_COLOR to do without colours.";

const DIAGNOSE_EXAMPLES: &str = "\
Exit code:
  0   healthy: nothing keeps requests for long
  2   at least one finding
  1   could not tell: nothing was found, but not everything is measured here

Examples:
  nfscope diagnose                       this host's agent; where none runs,
                                         probes of its own (needs root)
  nfscope diagnose --for 10m --url http://nfs1:9943
  nfscope diagnose --json | jq '.findings[0]'

Findings, the strongest first, by the part of the requests' time in the server
(residence) that they explain; 25 % or more is a finding:
  thread_starvation  requests wait for a thread, and threads for nothing slow
  slow_intent_log    the journal or intent log takes 2 ms or more
  slow_disk          block I/O outside the log does
  cpu_saturation     threads wait for a processor
  lock_contention    threads wait for each other
  slow_reply         replies wait for the client or the network
  chatty_client      most requests only ask: attributes, names, tiny READs
  small_sync_writes  few bytes at a time are made durable
What requests wait for a thread is charged to what keeps the threads. The agent
judges every ten seconds: /findings, and nfscope_bottleneck_active.

A JSON object: window_seconds, verdict (healthy, findings, unknown), reason,
requests, residence_seconds,
  findings   kind severity share summary evidence advice; evidence is a list of
             text metric value limit (base units; limit null where there is none)
  ruled_out  kind share why; share null where this host does not tell
  headroom   resource used";

const DETACH_EXAMPLES: &str = "\
Examples:
  sudo nfscope detach zfs        let go of module zfs; say what else holds it
  sudo nfscope attach zfs        have it back
  sudo nfscope detach all --url http://127.0.0.1:9944

Attached probes keep their kernel modules from being unloaded. To replace one
while the agent goes on, let it go, unload the module and load the new one: the
probe attaches by itself to that. What a probe counted starts anew when it attaches again. A detached nfsd probe
times no operations: /healthz says so.";

/// Shows where every NFS operation's time goes, on the server.
#[derive(Debug, Parser)]
#[command(name = "nfscope", version = VERSION, after_help = EXAMPLES, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach the probes and serve what they measure until SIGTERM or SIGINT
    Agent(AgentArgs),
    /// Tell what this host lets nfscope measure, and why not more
    Check(CheckArgs),
    /// Show operations, threads, disks and clients as they are now, on a screen or as tables
    Top(TopArgs),
    /// Print every slow operation as it happens, and what kept it
    Slow(SlowArgs),
    /// Watch for a minute and name what makes requests slow, with the evidence
    Diagnose(DiagnoseArgs),
    /// Record what a server does, to hold other times against it
    Baseline(BaselineArgs),
    /// Tell from a baseline what would saturate first, and at which load
    Capacity(CapacityArgs),
    /// Let the running agent's probes go, so that their kernel modules can be unloaded and replaced
    Detach(DetachArgs),
    /// Attach again what was let go of
    Attach(AttachArgs),
    /// Run reproducible loads on a client, with the intervals of their figures
    Workload(workload::WorkloadArgs),
    /// Print the reference of all metrics
    Metrics(MetricsArgs),
}

/// `nfscope agent`
#[derive(Debug, Default, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub struct AgentArgs {
    /// Address to serve on [default: 127.0.0.1:9943]
    #[arg(long = "web.listen-address", value_name = "HOST:PORT")]
    pub listen_address: Option<String>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Drop every capability once attached; modules that load later (nfsd, sunrpc) are then not followed, and slow
    /// operations not reported
    #[arg(long)]
    pub no_late_attach: bool,
    /// Have the kernel count runs and run time of every probe program (slower probes)
    #[arg(long)]
    pub probe_stats: bool,
    /// Do not split operations into phases (processor, run queue, log, disk, lock); spares a program at every context
    /// switch
    #[arg(long)]
    pub no_phases: bool,
    /// Most clients with series of their own, 0 to 10000; the others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_clients: Option<u16>,
    /// Most exports with series of their own, 0 to 10000; the others share `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(MOST_SERIES)))]
    pub max_exports: Option<u16>,
}

/// `nfscope check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `nfscope top`
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// Agent to read from [default: http://127.0.0.1:9943, or probes of its own where no agent answers]
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
    /// Only operations that took longer: 10ms, 1.5s, 200us
    #[arg(long, value_name = "TIME", default_value = filter::OVER, value_parser = filter::time)]
    pub over: Duration,
    /// Only these operations: write,commit
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = filter::operation)]
    pub op: Vec<String>,
    /// Only this client's
    #[arg(long, value_name = "ADDR", value_parser = filter::client)]
    pub client: Option<IpAddr>,
    /// Most operations in a second; how many more there were is said
    #[arg(long, value_name = "N", default_value_t = filter::LIMIT, value_parser = filter::limit)]
    pub limit: u32,
    /// Stop after so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Agent to listen to [default: http://127.0.0.1:9943, or probes of its own where no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `nfscope diagnose`
#[derive(Debug, Args)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub struct DiagnoseArgs {
    /// How long to watch: 10s, 1m
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = interval)]
    pub length: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Agent to watch [default: http://127.0.0.1:9943, or probes of its own where no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `nfscope detach`
#[derive(Debug, Args)]
#[command(after_help = DETACH_EXAMPLES)]
pub struct DetachArgs {
    /// Probes to let go of: nfsd, jbd2, xfs, btrfs, zfs, ... or all
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

/// A word for probes, and those that it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probes(pub Vec<&'static str>);

fn probe(text: &str) -> Result<Probes, String> {
    let all: Vec<_> = source::words().collect();
    if text == "all" {
        return Ok(Probes(all));
    }
    match all.iter().find(|w| **w == text) {
        Some(word) => Ok(Probes(vec![word])),
        None => Err(format!(
            "no probe has that name{}",
            nearest(text, all.into_iter().chain(["all"]), |w| format!("`{w}`"))
        )),
    }
}

/// `nfscope metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Print a Markdown page
    #[arg(long)]
    pub markdown: bool,
}

/// `2s`, `500ms`, `1m` or a bare number of seconds, between 100 ms and one hour.
fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return Err("give a time as 500ms, 2s or 1m".into()),
    };
    match digits.parse::<f64>() {
        Ok(n) if (0.1..=3600.0).contains(&(n * factor)) => Ok(Duration::from_secs_f64(n * factor)),
        Ok(_) => Err("give a time between 100ms and 60m".into()),
        Err(_) => Err("give a time as 500ms, 2s or 1m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_finds_no_fault_with_it() {
        Cli::command().debug_assert();
    }

    #[test]
    fn intervals() {
        for (text, ms) in [
            ("1s", 1000),
            ("500ms", 500),
            ("2", 2000),
            ("1.5s", 1500),
            ("1m", 60_000),
        ] {
            assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0s", "2h", "-1s", "99ms", "1e9s", "NaN"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}

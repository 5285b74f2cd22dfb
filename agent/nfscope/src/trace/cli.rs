//! The command line of `nfscope trace`.

use crate::cli::AccessArgs;
use clap::{Args, Subcommand};
use nfscope_text::parse;
use nfscope_trace::replay::Target;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfscope trace record --for 1h load.trace            on the server
  nfscope trace replay load.trace new-nas:/export     on a client of another one";

const RECORD_EXAMPLES: &str = "\
Examples:
  nfscope trace record load.trace                     until Ctrl-C
  nfscope trace record --for 1h --max-size 4G load.trace
  nfscope trace record --every-handle 10 --for 1h load.trace
  nfscope trace record --url http://nfs1:9943 --for 10m load.trace

Every operation of the server's clients becomes one row: arrival, duration,
client, file, operation and version, offset, length, stability, status, and the
COMPOUND that it belonged to. Names and addresses are not recorded. Files and
clients are pseudonyms; their key is forgotten when the recording ends. The
identity of the server is a digest, by which a replay knows it again.

Operations come from the agent of this host, or from own probes (needs root).
Operations that were not read in time are missing. The trace has their number,
and the recording ends with a warning. The file can be read after Ctrl-C, after
SIGTERM, when --max-size is reached and when the agent ends.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  nfscope trace replay load.trace new-nas:/export
  nfscope trace replay load.trace new-nas:/export --speed 2
  nfscope trace replay load.trace new-nas:/export --closed-loop --times 4
  nfscope trace replay load.trace new-nas:/export --yes --json > result.json

Operations are sent as NFSv3 over TCP, without a mount: NFSv4 operations by the
procedure that does the same. What has no counterpart (sessions, locks, framing
of COMPOUNDs) is counted and listed. A server of NFSv4 alone is refused.

The files that the trace implies are made in a new directory of the export,
nfscope-replay-..., before the first operation, and removed after the last. No
name of the trace is used, and nothing outside that directory is changed. The
command asks before it writes, unless --yes is given.

Times:
  (default)       open loop: each operation at its recorded time, whether or not
                  earlier ones were answered. Late operations are counted, and
                  latencies are also given from the time that was due
  --speed 2       the same in half the time
  --closed-loop   as fast as the server answers: an operation follows those of
                  its client and its file that had ended when it arrived

Run it as root, or export with `insecure`: most servers only take reserved
ports. The result compares each operation with the trace: number, status, bytes,
latency, lateness. Durations of a server's trace are times in the server, and
latencies of a replay are times of a client: compare replays with replays.";

/// `nfscope trace`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// Part of the command
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// Parts of `nfscope trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Record every operation of this server into a file, without names
    Record(RecordArgs),
    /// Replay a trace on another server, and compare
    Replay(Box<ReplayArgs>),
}

/// `nfscope trace record`
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct RecordArgs {
    /// New file of the trace
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// Stop after this time: 10m, 1h [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Stop when the file has this size: 500M, 4G
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes)]
    pub max_size: u64,
    /// Record one file of N, with all its operations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub every_handle: u32,
    /// Record at most N operations per second, and count the rest
    #[arg(long, value_name = "N", default_value_t = parse::MAX_EVENTS_PER_SECOND, value_parser = parse::events_per_second)]
    pub limit: u32,
    /// Record this host's own mounts. Not possible yet: the error says why
    #[arg(long, hide = true)]
    pub client: bool,
    /// Agent of the server [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
}

/// `nfscope trace replay`
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub struct ReplayArgs {
    /// Trace
    #[arg(value_name = "IN")]
    pub trace: PathBuf,
    /// Server and export to replay on
    #[arg(value_name = "SERVER:/EXPORT")]
    pub target: Target,
    /// Divide the recorded times by this factor
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed, conflicts_with = "closed_loop")]
    pub speed: f64,
    /// Issue operations as fast as the server answers, in the order that the trace implies
    #[arg(long)]
    pub closed_loop: bool,
    /// Replay N independent copies at once, each with its own files and connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub times: u32,
    /// Most connections; by default each client of the trace has its own
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub connections: u32,
    /// Give files their sizes without data: quicker to make, and their READs need no disk
    #[arg(long)]
    pub sparse: bool,
    /// Keep the directory of the replay
    #[arg(long)]
    pub keep: bool,
    /// Write without asking
    #[arg(long)]
    pub yes: bool,
    /// Replay on the server that was recorded, too
    #[arg(long)]
    pub allow_recorded_server: bool,
    /// User id of all calls [default: that of this process]
    #[arg(long, value_name = "ID")]
    pub uid: Option<u32>,
    /// Group id of all calls [default: that of this process]
    #[arg(long, value_name = "ID")]
    pub gid: Option<u32>,
    /// Port of NFS [default: by the server's rpcbind]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub nfs_port: Option<u16>,
    /// Port of the MOUNT protocol [default: by the server's rpcbind]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub mount_port: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    parse::duration(
        text,
        Duration::from_secs(1)..=Duration::from_secs(31 * 86_400),
    )
}

fn speed(text: &str) -> Result<f64, String> {
    let wrong = || "give a factor from 0.01 to 1000, such as 2 or 0.5".to_owned();
    let factor: f64 = text.parse().map_err(|_| wrong())?;
    (0.01..=1000.0)
        .contains(&factor)
        .then_some(factor)
        .ok_or_else(wrong)
}

fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "give a size from 1M on, such as 500M or 4G".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|n| *n > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_factors_outside_their_bounds_are_refused() {
        assert_eq!(bytes("4G"), Ok(4 << 30));
        for wrong in ["0M", "4", "4K", "-1G", "99999999999T", "G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(speed("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "inf", "nan", "x"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}

//! The command line of `nfscope baseline`.

use clap::{Args, Subcommand};
use nfscope_baseline::target_metric as metric;
use nfscope_baseline::target_metric::Metric;
use nfscope_baseline::{name, store};
use std::path::PathBuf;
use std::time::Duration;

// Lines of these stay below 80 columns: clap would wrap them, and lose their columns.
const EXAMPLES: &str = "\
Examples:
  sudo nfscope baseline record before --label disks=hdd
  sudo nfscope baseline record night --for 8h
  sudo nfscope baseline record after --until-ci 5% --metric write:p99
  nfscope baseline list
  nfscope baseline show before
  nfscope baseline compare before after
  nfscope baseline export before /tmp/before.nfscope

A baseline is what a server did in a stretch of time, kept window by window with
everything that is measured, so that another such stretch can be held against
it: before and after a change, this week and the last.";

const RECORD_EXAMPLES: &str = "\
Exit code:
  0   recorded, or ended by Ctrl-C or SIGTERM with what there was
  3   --until-ci: the limit was over first; what there is is kept
  1   nothing was recorded, or not to the end

Examples:
  sudo nfscope baseline record before              30 minutes
  sudo nfscope baseline record week --for 7d --interval 1m
  nfscope baseline record nfs1-idle --url http://nfs1:9943 \\
      --store ~/nfs.db --label disks=hdd --label season=winter
  sudo nfscope baseline record after --until-ci 5% --at-most 4h
  sudo nfscope baseline record after --until-ci 2% --metric read:mean

Every window is safe once it has ended, whatever happens then: kill -9, a full
disk, no power. While the agent does not answer, windows are missing, and it is
said how long.

--until-ci ends when half the width of the metric's 95 % confidence interval is
no more than that part of its value. It becomes half as wide in four times the
time: it is said how long that will be, and whether the limit allows it.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  nfscope baseline compare before after
  nfscope baseline compare before after --html report.html
  nfscope baseline compare before after --json | jq '.rows[] |
      select(.verdict == \"worse\")'

Compared are operations with 2 % or more of all operations' time, requests,
their wait for a thread, waits for each log, and synchronous writes.
Verdicts:
  better, worse   shorter, longer than before
  more, less      of something that is neither good nor bad in itself
  no evidence     chance alone makes such a difference, or it is too small to
                  matter (--least)
  not comparable  too little of it, or not measured on one side
They are corrected for how many quantities are compared: the probability that
any of them is wrong where nothing changed is 5 % at most. The interval beside
a change is that of its own comparison.

A JSON object: answer, warnings [kind text], before and after {about windows
seconds operations clients}, rows, method, left_out. A row has of (op, requests,
queue, log, sync_writes) with version, op, fs and volume; what (rate, mean,
quantile, phase, share) with percent or phase; before, after and ratio {value
low high} in seconds or per second, p (corrected), verdict, why.";

const CAPACITY_EXAMPLES: &str = "\
Examples:
  nfscope capacity friday
  nfscope capacity friday --json | jq '.resources[0]'

Record under real load: what is hardly used says little of where its end is.

A JSON object: rate, residence, inside, threads, resources [name used interval
peak bound note], doubts, assumptions; times in seconds, bounds in requests a
second.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  nfscope baseline export before /tmp/before.nfscope
  scp nfs1:/tmp/before.nfscope .
  nfscope baseline import before.nfscope --as nfs1-before --store ~/nfs.db

The file is whole in itself, and the same on every machine. It is an SQLite
file with the schema of a store; later versions read it, too.";

/// `nfscope baseline`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BaselineArgs {
    /// What to do
    #[command(subcommand)]
    pub command: BaselineCommand,
}

/// The commands of `nfscope baseline`.
#[derive(Debug, Subcommand)]
pub enum BaselineCommand {
    /// Record what the server does from now on
    Record(RecordArgs),
    /// List what has been recorded
    List(ListArgs),
    /// Show all that is known of one baseline
    Show(ShowArgs),
    /// Hold one baseline against another: what changed, and what only chance did
    Compare(CompareArgs),
    /// Remove baselines
    Rm(RmArgs),
    /// Write one baseline to a file, for another machine
    Export(ExportArgs),
    /// Read the baseline in a file into the store
    Import(ImportArgs),
}

/// Which store.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// File with the baselines
    #[arg(long = "store", value_name = "FILE", default_value = store::DEFAULT)]
    pub path: PathBuf,
}

/// `nfscope baseline record`
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct RecordArgs {
    /// Name: letters, digits and . _ - :
    #[arg(value_parser = name::check)]
    pub name: String,
    /// How long: 30s, 30m, 24h, 7d
    #[arg(long = "for", value_name = "TIME", default_value = "30m", value_parser = length, conflicts_with = "until_ci")]
    pub length: Duration,
    /// Until the metric is known this well: 5% (half its 95 % confidence interval; at least 30 windows)
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub until_ci: Option<f64>,
    /// With --until-ci: no longer than this
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = length, requires = "until_ci")]
    pub at_most: Duration,
    /// Length of one window: 500ms, 10s, 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::interval)]
    pub interval: Duration,
    /// What to watch: OP, or OP:p50, p90, p99, mean, rate, over all versions [default: p99 of the operation that takes
    /// the most time]
    #[arg(long, value_name = "OP[:WHAT]", value_parser = metric::parse)]
    pub metric: Option<Metric>,
    /// What to remember of it; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Agent to record [default: http://127.0.0.1:9943, or probes of its own where no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Where to
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the baseline
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline compare`
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Name of the earlier baseline
    pub before: String,
    /// Name of the later one
    pub after: String,
    /// Changes up to this part do not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = least)]
    pub least: f64,
    /// Write a page with drawings to FILE, whole in itself
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope capacity`
#[derive(Debug, Args)]
#[command(after_help = CAPACITY_EXAMPLES)]
pub struct CapacityArgs {
    /// Name of the baseline
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline rm`
#[derive(Debug, Args)]
pub struct RmArgs {
    /// Names of the baselines
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline export`
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// Name of the baseline
    pub name: String,
    /// File to write
    pub file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline import`
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ImportArgs {
    /// File to read
    pub file: PathBuf,
    /// Name to give it [default: the one that it had]
    #[arg(long = "as", value_name = "NAME", value_parser = name::check)]
    pub name: Option<String>,
    /// Where to
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Longest recording.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// `30s`, `30m`, `24h`, `7d`. A bare number has no unit, so that nobody gets seconds who meant minutes.
fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time with its unit: 30s, 30m, 24h, 7d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let n: f64 = digits.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(n * unit)
        .ok()
        .filter(|d| !d.is_zero() && *d <= LONGEST)
        .ok_or_else(|| "give a time of at most 366d".to_owned())
}

/// `5%` as 0.05.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(n) if (0.1..=100.0).contains(&n) => Ok(n / 100.0),
        _ => Err("give a part of the value between 0.1% and 100%, as in 5%".to_owned()),
    }
}

/// `2%` as 0.02; there may be none.
fn least(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim_end() {
        "0" => Ok(0.0),
        _ => percent(text),
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("give KEY=VALUE, as in disks=hdd".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        for (text, s) in [
            ("30s", 30),
            ("30m", 1_800),
            ("1.5h", 5_400),
            ("24h", 86_400),
            ("7d", 604_800),
        ] {
            assert_eq!(length(text), Ok(Duration::from_secs(s)), "{text}");
        }
        for text in [
            "", "30", "s", "0s", "-1s", "1w", "NaNs", "infd", "367d", "1e9d",
        ] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_and_labels() {
        assert_eq!(percent("5%"), Ok(0.05));
        assert_eq!(percent("2.5"), Ok(0.025));
        for text in ["", "%", "0%", "101%", "-1%", "NaN"] {
            assert!(percent(text).is_err(), "{text}");
        }
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(label("a="), Ok(("a".to_owned(), String::new())));
        assert!(label("a").is_err() && label("=a").is_err());
    }
}

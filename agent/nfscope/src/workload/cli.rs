//! The command line of `nfscope workload`.

use crate::cli::values::{run_metric, size};
use clap::{Args, Subcommand};
use nfscope_baseline::{name, store};
use nfscope_load::workload::{Metric, SizeName, Workload, named};
use nfscope_text::parse;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfscope workload list
  nfscope workload show mail > mail.fio           for fio alone
  nfscope workload run mail --dir /mnt/nfs
  nfscope workload run database --dir /mnt/nfs --until-ci 5%";

const RUN_EXAMPLES: &str = "\
Exit code:
  0   measured
  3   measured, but --until-ci was not reached within --max-duration
  1   could not measure
  130, 143   stopped by Ctrl-C or SIGTERM; the files are removed

Examples:
  nfscope workload run webhosting --dir /mnt/nfs
  nfscope workload run mail --dir /mnt/nfs --until-ci 5% --metric p99
  nfscope workload run streams --dir /mnt/nfs --size large --repeats 10 --json
  nfscope workload run mail --dir /mnt/nfs --set FILES=5000 --threads 16
  nfscope workload run iozone --dir /mnt/nfs --set RECORD=4k
  nfscope workload run database --dir /mnt/nfs --rate 2000 --threads 2
  nfscope workload run mail --dir /mnt/nfs --record hdd-1 --label disks=hdd \\
      --url http://nfs1:9943 --store ~/nfs.db
  nfscope baseline compare hdd-1,hdd-2,hdd-3 ssd-1,ssd-2,ssd-3 --store ~/nfs.db

Run the workload on an NFS client, not on the server. The files are created
once in DIR/nfscope-workload-NAME, which is removed at the end. The first
repeat warms up caches and is discarded. Repeats are separate runs of fio with
a Student's t interval of their mean. If consecutive repeats correlate, the
interval is too narrow, and the result contains a warning. --until-ci checks
the interval after 10 repeats, and then each time there are a third more. The
measurement ends when two checks in a row pass, and never while repeats are
strongly correlated.

--record keeps the results of the repeats as a baseline: rates, latencies and
failures of each job, in 30 windows for each repeat (of at least 1 s). A repeat
of a workload with phases is one window. Where the server's agent answers, each
window has its metrics, too. With --record, failed operations are counted, and
do not end the run.

With --rate each request is due at a random time (Poisson), and its latency
counts from then. A slow answer therefore delays no later request. Up to
--depth requests (64) are in flight. The requests of `database` are made by
fio, with up to --depth requests in each thread. A warning says if the depth
was reached, or if the rate was not. Requests of workloads with small files are
made by nfscope. Requests above the depth wait, and this wait is part of their
latency. streams, iozone and ramp have no open loop, and the error has the
reason.

A JSON object; intervals are mean and half_width (95 %), null if unknown:
  workload, size, directory, filesystem {type version source}, fio, metric,
  runtime_seconds, repeats, until_ci, reached, autocorrelation, warnings,
  parameters
  total    iops bytes_per_second latency_seconds p99_seconds
  jobs     job operation, and the same as in total
  unit     name operations per_second seconds p50_seconds p99_seconds, of
           webhosting
  runs     each repeat's total, in order";

/// `nfscope workload`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkloadArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: WorkloadCommand,
}

/// What to do with workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the workloads, each with its purpose and its mix of operations
    List,
    /// Print the job file of a workload for fio; its comments explain every parameter
    Show {
        /// Name of the workload
        #[arg(value_parser = named)]
        name: Workload,
    },
    /// Run a workload repeatedly in a directory and print its figures with confidence intervals
    Run(Box<WorkloadRunArgs>),
}

/// `nfscope workload run`
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct WorkloadRunArgs {
    /// Name of the workload; see `nfscope workload list`
    #[arg(value_parser = named)]
    pub name: Workload,
    /// Directory to work in: a mounted NFS export
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Repeat until half the 95 % confidence interval is at most this part of the mean: 5% (at least 13 repeats)
    #[arg(long, value_name = "PERCENT", value_parser = precision, conflicts_with = "repeats")]
    pub until_ci: Option<f64>,
    /// Number of repeats after the warm-up [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: Option<u32>,
    /// With --until-ci: longest measurement. A repeat that would end later does not start [default: 1h]
    #[arg(long = "max-duration", alias = "at-most", value_name = "TIME", value_parser = duration, requires = "until_ci")]
    pub at_most: Option<Duration>,
    /// Length of one repeat, or of each step of ramp: 10s, 1m. Without --rate, repeats of metadata and iozone end with their work instead
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = runtime)]
    pub runtime: Duration,
    /// Amount of data; the job file lists the sizes
    #[arg(long, value_parser = size(), default_value = "medium")]
    pub size: SizeName,
    /// A parameter of the job file: --set FILES=5000. `nfscope workload list` shows the names
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Number of threads or processes of the workload; the job file describes them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Largest number of requests in flight: of an open loop [default: 64], or of each thread of database
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: Option<u32>,
    /// Requests per second of an open loop: they arrive at random, whether earlier ones have ended or not
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// Metric for --until-ci
    #[arg(long, value_parser = run_metric(), default_value = "iops")]
    pub metric: Metric,
    /// Record the results window by window as a baseline of this name, with the metrics of the server's agent if one answers
    #[arg(long, value_name = "NAME", value_parser = name::check)]
    pub record: Option<String>,
    /// Label to store with the baseline; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::label, requires = "record")]
    pub labels: Vec<(String, String)>,
    /// Agent of the server [default: http://127.0.0.1:9943 if the server is this host]
    #[arg(long, value_name = "URL", requires = "record")]
    pub url: Option<String>,
    /// File with the baselines
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT)]
    pub store: PathBuf,
    /// Access to that agent
    #[command(flatten)]
    pub access: crate::cli::access::AccessArgs,
    /// Keep the files at the end, and reuse files that an earlier run kept
    #[arg(long)]
    pub keep: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

const MIN_TIME: Duration = Duration::from_secs(1);
const MAX_TIME: Duration = Duration::from_secs(86_400);
const MIN_PERCENT: f64 = 0.0001;

fn duration(text: &str) -> Result<Duration, String> {
    parse::duration(text, MIN_TIME..=MAX_TIME)
}

/// Parses a run time. fio takes whole seconds.
fn runtime(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.subsec_nanos() == 0 => Ok(time),
        _ => Err("give whole seconds".to_owned()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("give NAME=VALUE, as in FILES=5000".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let n = text.parse::<f64>().ok();
    n.filter(|n| (1.0..=1e7).contains(n))
        .ok_or_else(|| "give requests per second, as in 500".to_owned())
}

/// Parses the half width of a confidence interval, as a fraction of the mean.
fn precision(text: &str) -> Result<f64, String> {
    parse::percent(text, MIN_PERCENT..=1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_whole_seconds_of_at_most_a_day() {
        for (text, seconds) in [("1s", 1), ("90s", 90), ("5m", 300), ("24h", 86_400)] {
            assert_eq!(runtime(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0s", "1.5s", "500ms", "25h"] {
            assert!(runtime(text).is_err(), "{text}");
        }
    }
}

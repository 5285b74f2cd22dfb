//! The command line of `nfscope workload`.

use crate::workload::{Metric, SizeName, Workload, named};
use clap::{Args, Subcommand};
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

Run the workload on an NFS client, not on the server. The files are created once
in DIR/nfscope-workload-NAME, which is removed at the end. The first repeat
warms up caches and is discarded. Repeats are separate runs of fio with a
Student's t interval of their mean. If consecutive repeats correlate, the
interval is too narrow, and the result contains a warning. --until-ci looks
after 10 repeats and then each time there are a third more. It ends after two
looks in a row, and never while repeats correlate much.

A JSON object; intervals are mean and half_width (95 %), null if unknown:
  workload, size, directory, filesystem {type version source}, fio, metric,
  runtime_seconds, repeats, until_ci, reached, autocorrelation, warnings
  total    iops bytes_per_second latency_seconds p99_seconds
  jobs     job operation, and the same as in total
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
    /// List the workloads: what each stands for, and its mix of operations
    List,
    /// Print the job file of a workload for fio; its comments explain every parameter
    Show {
        /// Which workload
        #[arg(value_parser = named)]
        name: Workload,
    },
    /// Run a workload repeatedly in a directory and print its figures with confidence intervals
    Run(WorkloadRunArgs),
}

/// `nfscope workload run`
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct WorkloadRunArgs {
    /// Which workload; see `nfscope workload list`
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
    /// Length of one repeat: 10s, 1m (metadata runs until its files are done)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = runtime)]
    pub runtime: Duration,
    /// Amount of data; the job file lists the sizes
    #[arg(long, value_enum, default_value_t = SizeName::Medium)]
    pub size: SizeName,
    /// Metric for --until-ci
    #[arg(long, value_enum, default_value_t = Metric::Iops)]
    pub metric: Metric,
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

/// Whole seconds, which is what fio counts its runtime in.
fn runtime(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.subsec_nanos() == 0 => Ok(time),
        _ => Err("give whole seconds".to_owned()),
    }
}

/// How narrow an interval may be asked for.
fn precision(text: &str) -> Result<f64, String> {
    parse::percent(text, MIN_PERCENT..=1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_whole_seconds_of_at_most_a_day() {
        for (text, seconds) in [("1s", 1), ("90", 90), ("5m", 300), ("24h", 86_400)] {
            assert_eq!(runtime(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0s", "1.5s", "500ms", "25h"] {
            assert!(runtime(text).is_err(), "{text}");
        }
    }
}

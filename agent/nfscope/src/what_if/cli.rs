//! Command line of `nfscope what-if`.

use crate::cli::StoreArgs;
use crate::cli::values::interval;
use clap::Args;
use nfscope_text::parse;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfscope what-if                        the changes with the largest gain
  nfscope what-if --threads 32           the agent on this host, watched for a
                                         minute; without an agent, own probes
  nfscope what-if friday --log 0.1ms     from the baseline `friday`
  nfscope what-if friday --threads 32 --log 1ms --clients x2
  nfscope what-if friday --write-size 64k
  nfscope what-if friday --threads 32 --json | jq '.rate'

The measured requests are replayed through a simulation of the server: threads,
CPUs, a log with group commit, disks and clients. The simulation first has to
reproduce the measurement. Otherwise there is no prediction. A measurement
leaves some properties of the server open. The interval covers all values of
them that reproduce it.
Measure under the load that matters: an idle server shows no limits.

Exit code:
  0   there is a prediction
  1   there is no prediction; the error has the reason

A JSON object; times are in seconds, rates in requests per second:
  change       threads log_seconds disk_seconds cpus clients_factor write_bytes;
               null for each that stays
  threads_by_pool
               nfsd threads of each pool after a change of threads, else empty
  rate residence queue queue_p99
               before, after, low, high
  ops          version op mean p99, each with before, after, low, high
  used         resource utilization (0 to 1) after the change
  calibration  rate and residence of the model without the change, relative to
               the measured ones
  assumptions  list of sentences
Without a change, a list of objects: gain gain_low gain_high is_rate prediction.";

/// `nfscope what-if`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhatIfArgs {
    /// Name of a baseline [default: watch the agent]
    #[arg(value_name = "RECORDING")]
    pub name: Option<String>,
    /// Number of nfsd threads of all pools together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub threads: Option<u32>,
    /// Time of one request to the device of the log: 0.1ms, 50us
    #[arg(long, value_name = "TIME", value_parser = device)]
    pub log: Option<Duration>,
    /// Time of one request to the disks outside the log
    #[arg(long, value_name = "TIME", value_parser = device)]
    pub disk: Option<Duration>,
    /// Number of CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// Factor for the number of clients: x2, x0.5
    #[arg(long, value_name = "xN", value_parser = times)]
    pub clients: Option<f64>,
    /// Bytes of each WRITE: 4096, 128k, 1m
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub write_size: Option<u64>,
    /// How long to watch the agent: 10s, 1m
    #[arg(long = "duration", value_name = "TIME", default_value = "60s", value_parser = interval, conflicts_with = "name")]
    pub length: Duration,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Agent to watch [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL", conflicts_with = "name")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: crate::cli::access::AccessArgs,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

const FASTEST_DEVICE: Duration = Duration::from_micros(1);
const SLOWEST_DEVICE: Duration = Duration::from_secs(10);

fn device(text: &str) -> Result<Duration, String> {
    parse::duration(text, FASTEST_DEVICE..=SLOWEST_DEVICE)
}

fn times(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('x').unwrap_or(text);
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|n| plain && (0.1..=100.0).contains(n));
    number.ok_or_else(|| "give a factor between x0.1 and x100, for example x2".to_owned())
}

/// Largest WRITE that NFS clients ask for, in bytes.
const LARGEST_WRITE: u64 = 4 << 20;

fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (number, unit) = match lower.strip_suffix(['k', 'm']) {
        Some(number) if lower.ends_with('k') => (number, 1 << 10),
        Some(number) => (number, 1 << 20),
        None => (&*lower, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    bytes
        .filter(|n| (1..=LARGEST_WRITE).contains(n))
        .ok_or_else(|| "give 1 to 4m bytes, for example 64k".to_owned())
}

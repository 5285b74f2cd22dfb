//! The command line of `nfscope versions`.

use crate::cli::access::AccessArgs;
use crate::cli::values::size;
use clap::Args;
use nfscope_load::versions::export::Export;
use nfscope_load::versions::kind::{self, Kind};
use nfscope_load::versions::mount::VERSIONS;
use nfscope_load::workload::SizeName;
use nfscope_text::parse;
use nfscope_text::suggest::nearest;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Exit code:
  0   measured
  3   measured, but --until-ci was not reached within --max-duration
  1   could not measure
  130, 143   stopped by Ctrl-C or SIGTERM; mounts and files are removed

Examples:
  nfscope versions nfs1:/srv/export
  nfscope versions nfs1:/srv/export --versions 3,4.2 --until-ci 5%
  nfscope versions nfs1:/srv/export --url http://nfs1:9943 --html versions.html
  nfscope versions nfs1:/srv/export --loads mail,database
  nfscope versions nfs1:/srv/export --scale 10,20,30,40,50

Run the command on an NFS client, as root. Each version gets a mount of its own
below a temporary directory, with nosharecache. The files are in the directory
nfscope-versions-N on the export, which is removed at the end. The loads are:
  reads      reads of 4 KiB with O_DIRECT
  writes     writes of 4 KiB with O_SYNC
  metadata   mkdir, create, write, close, open, read, close, stat, rename,
             unlink, rmdir
  opens      open() of files 0, 4 and 8 directories deep, each on a new mount
and every workload of `nfscope workload list`, by fio.

Each round has a block (one run of the load) of each version, in balanced
random order. Ratios are to the first version, by pairs within rounds. With
fewer than six rounds there are neither intervals nor verdicts. FINDS is the
smallest difference that this number of rounds finds in four of five
measurements.

A JSON object; mean and half_width (95 %), null if unknown:
  source, versions, left_out [{what why}], rounds, runtime_seconds, threads,
  seed, mount_options, agent, round_trip_seconds, until_ci, reached, warnings,
  comparisons
  loads    load operation rpcs {version {procedure n}}, and rows: metric version
           mean ratio interval p verdict finds; of opens also distance: version
           round_trips round_trip_seconds server_seconds predicted_seconds
           measured_seconds
  scale    load, points {version threads throughput}, slopes {version per_thread
           difference}";

/// `nfscope versions`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VersionsArgs {
    /// The export to measure
    #[arg(value_name = "SERVER:/EXPORT")]
    pub export: Export,
    /// Versions to compare; the others are compared with the first one [default: 3,4.0,4.1,4.2; with --scale 4.0,4.1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = version)]
    pub versions: Vec<String>,
    /// Loads: reads, writes, metadata, opens, or workloads of fio [default: the first four; with --scale reads]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = load)]
    pub loads: Vec<Loads>,
    /// The export over NFSv3, if it has another path there (fsid=0)
    #[arg(long, value_name = "SERVER:/EXPORT")]
    pub v3_export: Option<Export>,
    /// Additional mount options: noac, nconnect=4, sec=krb5
    #[arg(long, value_name = "LIST")]
    pub mount_options: Option<String>,
    /// Number of rounds, each with a block of every version; intervals need 6 [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Repeat until half the 95 % interval of each ratio of throughput (opens: of latency) is at most this part of it: 5% (at least 13
    /// rounds)
    #[arg(long, value_name = "PERCENT", value_parser = precision, conflicts_with_all = ["rounds", "scale"])]
    pub until_ci: Option<f64>,
    /// With --until-ci: longest measurement
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub max_duration: Duration,
    /// Length of a block
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub runtime: Duration,
    /// Number of threads of a load
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
    /// Instead of the comparison: throughput with each of these numbers of threads, and the gain of each additional thread
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "threads", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub scale: Vec<u32>,
    /// Amount of data of a workload of fio
    #[arg(long, value_parser = size(), default_value = "small")]
    pub size: SizeName,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Agent of the server, for the time in the server and for component operations; it must let this client read /snapshot
    /// (--web.allow-details, a password or a certificate)
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Loads that one word of the command line selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loads(pub Vec<Kind>);

fn load(text: &str) -> Result<Loads, String> {
    kind::named(text).map(Loads)
}

fn version(text: &str) -> Result<String, String> {
    match VERSIONS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "no version is called that{}; there are {}",
            nearest(text, VERSIONS.into_iter(), |v| format!("`{v}`")),
            VERSIONS.join(", ")
        )),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse::duration(text, Duration::from_secs(1)..=Duration::from_secs(86_400))
}

fn precision(text: &str) -> Result<f64, String> {
    parse::percent(text, 0.0001..=1.0)
}

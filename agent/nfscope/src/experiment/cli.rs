//! The command line of `nfscope experiment`.

use crate::baseline::cli::{self, StoreArgs};
use crate::cli::access::AccessArgs;
use clap::{Args, Subcommand};
use nfscope_baseline::experiment::{self, Factor};
use nfscope_baseline::name;
use nfscope_baseline::target_metric::{self, Metric};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfscope experiment plan slog --factor log=disk,slog --factor threads=8,16 \\
      --factor sync=standard,always --replicates 3
  nfscope experiment next slog          what to set for the next run
  sudo nfscope experiment record slog   records that run, once it is set
  nfscope experiment analyse slog --metric write:p99 --html slog.html
  sudo nfscope experiment check slog.toml   sets every level once, for seconds
  sudo nfscope experiment run slog.toml     all runs, unattended
  nfscope experiment plan slog --add-foldover      more runs of the same plan

An experiment changes several factors at once, in all combinations or a
fraction of them, and shows the effect of each factor and of each pair of
factors. Each run is a baseline with the labels experiment and run. `next`
finds the first run without a baseline, so that an interrupted experiment
continues there.";

/// `nfscope experiment`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExperimentArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ExperimentCommand,
}

/// The commands of `nfscope experiment`.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Plan an experiment and print its runs, or add runs to a plan
    Plan(PlanArgs),
    /// Print the next run: the levels to set, and the command that records it
    Next(NamedArgs),
    /// Record the next run, once its levels are set
    Record(RecordRunArgs),
    /// Try a plan file: set every level once, run the load for seconds, and report all that would fail
    Check(CheckArgs),
    /// Make all runs unattended: set levels, verify them, start the load, record
    Run(RunArgs),
    /// Analyse the recorded runs: the effect of each factor, and of each pair
    Analyse(AnalyseArgs),
    /// Print a table of configurations, with a column for each level of a factor or for each response
    Table(TableArgs),
    /// List experiments, and how many of their runs are recorded
    List(StoreArgs),
    /// Remove the plan of an experiment; its baselines stay
    Rm(NamedArgs),
}

/// Options for a new plan only, which conflict with `--add-foldover` and `--add-replicates`.
const OF_A_NEW_PLAN: [&str; 9] = [
    "factors",
    "replicates",
    "fraction",
    "generators",
    "foldover",
    "centre_points",
    "seed",
    "pilot",
    "metric",
];

/// `nfscope experiment plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Name: letters, digits and . _ - :
    #[arg(value_parser = name::check)]
    pub name: String,
    /// A factor with its low and its high level, or with more levels. Give 1 to 15 factors
    #[arg(
        long = "factor",
        value_name = "NAME=LOW,HIGH[,...]",
        value_parser = experiment::parse_factor,
        required_unless_present_any = ["add_foldover", "add_replicates"]
    )]
    pub factors: Vec<Factor>,
    /// Number of runs of each combination
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub replicates: u16,
    /// The standard fraction of all combinations: 1/2, 1/4, 1/8 and so on to 1/2048 (15 factors in 16 runs)
    #[arg(long, value_name = "1/N", value_parser = fraction, conflicts_with = "generators")]
    pub fraction: Option<usize>,
    /// A factor whose levels are the product of those of others, as in C=AB. The first factor is A
    #[arg(long = "generator", value_name = "C=AB", value_parser = experiment::parse_generator)]
    pub generators: Vec<(usize, u16)>,
    /// Add every combination with all levels swapped (fold-over)
    #[arg(long)]
    pub foldover: bool,
    /// Runs in each block with every factor halfway between its levels, which must be numbers. They show whether effects are linear
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub centre_points: u8,
    /// Add a fold-over to an existing plan: every combination once more, with the other level of FACTOR, or of all factors
    #[arg(
        long,
        value_name = "FACTOR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        conflicts_with_all = OF_A_NEW_PLAN
    )]
    pub add_foldover: Option<String>,
    /// Add N runs of each combination to an existing plan
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with = "add_foldover",
        conflicts_with_all = OF_A_NEW_PLAN
    )]
    pub add_replicates: Option<u16>,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Time for which each run will be recorded, to print how long all runs take
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = cli::duration)]
    pub duration: Duration,
    /// Baselines of runs with equal levels, to print the smallest effect that the experiment will find
    #[arg(
        long,
        value_name = "NAME[,NAME...]",
        requires = "metric",
        value_delimiter = ','
    )]
    pub pilot: Vec<String>,
    /// With --pilot: the response, OP:p50, OP:p90, OP:p99, OP:mean or OP:rate; OP alone is OP:p99
    #[arg(long, value_name = "OP[:WHAT]", value_parser = target_metric::parse, requires = "pilot")]
    pub metric: Option<Metric>,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// An experiment by name.
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// Name of the experiment
    #[arg(value_parser = name::check)]
    pub name: String,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope experiment record`
#[derive(Debug, Args)]
pub struct RecordRunArgs {
    /// Name of the experiment
    #[arg(value_parser = name::check)]
    pub name: String,
    /// How long to record: 10m, 1h; the same for every run
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = cli::duration)]
    pub duration: Duration,
    /// Length of one window: 500ms, 10s, 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::values::interval)]
    pub interval: Duration,
    /// Smallest number of operations of a run. A run with fewer is removed
    #[arg(long, value_name = "N", default_value_t = LEAST_OPERATIONS)]
    pub min_operations: u64,
    /// Agent to record [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Default of `--min-operations`. A run with fewer says little about its levels: its load did not reach the server.
pub const LEAST_OPERATIONS: u64 = 100;

const PLAN_FILE: &str = "\
A plan file:
  name = \"slog\"
  replicates = 3            # also: fraction = \"1/2\", generators = [\"C=AB\"],
  seed = 7                  # foldover = true, centre_points = 2

  [run]
  load = \"ssh -tt client fio job.fio\"   # from before the warm-up to the end
  warmup = \"30s\"
  record = \"10m\"            # in windows of interval = \"10s\", 10 or more
  operations = 100          # a run with fewer has failed
  # until_ci = \"5%\"         # record is then the longest time; metric = \"write:mean\"

  [run.numbers]             # numbers that the load prints, for --response load:mbs
  mbs = \"bw={}MiB/s\"       # {} is the number

  [[factor]]
  name = \"log\"
  low.level = \"disk\"
  low.set = \"zpool remove tank log0 || true\"
  low.verify = \"! zpool status tank | grep -q log0\"
  high.level = \"slog\"
  high.set = \"zpool status tank | grep -q log0 || zpool add tank log log0\"
  high.verify = \"zpool status tank | grep -q log0\"

  [[factor]]                # any number of levels, with commands for all of them
  name = \"threads\"
  levels = [\"8\", \"16\", \"32\"]
  set = \"echo {level} >/proc/fs/nfsd/threads\"
  verify = \"grep -qx {level} /proc/fs/nfsd/threads\"

A campaign measures results of a client. In place of record, [run] has
  command = \"postmark ...\"  # runs to its end, and prints the numbers, or
  workload = \"reads\"        # a load of `nfscope versions` or a workload, with
  threads = \"{processes}\"   # runtime = \"5s\", set.RECORD = \"64k\"
A workload needs [mount], which each run mounts and unmounts. A command or a
load may use the mount, too. {NAME} stands for the level of the factor NAME in
every text of the file, and {mount} for the directory of the mount:
  [mount]
  source = \"nfs1:/srv/export\"      # also v3_source, for vers=3
  options = \"vers={version},nconnect={nconnect}\"

  [table]                   # printed at the end; see `nfscope experiment table`
  columns = \"processes\"
  responses = [\"load:operations_per_second\"]

  [effects]                 # printed at the end; see `nfscope experiment analyse`
  responses = [\"load:operations_per_second\"]
  # linear = true           # effects that add up, for numbers of zero or less

  [until]                   # more rounds, until half of each interval is at most
  ci = \"5%\"
  replicates = 40           # at most

A workload has the numbers operations_per_second, latency_seconds, p99_seconds,
client_cpu_seconds, round_trip_seconds and rpcs, for each operation, and with
--url also server_seconds and component_operations. A workload of fio also has
mib_per_second, and the figures of each job, such as write.mib_per_second.

Each command is run by sh, with NFSCOPE_RUN and NFSCOPE_LEVELS in its
environment. A command cannot ask for a password: it has no terminal, and its
stdin is /dev/null. Use sudo -n and ssh -o BatchMode=yes. The load must end
when its local process ends. Over ssh that needs -tt.

Each run sets all factors, in the order of the file, and verifies all of them
before and after the recording. A run fails if a set or verify fails, if the
load ends early, if there are fewer operations than [run] asks for, or if one
of its numbers is missing. A failed run has no baseline, the other runs are
made, and the exit code is 1. A number is the mean of all its values that the
load prints on its stdout between the beginning and the end of the recording.
Called again, the command makes the runs that have no baseline yet, and those
that `experiment plan --add-foldover` or `--add-replicates` has added.";

/// `nfscope experiment run`
#[derive(Debug, Args)]
#[command(after_help = PLAN_FILE)]
pub struct RunArgs {
    /// The plan file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Agent to record [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope experiment check`
#[derive(Debug, Args)]
#[command(after_help = CHECK)]
pub struct CheckArgs {
    /// The plan file: see `nfscope experiment run --help`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Set and run nothing. Print the commands, and check that sh can parse them and finds their programs on this host
    #[arg(long, conflicts_with_all = ["duration", "url"])]
    pub dry_run: bool,
    /// Time for which the load runs in each trial, in addition to its start
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = cli::duration)]
    pub duration: Duration,
    /// Agent to record [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: AccessArgs,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

const CHECK: &str = "\
The command tries a few runs of the plan that together have every level: two in
most plans with two levels for each factor. Each trial sets and verifies its
levels, starts the load, and records for --duration, without a warm-up. No
recording is kept. These mistakes are reported: a level that cannot be set, a
verify that accepts another level, too, a load that ends early, too few
operations for a run, and numbers that the load does not print. All trials are
made even if one fails, and the exit code is then 1. The levels of the last
trial stay set.";

/// `nfscope experiment analyse`
#[derive(Debug, Args)]
pub struct AnalyseArgs {
    /// Name of the experiment
    #[arg(value_parser = name::check)]
    pub name: String,
    /// The response: OP:p50, OP:p90, OP:p99, OP:mean or OP:rate; OP alone is OP:p99. May be given more than once. One correction for
    /// multiple tests then covers all responses
    #[arg(long = "metric", required_unless_present = "responses", value_name = "OP[:WHAT]", value_parser = target_metric::parse)]
    pub metrics: Vec<Metric>,
    /// Another response: a row of `baseline compare`, as in "WRITE 3 in log", or load:NAME, a number that the load prints. May be given
    /// more than once
    #[arg(long = "response", value_name = "ROW|load:NAME")]
    pub responses: Vec<String>,
    /// Analyse the recorded runs although others are missing, if the recorded ones show the effects of two factors
    #[arg(long)]
    pub incomplete: bool,
    /// Analyse effects as differences that add up, instead of ratios that multiply
    #[arg(long)]
    pub linear: bool,
    /// Print JSON: an object, or an array of several responses
    #[arg(long)]
    pub json: bool,
    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

const TABLE: &str = "\
Each configuration has a row with the mean of its rounds. From three rounds on
half of its 95 % interval follows the mean. With --columns the levels of a factor
are columns, as in throughput by processes, and each response has a table of
its own, with the geometric mean of the columns. Without --columns each
response is a column. Ratios are to the first configuration, by pairs within
rounds. From six rounds on they have intervals and p values (Holm's correction,
differences of more than 2 %). --csv has a line for each cell, in seconds and
other base units.";

/// `nfscope experiment table`
#[derive(Debug, Args)]
#[command(after_help = TABLE)]
pub struct TableArgs {
    /// Name of the experiment
    #[arg(value_parser = name::check)]
    pub name: String,
    /// A response: OP:WHAT, a row of `baseline compare`, or load:NAME. May be given more than once
    #[arg(
        long = "response",
        value_name = "OP:WHAT|ROW|load:NAME",
        required = true
    )]
    pub responses: Vec<String>,
    /// The factor whose levels are columns
    #[arg(long, value_name = "FACTOR")]
    pub columns: Option<String>,
    /// Print Markdown
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    pub markdown: bool,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the baselines are
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Parses a fraction of all combinations, such as `1/2`; returns its denominator, a power of 2 up to 2048.
pub(crate) fn fraction(text: &str) -> Result<usize, String> {
    let n = text.strip_prefix("1/").and_then(|n| n.parse().ok());
    n.filter(|n: &usize| n.is_power_of_two() && (2..=2048).contains(n))
        .ok_or_else(|| "give 1/2, 1/4, 1/8 and so on to 1/2048".to_owned())
}

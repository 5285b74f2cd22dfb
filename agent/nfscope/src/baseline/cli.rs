//! The command line of `nfscope baseline`.

use crate::cli::values::{FailOn, MatchUnit, Names, interval, names};
use clap::{Args, Subcommand};
use nfscope_baseline::slice::{self, Slice};
use nfscope_baseline::target_metric::{self, Metric};
use nfscope_baseline::{name, store};
use nfscope_text::{parse, timestamp};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

// Example lines stay below 80 columns: clap would wrap longer ones, and break their alignment.
const EXAMPLES: &str = "\
Examples:
  sudo nfscope baseline record before --label disks=hdd
  sudo nfscope baseline record night --duration 8h
  sudo nfscope baseline record after --until-ci 5% --metric write:mean
  nfscope baseline list
  nfscope baseline show before
  nfscope baseline compare before after
  nfscope baseline export before /tmp/before.nfscope

A baseline is a recording of what a server did over a period of time, window by
window, with every metric. Compare baselines from before and after a change, or
of this week and last week.";

const RECORD_EXAMPLES: &str = "\
Exit code:
  0   recorded, or ended by Ctrl-C or SIGTERM; the recording is kept
  3   --until-ci was not reached within --max-duration; the recording is kept
  1   nothing was recorded, or the recording failed before its end

Examples:
  sudo nfscope baseline record before --repeat 3 --every 1h    3 of 30 minutes
  sudo nfscope baseline record friday              one of 30 minutes
  sudo nfscope baseline record week --duration 7d --interval 1m
  nfscope baseline record nfs1-idle --url http://nfs1:9943 \\
      --store ~/nfs.db --label disks=hdd --label season=winter
  sudo nfscope baseline record after --until-ci 2% --metric read:mean
  sudo nfscope baseline record after --until-ci 5% --metric write:p99 \\
      --max-duration 8h

Three recordings before a change and three after it are compared with verdicts.
Ctrl-C ends the recording and those that would follow.

Each window is committed to disk when it ends, and survives kill -9, a full
disk or a power failure. While the agent does not answer, windows are missing,
and the recording says for how long.

--until-ci ends the recording when half the width of the metric's 95 %
confidence interval is at most that percentage of its value. Half the width
takes four times the time. The recorder shows how long that is, and whether
--max-duration allows it. It looks after 30 windows and then each time there are
a third more, and ends after two looks in a row, but not before the third, at 53
windows: fewer do not show a long memory. Windows that resemble each other count
as fewer: it needs 20 independent stretches of time. A p99 needs 299, because
one stretch in a hundred may have all values beyond it, and a p90 needs 29.
Quantiles need 30 separate spells of such values, too. With windows of 10 s a
p99 therefore takes an hour and a half at least, and longer where windows
resemble each other: give it a longer --max-duration. A mean needs 20 separate
spells of windows above it. Where windows far apart resemble each other more
than neighbours explain, no interval of one recording holds: none is printed,
and the recording goes on. --repeat 3 --every 3h tells the mean of such a
server.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  nfscope baseline import /tmp/before.nfscope --name old
  nfscope baseline import --prometheus http://prometheus:9090 --name june \\
      --instance nfs1:9943 --from 2026-06-01T00:00:00Z --to 2026-06-08T00:00:00Z

A history has less than a recording. A window is what was counted between two
samples. Windows in which the agent restarted are left out, and windows are
missing where there are no samples. A series' first sample counts for nothing.
Native histograms keep their buckets. Classic ones have edges at 1, 10 and 100 ms
and 1 s only; the values between two edges are spread evenly over the logarithm,
and a comparison says so. Families without buckets are left out. It is refused
where fewer than 10 windows are left, or where operations are missing.";

const OPEN_EXAMPLES: &str = "\
Examples:
  nfscope baseline open before
  nfscope baseline open before after          side by side, with equal scales
  nfscope baseline open friday --store ~/nfs.db --port 9944
  ssh -L 9944:127.0.0.1:9944 nfs1             to see it on your own machine

It prints the address of a page that this host alone can open, and serves it
until Ctrl-C. It needs no privileges beyond reading the store, and measures
nothing. Two baselines are shown one beside the other from their beginnings on.
The page of a running agent opens the baselines of its own store, too.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  nfscope baseline compare before-1,before-2,before-3 after-1,after-2,after-3
  nfscope baseline compare before after              shown, without a verdict
  nfscope baseline compare --by disks=hdd,ssd        recordings by their label
  nfscope baseline compare before after --between 5%
  nfscope baseline compare before after --between 5% --html report.html
  nfscope baseline compare --by disks=hdd,ssd --json | jq '.rows[] |
      select(.verdict == \"worse\")'
  nfscope baseline compare --by disks=hdd,ssd --primary write:p99 \\
      --fail-on worse
  nfscope baseline compare mon-1,mon-2,mon-3 tue-1,tue-2,tue-3 --match hour
  nfscope baseline compare day --before 09:00..10:00 --after 10:30..11:30

Two recordings of an unchanged server differ, and one recording on each side
does not show by how much: nothing is judged then. A difference may be chance.
Record each side three times: the recording is then the unit. With one on each
side nfscope judges where it has at least five earlier recordings of that host
with the same kernel, threads, exports and logs, whatever their labels, or where
--between states the difference.
With --match the days or weeks are the unit, as they are for several whole days.

The report begins with what makes the sides incomparable. First it says where
acknowledged writes are less durable on one side: exported async, on a dataset
with sync=disabled, without any wait, or on a disk that is no longer asked to
flush its cache. No verdict is better then. Failures come next, then other
operations, sizes, stabilities, clients, kernels, and operations that were not
timed. Latencies come last. Where durability is not known, a caveat says so.

The comparison covers operations with 2 % or more of all operations' time,
failures, calls without an answer, requests, their wait for a thread, waits for
each log, synchronous writes, and what a workload measured (`workload run
--record`).
Verdicts:
  better, worse   shorter, longer than before; a smaller, larger share failed
                  of a workload's rate a higher one is better
  more, less      a change that is neither good nor bad in itself
  no evidence     the change may be chance; FINDS is the smallest change that
                  four of five such comparisons would have found
  too small       the whole interval lies within --min-change
  few             too few independent stretches of time for a verdict
  not comparable  too few values, not measured on one side, or explained by
                  something else: more operations failed, the mix, the size or
                  the stability of operations changed, acknowledged writes are
                  not durable
Where another mix of operations matters, the mean of requests stands there twice:
as it was, without a verdict, and at one mix for both sides, with one.
  not tested      behind --primary, which was not found
  no verdict      the variance between recordings of this server is not known
Verdicts are corrected for the number of comparisons (Holm). If nothing changed,
and recordings differ by no more than they or --between say, the probability of
any false verdict is at most 5 %. The interval beside a change is not corrected.

One quantity, marked with *, is the primary one: the mean of what takes the most
time on both sides together. It has 80 % of the level, and it is tested for any
change: a note says where that may be less than --min-change. With --primary the
quantity that you name has the whole level, and the others are tested only if it
changed. The share that failed is then tested beside it, at a level of 1 %, and
the probability of any false verdict is at most 6 %. Choose it before you look.

Exit code:
  0   compared
  4   --fail-on worse, and a verdict is worse by more than --min-change; with
      --primary that verdict may be one of failures, whatever the primary
      quantity says
  5   compared; acknowledged writes are less durable after than before, whatever
      --fail-on says
  6   --fail-on, and undecided: nothing was judged, or neither the primary
      quantity nor, without --primary, anything else could be tested
  1   could not compare

A JSON object; times are in seconds, rates per second, unknown values null:
  durability
            direction (less, more, unknown) at_risk [before, after] text; only
            where it differs
  not_judged
            why nothing is judged, if nothing is
  headline  differences in durability, failures and work, then what changed
  caveats   kind text
  min_effect
            changes by up to this count as none (0.02 for 2 %)
  before, after
            metadata recordings windows seconds operations clients; metadata
            has name began_ms host kernel agent interval_seconds labels
  rows      of (op, errors, dropped, replays, requests, queue, log,
            sync_writes, workload, workload_errors) with version, op, reason,
            fs, volume, job or operation; what (rate, mean, mean_at_one_mix, quantile, phase,
            share) with percent or phase; before, after
            and ratio {value low high}; p (corrected); verdict (better, worse,
            more, less, no_evidence, small, few, not_comparable, not_tested,
            not_judged); why, where there is none, or a note on it;
            primary; finds (0.1 for 10 %); stretches [before, after];
            components {within between recordings_to_find
            recordings_to_find_first}, of a change of 10 %
  next, method, left_out
            lists of sentences and of operations";

const CAPACITY_EXAMPLES: &str = "\
Examples:
  nfscope capacity friday
  nfscope capacity friday --json | jq '.resources[0]'    what limits the server
  nfscope capacity morning noon evening    one server under several loads

Record under real load: a resource that is hardly used says little about its
limit. Several recordings show how the server slows down under more load: the
law of the bottleneck and the Universal Scalability Law are told side by side,
and the smaller limit counts.

A JSON object; times are in seconds, rates in requests per second:
  rate residence concurrency threads
  resources    name utilization interval peak max_rate servers knee_rate
               knee_interval; those with a hard limit come first, in the order
               in which they saturate, so that the first one limits the server;
               intervals [low, high] are null for too few windows; note, where
               max_rate is no hard limit; extrapolated, where it is more than 3
               times the observed rate, or nobody waited for the resource;
               requests_per_commit of a log;
               max_rate_at_least, where the recording does not tell whether a
               commit can serve more than now: max_rate is the upper end then
  caveats, assumptions
               lists of sentences
  model        what nfscope what-if --clients says of as many clients as bring
               more requests, as nfscope what-if --json has it; null where it
               says nothing
Of several recordings:
  points       name in_server rate residence, the smallest load first
  bottleneck   the object above without model, of the highest rate
  scalability  one contention coherency max_rate peak; null for fewer than three
               loads, or similar ones
  without_one  [low, high] of that max_rate with one recording left out; null
               for fewer than four
  limit        least most law; law is bottleneck or scalability and has most;
               least differs where the recordings do not tell what the
               commits of a log can serve; null where no law has a limit
  caveats";

const CHECK_STORE_EXAMPLES: &str = "\
Exit code:
  0   nothing is damaged
  1   something is, or the store cannot be read

Examples:
  nfscope baseline check
  nfscope baseline check before after

Each window, the names of its series and each baseline have a checksum. Every
command checks what it reads, and refuses what is not what was recorded.
Baselines from before there were checksums are read without them.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  nfscope baseline export before /tmp/before.nfscope
  scp nfs1:/tmp/before.nfscope .
  nfscope baseline import before.nfscope --name nfs1-before --store ~/nfs.db
  nfscope baseline export before /tmp/before.nfscope --anonymise

With --anonymise the recording has the name anonymous, and its host, clients,
exports, mounts, datasets, volumes and ZFS pools have pseudonyms. They are
numbered over all recordings of the store, by when these began: exports of one
store can be compared by client and host. Exports of two stores cannot. Numbers
change when recordings are removed or imported, and while several are made at
once: export both sides again then.
Kept are times, numbers, words of NFS and of nfscope, the numbers of releases,
and the kernel's names of devices. Left out are your labels, the commit of the
agent's build, series with a path for the label table, and series that this
release does not know.

The file is self-contained and the same on every machine. It is an SQLite file
with the schema of a store. Later versions of nfscope can read it.";

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
    /// Record a baseline, starting now
    Record(RecordArgs),
    /// List the baselines in the store
    List(ListArgs),
    /// Show rates, means and quantiles of one baseline
    Show(ShowArgs),
    /// Compare two baselines with statistical significance tests
    Compare(CompareArgs),
    /// Open one baseline, or two side by side, in the page of the agent
    Open(OpenArgs),
    /// Find when the server changed during a baseline: what, and by how much
    Changes(ShowArgs),
    /// Check every page and every window of the store, or of some baselines
    Check(CheckStoreArgs),
    /// Remove baselines
    Rm(RmArgs),
    /// Write one baseline to a file, for another machine
    Export(ExportArgs),
    /// Read the baseline in a file into the store
    Import(ImportArgs),
}

/// Which store.
#[derive(Debug, Clone, Args)]
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
    /// Record this many times, as NAME-1, NAME-2 and so on: several show how much recordings of the server differ
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(2..=100), requires = "every")]
    pub repeat: Option<u32>,
    /// With --repeat: from the beginning of one recording to that of the next
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "repeat")]
    pub every: Option<Duration>,
    /// How long to record: 30s, 30m, 24h, 7d
    #[arg(long = "duration", alias = "for", value_name = "TIME", default_value = "30m", value_parser = duration, conflicts_with = "until_ci")]
    pub length: Duration,
    /// Record until the metric is known to within plus or minus this, with 95 % confidence: 5% (at least 53 windows)
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    pub until_ci: Option<f64>,
    /// With --until-ci: longest recording
    #[arg(long = "max-duration", alias = "at-most", value_name = "TIME", default_value = "2h", value_parser = duration, requires = "until_ci")]
    pub at_most: Duration,
    /// Length of one window: 500ms, 10s, 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cli::values::interval)]
    pub interval: Duration,
    /// Metric to follow, over all NFS versions: OP, which is OP:p99, or OP:p50, p90, p99, mean, rate [default: of the operation
    /// that takes the most time the mean with --until-ci, else the p99]
    #[arg(long, value_name = "OP[:WHAT]", value_parser = target_metric::parse)]
    pub metric: Option<Metric>,
    /// Label to store with the baseline; may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse::label)]
    pub labels: Vec<(String, String)>,
    /// Agent to record [default: http://127.0.0.1:9943, or own probes if no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Access to that agent
    #[command(flatten)]
    pub access: crate::cli::access::AccessArgs,
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

/// `nfscope baseline open`
#[derive(Debug, Args)]
#[command(after_help = OPEN_EXAMPLES)]
pub struct OpenArgs {
    /// Name of the baseline; of two, to see them side by side
    #[arg(required = true, num_args = 1..=2, value_name = "NAME")]
    pub names: Vec<String>,
    /// Port of 127.0.0.1 to serve on; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline compare`
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Baselines before the change: a name, or several as in hdd-1,hdd-2,hdd-3
    #[arg(value_name = "BEFORE", required_unless_present = "by", value_parser = names)]
    pub before: Option<Names>,
    /// Baselines after the change
    #[arg(value_name = "AFTER", required_unless_present_any = ["by", "slice_before"], value_parser = names)]
    pub after: Option<Names>,
    /// Take the sides from a label of the baselines: KEY where it has two values, or KEY=BEFORE,AFTER
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["before", "after"])]
    pub by: Option<String>,
    /// Only this time of the first baseline: 09:00..10:00 (UTC), +1h..+2h (since its beginning)
    #[arg(long = "before", value_name = "FROM..TO", value_parser = slice::parse, requires = "slice_after", conflicts_with = "by")]
    pub slice_before: Option<Slice>,
    /// Only this time of the second baseline, or of the first if there is one only
    #[arg(long = "after", value_name = "FROM..TO", value_parser = slice::parse, requires = "slice_before")]
    pub slice_after: Option<Slice>,
    /// By how much recordings of the unchanged server differ beyond their windows (standard deviation)
    #[arg(long, value_name = "PERCENT", value_parser = between)]
    pub between: Option<f64>,
    /// Quantity to test first, at the whole level of 5 %; all but failures are tested behind it: write:p99 [default: the mean of what
    /// takes the most time, with 80 % of the level]
    #[arg(long, value_name = "OP[:WHAT]", value_parser = target_metric::parse)]
    pub primary: Option<Metric>,
    /// Pair each hour with the same hour of the day or of the week [default: hour where all recordings are whole days, else none]
    #[arg(
        long = "match",
        value_name = "UNIT",
        value_enum,
        conflicts_with = "between"
    )]
    pub matching: Option<MatchUnit>,
    /// Exit with 4 if a verdict is this, by more than --min-change; with 6 if that is undecided
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Smallest change that matters; smaller changes count as no change, but of the primary quantity. 0 tests everything for any change
    #[arg(long = "min-change", alias = "least", value_name = "PERCENT", default_value = "2%", value_parser = min_change)]
    pub least: f64,
    /// Write a self-contained HTML page to FILE: a first page to print and to sign, and details with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// With --html: the title of the page, as in "Log device for tank"
    #[arg(long, value_name = "TEXT", requires = "html", value_parser = title)]
    pub title: Option<String>,
    /// With --html: a note below the title
    #[arg(long, value_name = "TEXT", requires = "html", value_parser = note)]
    pub note: Option<String>,
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
    /// Name of the baseline; several of one server under different loads
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_STORE_EXAMPLES)]
pub struct CheckStoreArgs {
    /// Names of the baselines [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
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
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
    /// Give pseudonyms to host, clients, exports, mounts, datasets and volumes, and leave out your labels
    #[arg(long, alias = "anonymize")]
    pub anonymise: bool,
    /// Where from
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `nfscope baseline import`
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub struct ImportArgs {
    /// File to read
    #[arg(required_unless_present = "prometheus")]
    pub file: Option<PathBuf>,
    /// Read the history that a Prometheus has of a server, instead of a file
    #[arg(long, value_name = "URL", conflicts_with = "file", requires_all = ["from", "to", "name"])]
    pub prometheus: Option<String>,
    /// When the history begins: 2026-11-21T09:47:00Z
    #[arg(long, value_name = "TIME", requires = "prometheus", value_parser = moment)]
    pub from: Option<SystemTime>,
    /// When it ends
    #[arg(long, value_name = "TIME", requires = "prometheus", value_parser = moment)]
    pub to: Option<SystemTime>,
    /// Which server, by its label instance; needed where the Prometheus knows several
    #[arg(long, value_name = "NAME", requires = "prometheus")]
    pub instance: Option<String>,
    /// Length of a window: the samples of the history at this distance [default: a 720th of the time, at least 10 s]
    #[arg(long, value_name = "TIME", requires = "prometheus", value_parser = interval)]
    pub step: Option<Duration>,
    /// Name of the imported baseline [default: its name in the file]
    #[arg(long = "name", alias = "as", value_name = "NAME", value_parser = name::check)]
    pub name: Option<String>,
    /// Access to the Prometheus
    #[command(flatten)]
    pub access: crate::cli::access::AccessArgs,
    /// Where to
    #[command(flatten)]
    pub store: StoreArgs,
}

const MIN_DURATION: Duration = Duration::from_millis(1);
const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);
const MIN_PERCENT: f64 = 0.001;

/// Parses a moment in UTC.
fn moment(text: &str) -> Result<SystemTime, String> {
    timestamp::parse(text).ok_or_else(|| "give a moment in UTC as 2026-11-21T09:47:00Z".to_owned())
}

/// Parses the length of a recording: 1 ms to 366 days.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse::duration(text, MIN_DURATION..=MAX_DURATION)
}

/// Parses the half width of a confidence interval, as a fraction: 0.1 % to 100 %.
fn precision(text: &str) -> Result<f64, String> {
    parse::percent(text, MIN_PERCENT..=1.0)
}

/// Parses the standard deviation between recordings, as a fraction.
fn between(text: &str) -> Result<f64, String> {
    parse::percent(text, 0.0..=1.0)
}

/// Parses the title of the page. Its limit keeps the first page on one sheet.
fn title(text: &str) -> Result<String, String> {
    short(text, 120)
}

fn note(text: &str) -> Result<String, String> {
    short(text, 200)
}

fn short(text: &str, most: usize) -> Result<String, String> {
    match (1..=most).contains(&text.trim().chars().count()) {
        true => Ok(text.trim().to_owned()),
        false => Err(format!(
            "give 1 to {most} characters: the first page is one sheet"
        )),
    }
}

/// Parses the smallest change that matters, as a fraction. Zero means that every change matters.
fn min_change(text: &str) -> Result<f64, String> {
    parse::percent(text, 0.0..=1.0)
}

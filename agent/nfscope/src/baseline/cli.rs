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

A baseline is a recording of all metrics of a server over a period of time,
window by window. Compare baselines from before and after a change, or of this
week and last week.";

const RECORD_EXAMPLES: &str = "\
Exit code:
  0   recorded, or ended by Ctrl-C or SIGTERM; the recording is kept
  3   --until-ci was not reached within --max-duration; the recording is kept
  1   nothing was recorded, or the recording failed before its end

Examples:
  sudo nfscope baseline record before --repeat 3 --every 1h    3 of 30 minutes
  sudo nfscope baseline record friday              1 of 30 minutes
  sudo nfscope baseline record week --duration 7d --interval 1m
  nfscope baseline record nfs1-idle --url http://nfs1:9943 \\
      --store ~/nfs.db --label disks=hdd --label season=winter
  sudo nfscope baseline record after --until-ci 2% --metric read:mean
  sudo nfscope baseline record after --until-ci 5% --metric write:p99 \\
      --max-duration 8h

A comparison gives verdicts for three recordings before a change and three
after it. Ctrl-C ends the recording and cancels the following ones.

Each window is committed to disk when it ends, and survives kill -9, a full
disk or a power failure. While the agent does not answer, windows are missing,
and the recording says for how long.

--until-ci ends the recording when half the width of the metric's 95 %
confidence interval is at most that percentage of its value. An interval of
half the width takes four times as long. The recorder shows the time that is
left, and whether --max-duration allows it. It checks the interval after 30
windows, and then each time there are a third more. Two checks in a row must
pass, and the third check, at 53 windows, is the first that can end the
recording.
Every metric needs 20 independent stretches of time (the effective sample size:
correlated windows count as fewer). A p90 needs 29 of them and a p99 299,
because all values beyond it may lie in one stretch of a hundred. A quantile
also needs 30 separate runs of windows with such values, and a mean 20 separate
runs of windows above it. With windows of 10 s a p99 therefore takes at least
an hour and a half, and longer if windows are correlated. Give it a longer
--max-duration.
With long-range dependence (windows far apart are more correlated than those
between explain) one recording has no valid interval. The recorder then prints
none, and goes on. --repeat 3 --every 3h measures the mean of such a server.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  nfscope baseline import /tmp/before.nfscope --name old
  nfscope baseline import --prometheus http://prometheus:9090 --name june \\
      --instance nfs1:9943 --from 2026-06-01T00:00:00Z --to 2026-06-08T00:00:00Z

A history in Prometheus has less data than a recording. A window is the
difference of two samples. Windows in which the agent restarted are left out,
and windows without samples are missing. The first sample of a series is not
counted. Native histograms keep their buckets. Classic histograms have edges at
1, 10 and 100 ms and 1 s only. Their values are spread evenly over the
logarithm between two edges, and a comparison says so. Families without buckets
are left out. The import fails if fewer than 10 windows are left, or if
operations are missing.";

const OPEN_EXAMPLES: &str = "\
Examples:
  nfscope baseline open before
  nfscope baseline open before after          side by side, with equal scales
  nfscope baseline open friday --store ~/nfs.db --port 9944
  ssh -L 9944:127.0.0.1:9944 nfs1             to see it on your own machine

The command prints the address of a page that only this host can open, and
serves the page until Ctrl-C. The command measures nothing, and needs no
privileges but to read the store. Two baselines are shown side by side, from
their beginnings on. The page of a running agent opens the baselines of its own
store, too.";

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

A verdict needs the variance between recordings of the unchanged server. One
recording on each side does not show this variance, so that a difference may be
chance. Record each side three times. With one recording on each side nfscope
uses earlier recordings of the host: at least five with the kernel, threads,
exports and logs of one side, or three like each side. Their labels do not
matter. --between states the variance instead. Without any of these the report
has no verdicts. With --match, and for several whole days, the variance is that
between days or weeks.

The report begins with differences that make the sides incomparable. The first
is durability: on one side acknowledged writes are less durable, because an
export is async, a dataset has sync=disabled, writes wait for nothing, or a
disk gets no flushes any more. If that is the side after the change, no verdict
is `better`. Failures come next, then differences of operations, sizes,
stabilities, clients and kernels, and operations that were not timed. Latencies
come last. A caveat says where durability is not known.

The comparison covers operations with 2 % or more of all operations' time,
failures, calls without an answer, retransmitted calls, requests, their wait
for a thread, waits for each log, synchronous writes, and the results of a
workload (`workload run --record`).
Verdicts:
  better, worse   shorter, longer than before; a smaller, larger share failed;
                  a higher, lower rate of a workload
  more, less      a change that is neither good nor bad in itself
  no evidence     the change may be chance; FINDS is the smallest change that
                  four of five such comparisons would have found
  too small       the whole interval lies within --min-change
  few             fewer than 3 independent stretches of time (effective sample
                  size)
  not comparable  too few values, not measured on one side, or explained by
                  something else: more operations failed, the mix, the size or
                  the stability of operations changed, acknowledged writes are
                  not durable
  not tested      the --primary quantity shows no change, or cannot be tested
  no verdict      the variance between recordings of this server is not known
If the mix of operations changed, the mean of requests has two rows: as
measured, without a verdict, and at the same mix on both sides, with a verdict.
Verdicts are corrected for the number of comparisons (Holm). The probability of
any false verdict is at most 5 %, if recordings of the unchanged server vary by
no more than measured or stated with --between. Intervals are not corrected,
except where a note says so.

One quantity, marked with *, is the primary one: the mean of the operation or
wait that takes the most time on both sides together. It has 80 % of the level,
and is tested for any change. A note says if the change may be less than
--min-change.
--primary names another quantity, which then has the whole level. The others
are tested only if that quantity changed. Shares of failures are tested beside
it, at a level of 1 %, and the probability of any false verdict is at most 6 %.
Choose the primary quantity before you see the recordings.

Exit code:
  0   compared
  4   --fail-on worse, and a verdict is worse by more than --min-change; with
      --primary that verdict may be one of failures, whatever the primary
      quantity says
  5   compared; acknowledged writes are less durable after than before, whatever
      --fail-on says
  6   --fail-on, and undecided: there is no verdict, or nothing could be tested,
      or with --primary that quantity could not be tested
  1   could not compare

A JSON object; times are in seconds, rates per second, unknown values null:
  durability
            direction (less, more, unknown) at_risk [before, after] text; only
            where it differs
  not_judged
            reason why there are no verdicts; left out if there are
  headline  differences in durability, failures and work, then changes
  caveats   kind text
  min_effect
            changes by up to this count as none (0.02 for 2 %)
  before, after
            metadata recordings windows seconds operations clients; metadata
            has name began_ms host kernel agent interval_seconds labels
  rows      of (op, errors, dropped, replays, requests, queue, log,
            sync_writes, workload, workload_errors) with version, op, reason,
            fs, volume, job or operation; what (rate, mean, mean_at_one_mix,
            quantile, phase, share) with percent or phase; before, after
            and ratio {value low high}; p (corrected); verdict (better, worse,
            more, less, no_evidence, small, few, not_comparable, not_tested,
            not_judged); why: a note on the verdict, or why there is none;
            primary; may_be_small: true if the change of the primary quantity
            may be less than --min-change; finds (0.1 for 10 %);
            stretches [before, after]; components {within between
            recordings_to_find recordings_to_find_first}, of a change of 10 %
  next, method, left_out
            lists of sentences and of operations";

const CAPACITY_EXAMPLES: &str = "\
Examples:
  nfscope capacity friday
  nfscope capacity friday --json | jq '.resources[0]'    what limits the server
  nfscope capacity morning noon evening    one server under several loads

Record under real load: a resource that is hardly used says little about its
limit. Several recordings show how the server slows down under more load. The
report then has two limits side by side, of the utilization law and of the
Universal Scalability Law, and the smaller limit counts.

A JSON object; times are in seconds, rates in requests per second:
  rate residence concurrency threads
  resources    name utilization interval peak max_rate servers knee_rate
               knee_interval; those with a hard limit come first, in the order
               in which they saturate, so that the first one limits the server;
               intervals [low, high] are null for too few windows; note, where
               max_rate is no hard limit; extrapolated, where it is more than 3
               times the observed rate, or no request waited for the resource;
               requests_per_commit of a log;
               max_rate_at_least, where the recording does not show whether a
               commit can serve more requests than now: max_rate is then the
               upper end of a range, and this key the lower end
  caveats, assumptions
               lists of sentences
  model        prediction of nfscope what-if for the number of clients from
               which on more clients bring no more requests, as its --json; null
               without a prediction
Of several recordings:
  points       name in_server rate residence, the smallest load first
  bottleneck   the object above without model, of the highest rate
  scalability  one contention coherency max_rate peak; null for fewer than three
               loads, or similar ones
  without_one  [low, high] of that max_rate with one recording left out; null
               for fewer than four
  limit        least most law; law is bottleneck or scalability and has most;
               least differs where the recordings do not show how many requests
               the commits of a log can serve; null where no law has a limit
  caveats";

const CHECK_STORE_EXAMPLES: &str = "\
Exit code:
  0   nothing is damaged
  1   at least one baseline is damaged, or the store cannot be read

Examples:
  nfscope baseline check
  nfscope baseline check before after

Each window, the names of its series and each baseline have a checksum. Every
command checks the data that it reads, and refuses data with a wrong checksum.
Baselines of releases without checksums are read unchecked.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  nfscope baseline export before /tmp/before.nfscope
  scp nfs1:/tmp/before.nfscope .
  nfscope baseline import before.nfscope --name nfs1-before --store ~/nfs.db
  nfscope baseline export before /tmp/before.nfscope --anonymise

With --anonymise the recording has the name anonymous, and its host, clients,
exports, mounts, datasets, volumes and ZFS pools have pseudonyms. Pseudonyms
are numbered over all recordings of the store, in order of time. Files from the
same store can therefore be compared by client and host, and files from two
stores cannot. The numbers change when recordings are removed or imported, and
while several are recorded at once. Export both sides again then.
The file keeps times, numbers, words of NFS and of nfscope, the numbers of
releases, and the kernel's names of devices. It leaves out your labels, the
commit of the agent's build, series with a path for the label table, and series
that this release does not know.

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
    /// Compare baselines before and after a change, with statistical significance tests
    Compare(CompareArgs),
    /// Open one baseline, or two side by side, in the page of the agent
    Open(OpenArgs),
    /// Find changes of the server during a baseline: when, what, and by how much
    Changes(ShowArgs),
    /// Check every page and every window of the store, or of some baselines
    Check(CheckStoreArgs),
    /// Remove baselines
    Rm(RmArgs),
    /// Write one baseline to a file, for another machine
    Export(ExportArgs),
    /// Read a baseline from a file, or from a Prometheus, into the store
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
    /// Record this many times, as NAME-1, NAME-2 and so on. Several recordings show how much those of an unchanged server differ
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(2..=100), requires = "every")]
    pub repeat: Option<u32>,
    /// With --repeat: time from the beginning of one recording to the beginning of the next
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
    /// Metric to follow, over all NFS versions: OP:p50, OP:p90, OP:p99, OP:mean or OP:rate; OP alone is OP:p99 [default: with
    /// --until-ci the mean, else the p99, of the operation that takes the most time]
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
    /// Name of the baseline; two names show both side by side
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
    /// Only this time of the second baseline, or of the first one if only one is named
    #[arg(long = "after", value_name = "FROM..TO", value_parser = slice::parse, requires = "slice_before")]
    pub slice_after: Option<Slice>,
    /// Standard deviation between recordings of the unchanged server, beyond that of their windows; for one recording on each side
    #[arg(long, value_name = "PERCENT", value_parser = between)]
    pub between: Option<f64>,
    /// Quantity to test first, at the whole level of 5 %, as in write:p99. The others, except failures, are tested only if it changed
    /// [default: the mean of the operation or wait that takes the most time, with 80 % of the level]
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
    /// Exit with 4 if there is such a verdict with a change of more than --min-change, and with 6 if that is undecided
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Smallest change that matters. Smaller changes count as no change, except those of the primary quantity. 0 tests every quantity
    /// for any change
    #[arg(long = "min-change", alias = "least", value_name = "PERCENT", default_value = "2%", value_parser = min_change)]
    pub least: f64,
    /// Write a self-contained HTML page to FILE: a first sheet to print and to sign, and details with plots
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
    /// Name of the baseline; several names for recordings of one server under different loads
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
    /// Replace the names of host, clients, exports, mounts, datasets and volumes with pseudonyms, and leave out your labels
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
    /// Read the history of a server from this Prometheus, instead of a file
    #[arg(long, value_name = "URL", conflicts_with = "file", requires_all = ["from", "to", "name"])]
    pub prometheus: Option<String>,
    /// Begin of the history: 2026-11-21T09:47:00Z
    #[arg(long, value_name = "TIME", requires = "prometheus", value_parser = moment)]
    pub from: Option<SystemTime>,
    /// End of the history
    #[arg(long, value_name = "TIME", requires = "prometheus", value_parser = moment)]
    pub to: Option<SystemTime>,
    /// Value of the server's label instance; required if the Prometheus has several servers
    #[arg(long, value_name = "NAME", requires = "prometheus")]
    pub instance: Option<String>,
    /// Length of a window: time between the samples that are read [default: a 720th of the history, at least 10 s]
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

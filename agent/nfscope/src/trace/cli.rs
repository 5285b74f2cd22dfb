//! The command line of `nfscope trace`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use nfscope_trace::convert::{Form, TSHARK};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nfscope trace import --from nfsdump old.txt load.trace
  nfscope trace import --from tshark packets.txt load.trace
  nfscope trace show load.trace                       describe the load
  nfscope trace compare load.trace other.trace        how far two loads are apart
  nfscope trace fit load.trace like.fio               a synthetic load like it
  nfscope trace export load.trace load.txt            text, a line per operation

Traces come from captures of packets, from published traces, and from other
programs that write the form of docs/trace.md.";

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
    /// Describe the load of a trace: mix, sizes, sequence, working set, sharing, bursts, hot files
    Show(ShowArgs),
    /// Say how far the loads of two traces are from each other
    Compare(CompareArgs),
    /// Write a synthetic workload like a trace, as a job file for fio
    Fit(FitArgs),
    /// Print a trace as text, a line for each operation
    Export(ExportArgs),
    /// Make a trace of another form: text, nfsdump, DataSeries, packets by tshark
    Import(ImportArgs),
}

const SHOW_EXAMPLES: &str = "\
Examples:
  nfscope trace show load.trace
  nfscope trace show load.trace --html load.html
  nfscope trace show load.trace --json > load.json

The text begins with what the trace cannot tell: operations that are missing,
samples, fields that are not known. Then:
  mix          operations by name and version: number, bytes, times, failures
  sizes        of READs and WRITEs
  durability   stability that WRITEs ask for, WRITEs and bytes for each COMMIT
  sequence     where an operation begins, seen from the end of the one
               before it in its file and direction
  sharing      files by the clients that read and write them
  working set  distinct files and bytes over time, in blocks of 64 KiB
  bursts       variance of the operations of an interval over their mean, for
               intervals of 10 ms to 60 s; arrivals at random have 1
  clients, hot files, failures

Memory does not grow with the trace. Numbers of distinct things
are estimates with a standard error of 2.3 %. Times and sizes are read from
buckets that are at most 12.5 % too low. With more than 262144 files, stories
of files are those of a part that is chosen by chance. The text then says so.

A JSON object:
  reservations         sentences
  operations seconds
  mix                  op version operations failed bytes nanoseconds
  read_sizes write_sizes gaps (nanoseconds), and other distributions: a list of
                       buckets with from (lowest value) and count
  stabilities          unstable data_sync file_sync unknown
  files                followed_one_in, reads and writes {sequential near
                       random}, sharing, commits, sizes
  bursts               seconds dispersion most
  course               seconds intervals files bytes
  clients failures hot_by_operations hot_by_bytes";

const COMPARE_EXAMPLES: &str = "\
Examples:
  nfscope trace compare monday.trace tuesday.trace
  nfscope trace compare load.trace synthetic.trace --json

Says how far two loads are from each other: operations of each kind, rates,
mix, sizes, gaps between arrivals, bursts, sequence, durability, working set.
This is also the report on the fidelity of a workload of `trace fit`: capture
the packets while it runs, import them, and compare.

A JSON object:
  reservations  what either trace cannot tell
  kinds         op version first second
  quantities    name first second distance kind; the kind of a distance is
                relative (second over first, less 1), difference (of parts),
                kolmogorov_smirnov (largest difference of two cumulative
                distributions, 0 to 1) or total_variation (part of the
                operations that would have to be of another kind); null is not
                known";

const FIT_EXAMPLES: &str = "\
Examples:
  nfscope trace fit load.trace like.fio

Writes a job file for fio with the load's rates, sizes, sequence, durability
and working set, for sites that may not share a trace. `nfscope workload run`
takes the path of the file. Its comments say what a
job file cannot have: bursts, sharing, hot files, names. The command prints how
far the jobs are from the trace, computed from the job file. Latencies of the
server are no part of that. To see what a client makes of the jobs, capture the
packets while they run, import them, and use `nfscope trace compare`.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  nfscope trace export load.trace load.txt
  nfscope trace export load.trace | awk '$5 == \"write\"'

The text has a line with the name of the form, a line with the header as JSON,
a line with the names of the columns, and a line for each operation. Columns
are separated by tabs:
  arrival duration client version op file other offset length stability
  status size compound
A field that is not known is `-`. Times are nanoseconds. docs/trace.md
describes every column. Other programs read the trace itself: it is a Parquet file.";

/// Below the flags of `nfscope trace import`.
fn import_examples() -> String {
    format!(
        "\
Examples:
  nfscope trace import --from text load.txt load.trace
  zcat lair62.txt.gz | nfscope trace import --from nfsdump - lair62.trace
  ds2txt nfs.ds | nfscope trace import --from dataseries - nfs.trace
  nfscope trace import --from tshark packets.txt packets.trace

Forms:
  text        of `nfscope trace export`
  nfsdump     of nfsdump, as SNIA publishes it: NFSv2 and NFSv3
  dataseries  that ds2txt prints: extents common, attr-ops and read-write of
              version 2
  tshark      fields of packets: NFSv3 and NFSv4. Both of a call and its reply
              become one operation. The command that prints them:

{TSHARK}

Fields that a form does not have stay unknown. Names and handles of files are
not kept. Lines that cannot be read are counted, and the first is shown. A call
without a reply is an operation without duration and status."
    )
}

/// `nfscope trace show`
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// Trace
    pub trace: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write a page, in one file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}

/// `nfscope trace compare`
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Trace that the other is compared with
    pub first: PathBuf,
    /// Other trace
    pub second: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `nfscope trace fit`
#[derive(Debug, Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    /// Trace
    pub trace: PathBuf,
    /// Job file to write, such as like.fio
    pub output: PathBuf,
}

/// `nfscope trace export`
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// Trace
    pub trace: PathBuf,
    /// File for the text [default: standard output]
    pub output: Option<PathBuf>,
}

/// `nfscope trace import`
#[derive(Debug, Args)]
#[command(after_help = import_examples())]
pub struct ImportArgs {
    /// Form of the input
    #[arg(long, value_name = "FORM", value_parser = form())]
    pub from: Form,
    /// Text to read; - is standard input
    pub input: PathBuf,
    /// Trace to write
    pub output: PathBuf,
}

fn form() -> impl TypedValueParser<Value = Form> {
    let names = Form::EACH.map(|form| PossibleValue::new(form.name()));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut forms = Form::EACH.into_iter();
        forms.find(|f| f.name() == name).ok_or("no such form")
    })
}

//! `nfscope trace`: operations of a real load, described, compared and converted. The commands read files and need no server.

pub mod cli;
mod page;

use anyhow::{Context, bail};
use cli::{CompareArgs, ExportArgs, FitArgs, ImportArgs, ShowArgs, TraceCommand};
use nfscope_api::build_info::VERSION;
use nfscope_text::console::{self, say, warn};
use nfscope_trace::convert::{self, Imported};
use nfscope_trace::describe::{Load, describe, text};
use nfscope_trace::{Header, Host, Reader, Writer, compare, fit};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Runs a part of the command.
///
/// # Errors
/// Errors of the part.
pub fn run(command: &TraceCommand) -> anyhow::Result<String> {
    match command {
        TraceCommand::Show(args) => show(args),
        TraceCommand::Compare(args) => compare(args),
        TraceCommand::Fit(args) => fit(args),
        TraceCommand::Export(args) => export(args),
        TraceCommand::Import(args) => import(args),
    }
}

fn load(path: &Path) -> anyhow::Result<Load> {
    let reader = Reader::open(path)?;
    let header = reader.header().clone();
    Ok(describe(&header, reader)?)
}

/// A file beside its final place; [`keep`] puts it there.
fn beside(output: &Path) -> anyhow::Result<NamedTempFile> {
    let directory = match output.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    NamedTempFile::new_in(directory).with_context(|| format!("cannot write {}", output.display()))
}

fn keep(file: NamedTempFile, output: &Path) -> anyhow::Result<()> {
    let kept = file.persist_noclobber(output);
    kept.map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => anyhow::anyhow!(
            "{} exists; fix: give another name, or remove it",
            output.display()
        ),
        _ => anyhow::Error::from(e.error).context(format!("cannot write {}", output.display())),
    })?;
    Ok(())
}

/// Describes a trace.
fn show(args: &ShowArgs) -> anyhow::Result<String> {
    let load = load(&args.trace)?;
    if args.json {
        return Ok(console::json(&load)?);
    }
    if let Some(output) = &args.html {
        let name = args.trace.file_name().unwrap_or_default();
        let page = page::page(&name.to_string_lossy(), &load);
        let mut file = beside(output)?;
        file.write_all(page.as_bytes())?;
        keep(file, output)?;
        say(&format!("wrote {}", output.display()));
    }
    Ok(text::render(&load))
}

/// Compares two traces.
fn compare(args: &CompareArgs) -> anyhow::Result<String> {
    let comparison = compare::compare(&load(&args.first)?, &load(&args.second)?);
    Ok(match args.json {
        true => console::json(&comparison)?,
        false => compare::render(&comparison),
    })
}

/// Writes a workload like a trace, and says how far it is from the trace.
fn fit(args: &FitArgs) -> anyhow::Result<String> {
    /// Longest time for which operations are drawn from the jobs.
    const LONGEST: f64 = 600.0;
    /// Operations that are drawn at most.
    const MOST: usize = 2_000_000;
    let source = load(&args.trace)?;
    let Some(fit) = fit::fit(&source) else {
        bail!(
            "{} has no reads, writes, stat calls or creations of at least one in two seconds to make a \
             workload of; fix: capture for longer, or at a busier time",
            args.trace.display()
        );
    };
    let name = args.output.file_stem().unwrap_or_default();
    let mut file = beside(&args.output)?;
    file.write_all(fit.job_file(&name.to_string_lossy()).as_bytes())?;
    keep(file, &args.output)?;
    let mut header = Header::new(Host::Client, &program());
    header.clients.push("fio".to_owned());
    let seconds = source.seconds.min(LONGEST);
    let drawn = fit.operations(seconds, 1).take(MOST).map(Ok);
    let mut drawn = describe(&header, drawn)?;
    drawn.reservations.push(format!(
        "drawn from the jobs for {seconds:.0} s, and not measured: a client merges, caches and adds operations"
    ));
    let comparison = compare::compare(&source, &drawn);
    let mut out = format!(
        "wrote {}; it differs from the trace:\n",
        args.output.display()
    );
    for difference in &fit.differences {
        out += &format!("  {difference}\n");
    }
    out.push('\n');
    Ok(out + &compare::render(&comparison))
}

fn program() -> String {
    format!("nfscope {VERSION}")
}

/// Writes a trace as text.
fn export(args: &ExportArgs) -> anyhow::Result<String> {
    let reader = Reader::open(&args.trace)?;
    let header = reader.header().clone();
    let Some(output) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = convert::export(&header, reader, &mut out);
        return match written
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(out.flush()?))
        {
            // The reader of a pipe may stop early.
            Err(e) if is_closed_pipe(&e) => Ok(String::new()),
            other => other.map(|()| String::new()),
        };
    };
    let mut file = beside(output)?;
    let mut out = BufWriter::new(file.as_file_mut());
    convert::export(&header, reader, &mut out)?;
    out.flush()?;
    drop(out);
    keep(file, output)?;
    Ok(String::new())
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|c| c.downcast_ref::<io::Error>());
    causes.any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Reads another form of a trace.
fn import(args: &ImportArgs) -> anyhow::Result<String> {
    let input: Box<dyn BufRead> = match args.input.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&args.input).with_context(|| args.input.display().to_string())?;
            Box::new(BufReader::new(file))
        }
    };
    let file = beside(&args.output)?;
    let mut writer = Writer::new(file, Header::new(Host::Network, &program()))?;
    let imported = convert::import(args.from, input, &mut writer)
        .with_context(|| args.input.display().to_string())?;
    if let Some(first) = unreadable(&imported) {
        warn(&first);
    }
    if imported.operations == 0 {
        bail!(
            "{}: no operation in the form {}; fix: give the form that it has to --from",
            args.input.display(),
            args.from.name()
        );
    }
    keep(writer.finish()?, &args.output)?;
    let mut out = format!(
        "{} operations in {}\n",
        imported.operations,
        args.output.display()
    );
    for (count, what) in [
        (
            imported.unanswered,
            "calls without a reply: no duration and status",
        ),
        (imported.without_call, "replies without a call: left out"),
        (imported.repeated, "calls that came again: left out"),
        (imported.unreadable, "lines that cannot be read: left out"),
    ] {
        if count > 0 {
            out += &format!("{count} {what}\n");
        }
    }
    Ok(out)
}

fn unreadable(imported: &Imported) -> Option<String> {
    let (line, reason) = imported.first_unreadable.as_ref()?;
    Some(format!("line {line} cannot be read: {reason}"))
}

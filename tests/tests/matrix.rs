//! Hooks of each program on each kernel: the table in the documentation equals the reports of `nfscope check` and of the agents in
//! machines with these kernels. Each machine checks the column of its own kernel. `check` attaches everything once more: it runs on
//! 5.10 and on 6.12, and the others ask their running agent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::{Agent, Kernel, Server};
use nfscope_model::{ProbeState, ProbeStatus};
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use crate::lifecycle::eventually;

/// The page that has the table, from this crate.
const PAGE: &str = "../docs/kernels.md";
const BEGIN: &str = "<!-- kernel matrix: written by UPDATE_GOLDEN=1 cargo test -p lab --test suites matrix_and -->\n";
const END: &str = "<!-- end of kernel matrix -->\n";

/// Part of `nfscope check --json`, and of an agent's `/probes`, that is compared.
#[derive(Deserialize)]
struct Report {
    probes: Vec<ProbeStatus>,
    /// Exports; an agent does not report them.
    #[serde(default)]
    exports: Vec<Exported>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Exported {
    path: String,
    fs: String,
    log: String,
    separate: Option<bool>,
}

/// Cells by probe and program: the text of the table, and the whole text of the note below.
type Column = BTreeMap<(String, String), String>;

/// Modules that probes attach to, and that a server need not have loaded.
const MODULES: &str = "modprobe -a ext4 xfs btrfs nfs nfsv4";

/// Checks the column by an agent with `--client` that has attached all probes of this kernel.
pub fn is_as_the_agent_says(server: &Server, agent: &Agent) -> Result<()> {
    server.sh(MODULES)?;
    let mut said = String::new();
    eventually(|| {
        said = agent.get("/probes")?;
        let report: Report = serde_json::from_str(&said)?;
        let may_come = |p: &ProbeStatus| p.state.may_come() && p.probe != "zfs";
        Ok((!report.probes.iter().any(may_come)).then_some(()))
    })
    .with_context(|| format!("it still waits for something: {said}"))?;
    is_documented(server.kernel(), &said)
}

/// Checks the column by `nfscope check`, with every file system's module of this kernel loaded. The export has its log on a disk of
/// its own.
pub fn is_as_check_says(server: &Server) -> Result<()> {
    let kernel = server.kernel();
    let said = ask(server)?;
    let report: Report =
        serde_json::from_str(&said).with_context(|| format!("check said {said:?}"))?;
    // The disk below may be a delayed one, which then has the first name.
    let name = server.sh("dmsetup info -c --noheadings -o blkdevname log")?;
    let (fs, device) = match Kernel::ZFS.contains(&kernel) {
        true => ("zfs", "/dev/mapper/log"),
        false => ("ext4", name.stdout.trim()),
    };
    let exported = Exported {
        path: "/run/exp".into(),
        fs: fs.into(),
        log: format!("on {device}"),
        separate: Some(true),
    };
    ensure!(report.exports == [exported], "{:?}", report.exports);
    is_documented(kernel, &said)
}

fn is_documented(kernel: Kernel, said: &str) -> Result<()> {
    let report: Report = serde_json::from_str(said)?;
    for p in &report.probes {
        let attached = p.state == ProbeState::Attached;
        ensure!(
            attached || !p.reason.is_empty(),
            "{kernel}: {} {} is {} without a reason",
            p.probe,
            p.program,
            p.state.as_str()
        );
        // Every program is attached, but for those of 5.10, and of zfs without BTF.
        ensure!(
            attached || kernel == Kernel::V5_10 || p.probe == "zfs",
            "{kernel}: {} {}: {}",
            p.probe,
            p.program,
            p.reason
        );
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        ensure!(
            std::env::var_os("LAB_FLAVOUR").is_none(),
            "the table is of the usual kernels: write it without LAB_FLAVOUR"
        );
        return update(kernel, said);
    }
    let page = fs::read_to_string(page())?;
    let (_, table, _) = parts(&page)?;
    assert_eq!(
        documented(table, kernel)?,
        column(&report.probes),
        "{kernel}: the column of the matrix in {PAGE}, and what check says; UPDATE_GOLDEN=1 writes it anew"
    );
    Ok(())
}

fn ask(server: &Server) -> Result<String> {
    let program = lab::nfscope_program()?;
    let script = format!("{MODULES}; {} check --json || true", program.display());
    Ok(server.sh(&script)?.stdout)
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)
}

/// Page before the table, the table, and the page behind it.
fn parts(page: &str) -> Result<(&str, &str, &str)> {
    let (head, rest) = page
        .split_once("<!-- kernel matrix")
        .context("the page has no matrix")?;
    let (_, rest) = rest.split_once("-->\n").context("no end of its comment")?;
    let (table, tail) = rest.split_once(END).context("the matrix has no end")?;
    Ok((head, table, tail))
}

/// Stores this kernel's report, and writes the table anew once every kernel has one.
fn update(kernel: Kernel, said: &str) -> Result<()> {
    let dir = lab::target_dir()?.join("kernel-matrix");
    fs::create_dir_all(&dir)?;
    // Two machines may write at the same time.
    let lock = File::create(dir.join("lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let file = |kernel: Kernel| dir.join(format!("{kernel}.json"));
    fs::write(file(kernel), said)?;
    let mut reports = Vec::new();
    for kernel in Kernel::ALL {
        let Ok(text) = fs::read_to_string(file(kernel)) else {
            println!("no report of {kernel} yet: the matrix stays as it is");
            return Ok(());
        };
        reports.push((kernel, serde_json::from_str::<Report>(&text)?.probes));
    }
    let old = fs::read_to_string(page())?;
    let (head, _, tail) = parts(&old)?;
    let table = table(&reports)?;
    fs::write(page(), format!("{head}{BEGIN}{table}{END}{tail}"))?;
    Ok(())
}

/// Column of the table for a report of `nfscope check`.
fn column(probes: &[ProbeStatus]) -> Column {
    let cells = probes.iter().map(|p| {
        let (what, reason) = cell(p);
        let text = reason.map_or(what.clone(), |reason| format!("{what}: {reason}"));
        ((p.probe.clone(), p.program.clone()), text)
    });
    cells.collect()
}

/// Column of the table, read from the page.
fn documented(table: &str, kernel: Kernel) -> Result<Column> {
    let notes: BTreeMap<&str, &str> = table
        .lines()
        .filter_map(|l| l.strip_prefix('[')?.split_once("] "))
        .collect();
    let mut rows = table.lines().filter_map(|l| l.strip_prefix("| "));
    let cells = |row: &str| -> Vec<String> {
        let row = row.trim_end_matches(" |");
        row.split(" | ").map(str::to_owned).collect()
    };
    let head = cells(rows.next().context("no heading")?);
    let at = head.iter().position(|name| name == kernel.name());
    let at = at.with_context(|| format!("no column of {kernel}"))?;
    let mut column = Column::new();
    for row in rows.filter(|row| !row.starts_with("---")) {
        let cells = cells(row);
        let cell = cells.get(at).with_context(|| format!("short: {row}"))?;
        if cell == "not needed" {
            continue;
        }
        let text = match cell.strip_suffix(']').and_then(|c| c.split_once(" [")) {
            Some((what, note)) => {
                let note = notes.get(note).with_context(|| format!("no note {note}"))?;
                format!("{what}: {note}")
            }
            None => cell.clone(),
        };
        for program in cells[1].split(' ') {
            let key = (cells[0].clone(), program.trim_matches('`').to_owned());
            column.insert(key, text.clone());
        }
    }
    Ok(column)
}

/// Table with a row for programs of one probe that are the same on every kernel, and the reasons below.
fn table(reports: &[(Kernel, Vec<ProbeStatus>)]) -> Result<String> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut cells: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut notes: Vec<String> = Vec::new();
    for (kernel, probes) in reports {
        for p in probes {
            let key = (p.probe.clone(), p.program.clone());
            if !order.contains(&key) {
                // A program that earlier kernels do not have is put behind the others of its probe.
                let last = order.iter().rposition(|(probe, _)| *probe == p.probe);
                order.insert(last.map_or(order.len(), |i| i + 1), key.clone());
            }
            let row = cells
                .entry(key)
                .or_insert_with(|| vec![String::new(); reports.len()]);
            let column = reports.iter().position(|(k, _)| k == kernel).unwrap_or(0);
            row[column] = numbered(p, &mut notes);
        }
    }
    let mut out = String::from("| probe | programs |");
    for (kernel, _) in reports {
        let _ = write!(out, " {kernel} |");
    }
    out += "\n| --- | --- |";
    out += &" --- |".repeat(reports.len());
    out.push('\n');
    let mut rows: Vec<(String, Vec<String>, Vec<String>)> = Vec::new();
    for key in order {
        let row = cells.remove(&key).context("a program without cells")?;
        match rows
            .iter_mut()
            .find(|(probe, _, r)| *probe == key.0 && *r == row)
        {
            Some((_, programs, _)) => programs.push(key.1),
            None => rows.push((key.0, vec![key.1], row)),
        }
    }
    for (probe, programs, row) in rows {
        let programs: Vec<_> = programs.iter().map(|p| format!("`{p}`")).collect();
        let row = row
            .iter()
            .map(|c| if c.is_empty() { "not needed" } else { c });
        let row: Vec<_> = row.collect();
        let _ = writeln!(
            out,
            "| {probe} | {} | {} |",
            programs.join(" "),
            row.join(" | ")
        );
    }
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(out, "\n[{}] {note}", i + 1);
    }
    Ok(out)
}

/// Kind of the hook, or that there is none; and the reason, if there is one to show.
fn cell(p: &ProbeStatus) -> (String, Option<String>) {
    let kind = p.hook.split('/').next().unwrap_or_default();
    let what = match p.state {
        state if state.measures() => kind,
        ProbeState::Unused => "no module",
        _ => "no",
    };
    let shown = !p.reason.is_empty() && p.state != ProbeState::Unused;
    // The hook's own name is replaced by its kind, because its program's row of `nfscope check` has the name.
    (
        what.to_owned(),
        shown.then(|| p.reason.replace(&p.hook, kind)),
    )
}

/// Cell with the number of its note.
fn numbered(p: &ProbeStatus, notes: &mut Vec<String>) -> String {
    let (what, Some(reason)) = cell(p) else {
        return cell(p).0;
    };
    let number = notes.iter().position(|n| *n == reason).unwrap_or_else(|| {
        notes.push(reason);
        notes.len() - 1
    });
    format!("{what} [{}]", number + 1)
}

#[test]
fn every_kernel_has_a_column_with_reasons() {
    let page = fs::read_to_string(page()).unwrap();
    let (_, table, _) = parts(&page).unwrap();
    for kernel in Kernel::ALL {
        let column = documented(table, kernel).unwrap();
        assert!(column.len() > 30, "{kernel}: {column:?}");
        for ((probe, program), cell) in column {
            // A "no" without a note would be a missing program without a reason.
            assert_ne!(cell, "no", "{kernel}: {probe} {program}");
            assert!(!cell.contains('['), "{kernel}: {probe} {program}: {cell}");
        }
    }
}

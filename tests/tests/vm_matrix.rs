//! What attaches how on which kernel: the table of docs/kernels.md is what `nfscope check` says in machines with these kernels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use lab::{Kernel, Server};
use nfscope_model::{ProbeState, ProbeStatus};
use serde::Deserialize;

/// The part of `nfscope check --json` that is compared.
#[derive(Deserialize)]
struct Report {
    probes: Vec<ProbeStatus>,
    exports: Vec<Exported>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Exported {
    path: String,
    fs: String,
    log: String,
    separate: Option<bool>,
}

const BEGIN: &str =
    "<!-- kernel matrix: written by UPDATE_GOLDEN=1 cargo test -p lab --test vm_matrix -->\n";
const END: &str = "<!-- end of kernel matrix -->\n";

#[test]
fn vm_every_kernel_attaches_what_the_page_says() -> Result<()> {
    let reports = thread::scope(|scope| {
        let asked = Kernel::ALL.map(|kernel| (kernel, scope.spawn(move || ask(kernel))));
        asked
            .into_iter()
            .map(|(kernel, report)| {
                let report = report
                    .join()
                    .map_err(|_| anyhow::anyhow!("{kernel}: panicked"))?;
                Ok((kernel, report.with_context(|| kernel.to_string())?))
            })
            .collect::<Result<Vec<_>>>()
    })?;
    for (kernel, probes) in &reports {
        for p in probes {
            let attached = p.state == ProbeState::Attached;
            ensure!(
                attached || !p.reason.is_empty(),
                "{kernel}: {} {} is {} without a reason",
                p.probe,
                p.program,
                p.state.as_str()
            );
            // What they have is used in full, but for what zfs without BTF and the first of the four lack.
            ensure!(
                attached || *kernel == Kernel::V5_10 || p.probe == "zfs",
                "{kernel}: {} {}: {}",
                p.probe,
                p.program,
                p.reason
            );
        }
    }
    let table = table(&reports)?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kernels.md");
    let text = fs::read_to_string(&page)?;
    let (head, rest) = text
        .split_once(BEGIN)
        .context("docs/kernels.md has no matrix")?;
    let (old, tail) = rest.split_once(END).context("the matrix has no end")?;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, format!("{head}{BEGIN}{table}{END}{tail}"))?;
        return Ok(());
    }
    assert_eq!(
        old, table,
        "the matrix of docs/kernels.md; UPDATE_GOLDEN=1 writes it anew"
    );
    Ok(())
}

/// With every filesystem's module loaded that there is for this kernel.
fn ask(kernel: Kernel) -> Result<Vec<ProbeStatus>> {
    let fs = if Kernel::ZFS.contains(&kernel) {
        "zfs"
    } else {
        "ext4"
    };
    let server = Server::boot(kernel).export(fs).external_log().start()?;
    let program = lab::nfscope_program()?;
    let script = format!(
        "modprobe -a ext4 xfs btrfs; {} check --json || true",
        program.display()
    );
    let said = server.sh(&script)?.stdout;
    let report: Report =
        serde_json::from_str(&said).with_context(|| format!("check said {said:?}"))?;
    let device = match fs {
        "zfs" => "/dev/mapper/log",
        _ => "dm-0",
    };
    let exported = Exported {
        path: "/run/exp".into(),
        fs: fs.into(),
        log: format!("on {device}"),
        separate: Some(true),
    };
    ensure!(report.exports == [exported], "{:?}", report.exports);
    Ok(report.probes)
}

/// One row for programs of one probe that stand the same on every kernel, and the reasons below.
fn table(reports: &[(Kernel, Vec<ProbeStatus>)]) -> Result<String> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut cells: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut notes: Vec<String> = Vec::new();
    for (kernel, probes) in reports {
        for p in probes {
            let key = (p.probe.clone(), p.program.clone());
            if !order.contains(&key) {
                // Beside its neighbours, where an earlier kernel has no such program.
                let last = order.iter().rposition(|(probe, _)| *probe == p.probe);
                order.insert(last.map_or(order.len(), |i| i + 1), key.clone());
            }
            let row = cells
                .entry(key)
                .or_insert_with(|| vec![String::new(); reports.len()]);
            let column = reports.iter().position(|(k, _)| k == kernel).unwrap_or(0);
            row[column] = cell(p, &mut notes);
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

/// The kind of hook, or that there is none; and the number of the reason.
fn cell(p: &ProbeStatus, notes: &mut Vec<String>) -> String {
    let kind = p.hook.split('/').next().unwrap_or_default();
    let what = match p.state {
        state if state.measures() => kind,
        ProbeState::Unused => "no module",
        _ => "no",
    };
    if p.reason.is_empty() || p.state == ProbeState::Unused {
        return what.to_owned();
    }
    // The hook's name is in the program's row of `nfscope check`.
    let reason = p.reason.replace(&p.hook, kind);
    let number = notes.iter().position(|n| *n == reason).unwrap_or_else(|| {
        notes.push(reason);
        notes.len() - 1
    });
    format!("{what} [{}]", number + 1)
}

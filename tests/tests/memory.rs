//! Kernel memory of the probes, on a host that could have many CPUs.

use anyhow::{Context, Result, ensure};
use lab::{Load, Server};
use nfscope_model::{Sample, family};

/// Starts an agent with all probes that can attach, and compares its own metric with the kernel's memory.
pub fn is_bounded(server: &Server, possible: u32) -> Result<()> {
    let listed = server.sh("cat /sys/devices/system/cpu/possible")?.stdout;
    ensure!(listed.trim() == format!("0-{}", possible - 1), "{listed}");
    server.sh("modprobe -a ext4 xfs btrfs")?;
    let before = per_cpu(server)?;
    let agent = server.agent(&[])?;
    server.load(Load::mixed().ops(1_000))?;
    server.clients().try_for_each(|c| c.unmount_all())?;
    let grown = per_cpu(server)?.saturating_sub(before);
    let seen = agent.snapshot()?;
    let mut told = 0.0;
    for series in seen.series(&family::KERNEL_MEMORY.info) {
        let Sample::Gauge(bytes) = series.sample else {
            continue;
        };
        println!("{:?}: {bytes} bytes", series.labels);
        told += bytes;
    }
    let ops = seen.series(&family::OP_DURATION.info).len();
    println!("{ops} operations in use, {told} bytes, of per-CPU memory {grown}");
    ensure!(ops >= 30, "only {ops} operations in use");
    let most = 16e6 + 0.15e6 * f64::from(possible);
    ensure!(told > 1e6 && told <= most, "{told} bytes, {most} at most");
    ensure!((grown as f64) <= most, "{grown} bytes of per-CPU memory");
    let check = server.sh(&format!(
        "{} check --all || true",
        server.nfscope_path()?.display()
    ))?;
    ensure!(
        check.stdout.contains(&format!("{possible} possible CPUs")),
        "{}",
        check.stdout
    );
    agent.stop().map(drop)
}

/// Memory that the kernel has allocated for all possible CPUs together.
fn per_cpu(server: &Server) -> Result<u64> {
    let text = server.sh("cat /proc/meminfo")?.stdout;
    let line = text.lines().find_map(|l| l.strip_prefix("Percpu:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no Percpu in /proc/meminfo")? * 1024)
}

//! The lab tested by itself: every later test believes what is checked here.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::raw::Sent;
use lab::{Delay, Disk, Kernel, KernelCounts, Load, Server};

#[test]
fn vm_5_10_ext4() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V5_10, "ext4")
}

#[test]
fn vm_6_1_btrfs() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V6_1, "btrfs")
}

#[test]
fn vm_6_1_zfs() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V6_1, "zfs")
}

#[test]
fn vm_6_12_xfs() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V6_12, "xfs")
}

#[test]
fn vm_6_12_zfs() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V6_12, "zfs")
}

#[test]
fn vm_7_2_tmpfs() -> Result<()> {
    the_lab_tells_the_truth(Kernel::V7_2, "tmpfs")
}

fn the_lab_tells_the_truth(kernel: Kernel, fs: &str) -> Result<()> {
    let started = Instant::now();
    let server = Server::boot(kernel).export(fs).clients(2).start()?;
    println!(
        "{kernel}: answered after {:?}, serving {fs} after {:?}",
        server.boot_time(),
        started.elapsed()
    );
    assert_eq!(server.sh("uname -r")?.stdout.trim(), kernel.release()?);

    for (scenario, _) in lab::raw::SCENARIOS {
        let before = server.kernel_counts()?;
        let sent = server.raw(scenario)?;
        let counted = server.kernel_counts()? - before;
        assert_agree(&format!("{kernel} {scenario}"), &sent, &counted);
    }

    let load_started = Instant::now();
    let before = server.kernel_counts()?;
    let report = server.load(Load::mixed().ops(3_000))?;
    let counted = server.kernel_counts()? - before;
    println!("{kernel}: load in {:?}: {report:?}", load_started.elapsed());
    println!("{:?} {:?}", counted.procs3(), counted.ops4_by_name());
    assert!(report.operations >= 3_000, "{report:?}");
    for name in ["write", "commit", "read", "create", "rename", "readdirplus"] {
        assert!(counted.proc3(name) > 0, "no v3 {name}: {counted:?}");
    }
    for name in ["write", "commit", "open", "rename", "readdir"] {
        assert!(counted.op4(name) > 0, "no v4 {name}: {counted:?}");
    }
    // Later clients read with READ_PLUS.
    assert!(counted.op4("read") + counted.op4("read_plus") > 0);
    Ok(())
}

fn assert_agree(what: &str, sent: &Sent, counted: &KernelCounts) {
    assert_eq!(counted.procs3(), sent.proc3, "{what}: v3 procedures");
    assert_eq!(counted.ops4_by_name(), sent.ops4, "{what}: v4 operations");
    assert_eq!(counted.compounds, sent.compounds, "{what}: compounds");
    assert_eq!(counted.null4, sent.null4, "{what}: v4 NULL");
    assert_eq!(counted.cache_hits, sent.cache_hits, "{what}: cache hits");
    assert_eq!(counted.net_tcp, sent.calls, "{what}: calls");
    assert_eq!(
        counted.net_connections, sent.connections,
        "{what}: connections"
    );
    assert_eq!(
        counted.rpc_bad,
        sent.bad_format + sent.bad_auth,
        "{what}: refused"
    );
}

#[test]
fn vm_disks_are_as_slow_as_they_are_told_to_be() -> Result<()> {
    let late = Duration::from_millis(200);
    let server = Server::boot(Kernel::V6_12)
        .export("xfs")
        .slow(late)
        .external_log()
        .clients(1)
        .start()?;
    let mount = server.client(0).mount_v3()?;
    let took = |script: &str| seconds(&server, script);
    let write = |name: &str| five_sync_writes(&server, &format!("{mount}/{name}"));
    let sync = write("f")?;
    assert!(sync > 1.0, "5 synchronous writes took {sync} s");
    let stat = took(&format!("stat {mount}/f"))?;
    assert!(stat < 0.5, "stat took {stat} s");

    server.delay(Disk::Data, Delay::reads(late))?;
    let fast = write("g")?;
    server.drop_caches()?;
    let read = took("cat /run/exp/g > /dev/null")?;
    assert!(read > 0.2, "a cold read took {read} s");
    server.delay(Disk::Data, Delay::NONE)?;
    server.delay(Disk::Log, Delay::writes(late))?;
    let slow = write("h")?;
    assert!(
        slow > 1.0 && slow > fast + 0.8,
        "5 synchronous writes took {slow} s with a slow log, {fast} s without"
    );
    Ok(())
}

fn seconds(server: &Server, script: &str) -> Result<f64> {
    let script = format!("TIMEFORMAT=%R; time {script}");
    let output = server.client(0).sh(&script)?;
    Ok(output.stderr.lines().last().unwrap_or_default().parse()?)
}

fn five_sync_writes(server: &Server, file: &str) -> Result<f64> {
    let dd = format!("dd if=/dev/zero of={file} bs=4k count=5 oflag=sync status=none");
    seconds(server, &dd)
}

/// Synchronous writes wait for the log's disk and for no other, and a pool takes one while it serves.
#[test]
fn vm_6_12_zfs_log_is_as_slow_as_its_disk() -> Result<()> {
    let late = Duration::from_millis(200);
    let server = Server::boot(Kernel::V6_12)
        .export("zfs")
        .spare_log()
        .clients(1)
        .start()?;
    let mount = server.client(0).mount_v4_2()?;
    let write = |name: &str| five_sync_writes(&server, &format!("{mount}/{name}"));
    write("first")?; // makes the log

    server.delay(Disk::Data, Delay::writes(late))?;
    let alone = write("f")?;
    assert!(alone > 1.0, "5 synchronous writes took {alone} s");
    server.sh("zpool add -f tank log /dev/mapper/log")?;
    write("second")?; // where the log goes on was settled before
    let separate = write("g")?;
    assert!(
        separate < alone / 2.0,
        "5 synchronous writes took {separate} s with a fast log, {alone} s without"
    );
    server.delay(Disk::Data, Delay::NONE)?;
    server.delay(Disk::Log, Delay::writes(late))?;
    let slow = write("h")?;
    println!("no log {alone} s, a fast one {separate} s, a slow one {slow} s");
    assert!(slow > 1.0, "5 synchronous writes took {slow} s");
    Ok(())
}

#[test]
fn vm_6_1_zfs_comes_and_goes() -> Result<()> {
    let server = Server::boot(Kernel::V6_1)
        .export("zfs")
        .external_log()
        .clients(1)
        .start()?;
    let pool = server.sh("zpool status -P tank")?.stdout;
    assert!(
        pool.contains("\n\tlogs") && pool.contains("/dev/mapper/log"),
        "{pool}"
    );
    let mount = server.client(0).mount_v4_2()?;
    server.client(0).sh(&format!("echo hello > {mount}/f"))?;
    server.sh("zfs_down")?;
    let modules = "grep -cE '^(spl|zfs) ' /proc/modules || true";
    assert_eq!(server.sh(modules)?.stdout, "0\n");
    server.sh("zfs_up")?;
    assert_eq!(server.sh(modules)?.stdout, "2\n");
    server.nfsd_start()?;
    assert_eq!(
        server.client(0).sh(&format!("cat {mount}/f"))?.stdout,
        "hello\n"
    );
    Ok(())
}

#[test]
fn vm_nfsd_comes_and_goes() -> Result<()> {
    let server = Server::boot(Kernel::V6_12)
        .export("tmpfs")
        .clients(1)
        .without_nfsd()
        .start()?;
    assert_eq!(
        server.sh("grep -c ^nfsd /proc/modules || true")?.stdout,
        "0\n"
    );
    server.nfsd_start()?;
    let mount = server.client(0).mount_v4_2()?;
    server.client(0).sh(&format!("echo hello > {mount}/f"))?;
    server.set_threads(1)?;
    server.nfsd_stop()?;
    server.nfsd_start()?;
    assert_eq!(
        server.client(0).sh(&format!("cat {mount}/f"))?.stdout,
        "hello\n"
    );
    Ok(())
}

#[test]
fn vm_ctrl_c_leaves_nothing_behind() -> Result<()> {
    // Who runs tests in the background may have them ignore it.
    let mut shell = Command::new("env")
        .arg("--default-signal=INT")
        .arg(lab::lab_program()?)
        .args(["shell", "--clients", "0", "--export", "tmpfs", "-c"])
        .arg("echo; sleep 1000")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let said = BufReader::new(shell.stdout.take().context("its output")?);
    let ready = said
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("is shared"));
    let ready = ready.context("lab shell ended before its machine was up")?;
    // Its name ends with the slot that was free.
    let owner = format!("{}-{}-", Kernel::V6_12, shell.id());
    let machine = ready
        .split(['/', ' '])
        .find(|part| part.starts_with(&owner))
        .with_context(|| format!("{owner} is not in: {ready}"))?
        .to_owned();

    // As a terminal does it: to everything in the foreground.
    let killed = Command::new("kill")
        .args(["-INT", "--", &format!("-{}", shell.id())])
        .status()?;
    assert!(killed.success());
    shell.wait()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline && !processes_naming(&machine)?.is_empty() {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(processes_naming(&machine)?, Vec::<String>::new());
    let dir = lab::target_dir()?.join("lab").join(&machine);
    assert!(!dir.exists(), "{} is still there", dir.display());
    Ok(())
}

/// The command lines of the processes that have this word in them.
fn processes_naming(word: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // Processes end while they are looked at.
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    Ok(found)
}

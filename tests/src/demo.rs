//! `lab run`: shows nfscope on real input - this host's NFS server, or one in a machine under a realistic load.

use std::fs;
use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::kernel::Kernel;
use crate::load::Load;
use crate::server::Server;
use crate::{http, machine, paths};

/// Default port of nfscope.
const PORT: u16 = 9943;

/// Shows nfscope at work until Ctrl-C.
pub fn run(kernel: Kernel, export: &str) -> Result<()> {
    let threads = fs::read_to_string("/proc/fs/nfsd/threads").unwrap_or_default();
    if threads.trim().parse::<u32>().is_ok_and(|n| n > 0) {
        println!("This host serves NFS with {} threads.", threads.trim());
        on_this_host()
    } else {
        println!(
            "This host serves no NFS: showing a virtual machine that does, with kernel {kernel}."
        );
        in_a_machine(kernel, export)
    }
}

fn in_a_machine(kernel: Kernel, export: &str) -> Result<()> {
    let server = during("Booting the machine and its NFS server on it", || {
        Server::boot(kernel)
            .export(export)
            .clients(3)
            .agent_port(PORT)
            .start()
    })?;
    // The agent starts before the load, beside which attaching takes three times as long.
    let agent = during("Starting the agent in it", || server.agent(&[]))?;
    let load = during("Mounting it from three clients, over v3 and v4.2", || {
        server.start_load(Load::mixed().endless())
    })?;
    println!("A mixed load runs: sync and async writes, reads, metadata.");
    top(agent.address(), || {
        if load.has_ended() {
            bail!("the load ended: {}", load.output_so_far().1.trim());
        }
        ensure!(agent.is_running(), "the agent ended: {}", agent.log());
        Ok(())
    })?;
    during("Switching the machine off", || {
        drop(server);
        Ok(())
    })
}

fn on_this_host() -> Result<()> {
    let dir = paths::machine_dir("host")?;
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let address = machine::free_port(Some(PORT))?;
    let mut agent = start_agent(&dir, address)?;
    let log = || fs::read_to_string(dir.join("agent.log")).unwrap_or_default();
    let ended = || dir.join(crate::supervisor::ENDED).exists();
    let shown = during("Starting the agent", || {
        let started = Instant::now();
        while !http::get(address, "/healthz", &[]).is_ok_and(|answer| answer.status == 200) {
            ensure!(!ended(), "the agent ended: {}", log());
            ensure!(
                started.elapsed() < Duration::from_secs(60),
                "the agent times no NFS operation after a minute; its log: {}",
                log()
            );
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    })
    .and_then(|()| {
        top(address, || {
            ensure!(!ended(), "the agent ended: {}", log());
            Ok(())
        })
    });
    drop(agent.stdin.take());
    let _ = agent.wait(); // the supervisor ends with what it guards
    shown
}

/// Starts the agent under `lab supervisor`, which ends it together with this process, as it does machines.
fn start_agent(dir: &Path, address: SocketAddr) -> Result<Child> {
    let log = dir.join("agent.log");
    let file = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let lab = paths::lab_program()?;
    Command::new(&lab)
        .arg("supervisor")
        .arg(dir)
        .arg(paths::nfscope_program()?)
        .args(["agent", "--web.listen-address", &address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(file)
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {} supervisor", lab.display()))
}

/// Runs `nfscope top` in the foreground until it ends, Ctrl-C, or an error of `fine`.
fn top(address: SocketAddr, fine: impl Fn() -> Result<()>) -> Result<()> {
    if address.port() != PORT {
        println!(
            "Port {PORT} is taken here; port {} is used.",
            address.port()
        );
    }
    // 127.0.0.1 makes a link that can be clicked, whatever address the agent listens at.
    let url = format!("http://{}:{}", Ipv4Addr::LOCALHOST, address.port());
    println!("\nPage: {url}/\nMetrics: {url}/metrics\nCtrl-C stops everything.\n");
    std::io::stdout().flush()?;

    // Ctrl-C reaches top by itself; this process goes on to clean up.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("preparing for Ctrl-C")?;
    }
    let program = paths::nfscope_program()?;
    let mut top = Command::new(&program)
        .args(["top", "--url", &url])
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {} top", program.display()))?;
    let outcome = loop {
        if let Some(status) = top.try_wait()? {
            let stopped = status.success() || stop.load(Ordering::Relaxed);
            ensure!(stopped, "nfscope top ended with {status}");
            break Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            break Ok(());
        }
        if let Err(e) = fine() {
            break Err(e);
        }
        thread::sleep(Duration::from_millis(100));
    };
    end(&mut top)?;
    println!();
    outcome
}

/// Ends top so that it restores the terminal; it may be ending by itself.
fn end(top: &mut Child) -> Result<()> {
    for tenth in 0..20 {
        if top.try_wait()?.is_some() {
            return Ok(());
        }
        if tenth == 2
            && let Some(pid) = Pid::from_raw(top.id().cast_signed())
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        thread::sleep(Duration::from_millis(100));
    }
    let _ = top.kill();
    top.wait()?;
    Ok(())
}

/// Prints the step and how long it takes already.
pub fn during<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let (done, is_done) = channel::<()>();
    let label = what.to_owned();
    let clock = thread::spawn(move || {
        let terminal = std::io::stdout().is_terminal();
        print!("{label} ...");
        let mut ticks = 0_u32;
        loop {
            let _ = std::io::stdout().flush();
            match is_done.recv_timeout(Duration::from_secs(2)) {
                Err(RecvTimeoutError::Timeout) => ticks += 1,
                _ => break,
            }
            let seconds = started.elapsed().as_secs();
            if terminal {
                print!("\r{label} ... {seconds} s");
            } else if ticks.is_multiple_of(5) {
                print!(" {seconds} s");
            }
        }
    });
    let result = work();
    drop(done);
    let _ = clock.join();
    let how = if result.is_ok() { "done" } else { "failed" };
    println!(" {how} ({:.1} s)", started.elapsed().as_secs_f64());
    result
}

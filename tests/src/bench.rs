//! `lab bench`: what watching costs, in instructions per operation, with nothing else in the machine.
//!
//! One processor, and one instruction is one nanosecond of its time, so the host's other work does not matter. Each
//! round measures the bare server, nfscope and the bpftrace script in turn; medians over the rounds are compared.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cost::Cost;
use crate::kernel::Kernel;
use crate::server::Server;
use crate::show::during;

/// The peer: the same questions asked in bpftrace.
const SCRIPT: &str = include_str!("../bench/nfsd.bt");
/// Per operation, round, observer and version.
const TIMES: u32 = 2000;
const VERSIONS: [&str; 2] = ["3", "4.2"];

type Figure = fn(&Cost) -> f64;
const OPERATIONS: [(&str, Figure); 2] = [
    ("4 KiB sync write", |cost| cost.sync_write),
    ("getattr", |cost| cost.getattr),
];

/// Costs on both versions' mounts, in the order of [`VERSIONS`].
type Costs = Vec<Cost>;

/// What nfscope takes apart from instructions.
#[derive(Clone, Debug, Default)]
struct Footprint {
    resident_kib: Vec<f64>,
    attach_ms: Vec<f64>,
    scrape_ms: Vec<f64>,
    scrape_bytes: Vec<f64>,
}

/// Measures and prints the table.
pub fn run(kernel: Kernel, rounds: u32) -> Result<()> {
    let what = format!("Booting kernel {kernel}, counting its instructions");
    let server = during(&what, || {
        Server::boot(kernel).export("tmpfs").icount().start()
    })?;
    server.sh(
        "set -e; modprobe -a nfs nfsv3 nfsv4; mkdir -p /run/m/3 /run/m/4.2
         mount -t nfs -o vers=3,nolock,proto=tcp 127.0.0.1:/run/exp /run/m/3
         mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /run/m/4.2",
    )?;
    let (mut bare, mut nfscope, mut bpftrace) = (Vec::new(), Vec::new(), Vec::new());
    let mut footprint = Footprint::default();
    for round in 1..=rounds {
        let of = format!("Round {round} of {rounds}");
        bare.push(during(&format!("{of}: nothing attached"), || {
            costs(&server)
        })?);
        nfscope.push(during(&format!("{of}: nfscope"), || {
            with_nfscope(&server, &mut footprint)
        })?);
        bpftrace.push(during(&format!("{of}: bpftrace"), || {
            with_bpftrace(&server)
        })?);
    }
    print_costs(kernel, &bare, &nfscope, &bpftrace);
    println!(
        "\nnfscope: {:.1} MiB resident; {:.0} ms of processor time from start to attached; a scrape of {:.1} KB in {:.2} ms\n\
         (medians, at one instruction per nanosecond)",
        median(footprint.resident_kib) / 1024.0,
        median(footprint.attach_ms),
        median(footprint.scrape_bytes) / 1000.0,
        median(footprint.scrape_ms),
    );
    Ok(())
}

fn costs(server: &Server) -> Result<Costs> {
    let mounts = VERSIONS
        .map(|version| format!("/run/m/{version}"))
        .join(" ");
    let output = server.lab(&format!("cost --times {TIMES} {mounts}"))?;
    serde_json::from_str(&output.stdout)
        .with_context(|| format!("lab cost printed {:?}", output.stdout))
}

fn with_nfscope(server: &Server, footprint: &mut Footprint) -> Result<Costs> {
    let agent = server.agent(&[])?;
    let (port, process) = (agent.port(), agent.process());
    // Processor time: on the clock there would also be what else ran, and idle time is not to be believed here.
    let started = server.sh(&format!(
        "cut -d' ' -f1 /proc/$(pidof -s {process})/task/*/schedstat | awk '{{ total += $1 }} END {{ print total }}'"
    ))?;
    let started: f64 = started.stdout.trim().parse().context("schedstat")?;
    footprint.attach_ms.push(started / 1e6);
    let costs = costs(server)?;
    // From inside, or the network's emulation would be measured.
    let scrape = server.sh(&format!(
        "curl -sf -o /dev/null -w '%{{time_total}} %{{size_download}}' http://127.0.0.1:{port}/metrics
         echo; awk '/^VmRSS/ {{ print $2 }}' /proc/$(pidof -s {process})/status"
    ))?;
    let mut words = scrape.stdout.split_whitespace().map(str::parse::<f64>);
    let mut next = || {
        words
            .next()
            .context("too few figures")?
            .context("no figure")
    };
    footprint.scrape_ms.push(next()? * 1000.0);
    footprint.scrape_bytes.push(next()?);
    footprint.resident_kib.push(next()?);
    agent.stop()?;
    Ok(costs)
}

fn with_bpftrace(server: &Server) -> Result<Costs> {
    let script = server.dir().join("nfsd.bt");
    std::fs::write(&script, SCRIPT).with_context(|| format!("writing {}", script.display()))?;
    let mut running = server.spawn(&format!("exec bpftrace {}", script.display()))?;
    let started = std::time::Instant::now();
    while !running.output_so_far().0.contains("attached\n") {
        let (out, err) = running.output_so_far();
        ensure!(
            !running.has_ended() && started.elapsed() < Duration::from_secs(180),
            "bpftrace does not attach: {out}{err}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let costs = costs(server)?;
    running.signal(2)?;
    let output = running.wait(Duration::from_secs(60))?;
    ensure!(
        output.stdout.contains("@dispatch_us"),
        "bpftrace saw nothing: {}{}",
        output.stdout,
        output.stderr
    );
    Ok(costs)
}

fn print_costs(kernel: Kernel, bare: &[Costs], nfscope: &[Costs], bpftrace: &[Costs]) {
    println!(
        "\nInstructions per operation, client and server together, over loopback to tmpfs on {kernel}; median of {} rounds\n",
        bare.len()
    );
    println!(
        "{:<24} {:>9} {:>10} {:>8} {:>10} {:>8} {:>18}",
        "operation", "bare", "nfscope", "adds", "bpftrace", "adds", "nfscope / bpftrace"
    );
    for (n, version) in VERSIONS.iter().enumerate() {
        for (operation, figure) in OPERATIONS {
            let of = |rounds: &[Costs]| median(rounds.iter().map(|r| figure(&r[n])).collect());
            let (bare, nfscope, bpftrace) = (of(bare), of(nfscope), of(bpftrace));
            let adds = |with: f64| format!("{:+.1} %", (with / bare - 1.0) * 100.0);
            println!(
                "{:<24} {bare:>9.0} {nfscope:>10.0} {:>8} {bpftrace:>10.0} {:>8} {:>18.2}",
                format!("v{version} {operation}"),
                adds(nfscope),
                adds(bpftrace),
                (nfscope - bare) / (bpftrace - bare)
            );
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}

//! Measures the cost of the nfsd probe on this host in nanoseconds. Counted instructions show neither locks nor cache lines: `cargo run
//! --release -p nfscope-probes --example native [-- --markdown]`, as root.
//!
//! No NFS server is needed. A BPF program plays the kernel: it makes requests of stand-ins and runs the probe's own programs
//! on them (`bench/drive.bpf.c`), started by BPF_PROG_RUN in threads that are called nfsd. The kernel's entry into a program is
//! measured apart, with programs that do nothing.

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, ProgramInput, libbpf_sys,
};
use nfscope_probes::types as t;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::error::Error;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Requests in a run (`MOST_REQUESTS` in drive.bpf.c), and number of runs in a round.
const REQUESTS: u32 = 200;
const RUNS: u32 = 1000;
const ROUNDS: usize = 7;
const CLIENT_ROWS: u32 = 1024;
const SHARDS: u32 = 2;

/// `enum what` in drive.bpf.c.
#[derive(Clone, Copy)]
enum What {
    WriteV3 = 1,
    WriteV42 = 2,
}

/// `IDLE_BIT` in drive.bpf.c: the same steps without effect.
const IDLE: u32 = 0x100;

/// `struct drive` of drive.bpf.c as bytes.
fn drive(what: u32, thread: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&what.to_ne_bytes());
    bytes[4..8].copy_from_slice(&thread.to_ne_bytes());
    bytes[8..12].copy_from_slice(&REQUESTS.to_ne_bytes());
    bytes
}

/// The driver, loaded with tables of two shards.
fn load(alone: bool, books: bool) -> Result<Object> {
    let shape = t::table_shape {
        own_mask: SHARDS - 1,
        shared_mask: SHARDS - 1,
        pool_mask: SHARDS - 1,
        block_mask: 0,
        pools: 1,
        client_rows: CLIENT_ROWS,
        netns: 0,
        skip_one_in: 0,
        alone: u32::from(alone),
        books: u32::from(books),
        slack_ns: 0,
        limits_unproven: 0,
    };
    let mut open = ObjectBuilder::default()
        .name("nfsd")?
        .open_memory(nfscope_probes::NFSD_DRIVE)?;
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(name == "nfsd_drive" || name.starts_with("nfsd_empty"));
        program.set_autoattach(false);
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let entries = match name.as_str() {
            "nfsd_op" | "nfsd_version" | "nfsd_pool" => map.max_entries() * SHARDS,
            "nfsd_client_row" => CLIENT_ROWS * SHARDS,
            "nfsd_client" | "nfsd_free_rows" => CLIENT_ROWS,
            _ => map.max_entries(),
        };
        map.set_max_entries(entries)?;
        if name == ".rodata.nfsd_shape" {
            // SAFETY: a structure of integers of one size, without padding.
            let bytes = unsafe {
                std::slice::from_raw_parts((&raw const shape).cast::<u8>(), size_of_val(&shape))
            };
            map.set_initial_value(bytes)?;
        }
    }
    let loaded = open.load()?;
    let free = loaded.maps().find(|m| m.name() == "nfsd_free_rows");
    let free = free.ok_or("no map of free rows")?;
    for row in 1..CLIENT_ROWS {
        free.update(&[], &row.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(loaded)
}

/// Makes the driver's probe group operations by all dimensions. The table stays in the kernel as long as the probe.
fn break_down(object: &Object) -> Result<()> {
    let find = |name: &str| {
        let map = object.maps().find(|m| m.name() == name);
        map.ok_or_else(|| format!("no map {name}"))
    };
    let sizes = [size_of::<t::breakdown_key>(), size_of::<t::time_hist>()].map(|n| n as u32);
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let table = MapHandle::create(
        MapType::Hash,
        Some("nfsd_by_key"),
        sizes[0],
        sizes[1],
        4096,
        &options,
    )?;
    let fd = table.as_fd().as_raw_fd().to_ne_bytes();
    find("nfsd_breakdown")?.update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)?;
    use t::breakdown_by as B;
    let by = [B::BY_CLIENT, B::BY_EXPORT, B::BY_OP, B::BY_USER, B::BY_FILE];
    let want = t::breakdown_want {
        by: B(by.iter().fold(0, |all, b| all | b.0)),
        rows: [u64::MAX; _],
        ..Default::default()
    };
    // SAFETY: a structure of integers, without padding.
    let bytes =
        unsafe { std::slice::from_raw_parts((&raw const want).cast::<u8>(), size_of_val(&want)) };
    let zero = 0u32.to_ne_bytes();
    find(".data.nfsd_breakdown_want")?.update(&zero, bytes, MapFlags::ANY)?;
    find(".data.nfsd_watch")?.update(&zero, &0u64.to_ne_bytes(), MapFlags::ANY)?;
    Ok(())
}

/// Nanoseconds a request in each of `on.len()` threads that run at the same time, each on its own CPU. The result is the lowest of the
/// rounds, because other load of the host only adds time.
fn measure(object: &Object, what: u32, on: &[usize]) -> Result<f64> {
    let barrier = &Barrier::new(on.len());
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (send, times) = mpsc::channel();
        thread::scope(|scope| -> Result<()> {
            for (n, cpu) in (0..).zip(on.iter().copied()) {
                let send = send.clone();
                let run = move || -> Result<Duration> {
                    let mut cpus = CpuSet::new();
                    cpus.set(cpu);
                    let bound = sched_setaffinity(None, &cpus);
                    let mut context = drive(what, n);
                    let program = object.progs_mut().find(|p| p.name() == "nfsd_drive");
                    // No thread returns before the barrier, or the others would wait for ever.
                    barrier.wait();
                    bound?;
                    let program = program.ok_or("no driver")?;
                    let begun = Instant::now();
                    for _ in 0..RUNS {
                        let input = ProgramInput {
                            context_in: Some(&mut context),
                            ..Default::default()
                        };
                        let done = program.test_run(input)?;
                        if done.return_value != 0 {
                            return Err("the driver found no stand-ins".into());
                        }
                    }
                    Ok(begun.elapsed())
                };
                thread::Builder::new()
                    .name("nfsd".into())
                    .spawn_scoped(scope, move || send.send(run()))?;
            }
            Ok(())
        })?;
        drop(send);
        let mut longest = Duration::ZERO;
        for time in times {
            longest = longest.max(time?);
        }
        best = best.min(longest.as_nanos() as f64 / f64::from(RUNS * REQUESTS));
    }
    Ok(best)
}

/// Nanoseconds of a system call with `programs` programs at its entry.
fn system_call(object: &Object, programs: usize) -> Result<f64> {
    let empty = object.progs_mut();
    let empty = empty.filter(|p| p.name().to_string_lossy().starts_with("nfsd_empty"));
    let links = empty.take(programs).map(|p| p.attach());
    let links = links.collect::<libbpf_rs::Result<Vec<_>>>()?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..RUNS * REQUESTS {
            let _ = rustix::process::getppid();
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(RUNS * REQUESTS));
    }
    drop(links);
    Ok(best)
}

/// CPUs that this process may run on, at most two. They are of two cores where the host names them: siblings share a cache.
fn two_cpus() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    let allowed = (0..CpuSet::MAX_CPU).filter(|n| allowed.is_set(*n));
    let mut chosen: Vec<(usize, String)> = Vec::new();
    for cpu in allowed {
        let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let read = |file| std::fs::read_to_string(format!("{topology}/{file}"));
        let (package, core) = (read("physical_package_id"), read("core_id"));
        let place = match (package, core) {
            (Ok(package), Ok(core)) => format!("{package} {core}"),
            _ => cpu.to_string(),
        };
        if chosen.len() < 2 && chosen.iter().all(|(_, p)| *p != place) {
            chosen.push((cpu, place));
        }
    }
    Ok(chosen.into_iter().map(|(cpu, _)| cpu).collect())
}

fn main() -> Result<()> {
    let markdown = std::env::args().any(|a| a == "--markdown");
    let cpus = two_cpus()?;
    let usual = load(true, true)?;
    let entry = (system_call(&usual, 8)? - system_call(&usual, 1)?) / 7.0;
    let mut rows = Vec::new();
    // Number of programs that the driver runs for each request.
    for (name, what, programs) in [
        ("4 KiB sync write, v3", What::WriteV3, 7.0),
        ("4 KiB sync write, v4.2", What::WriteV42, 12.0),
    ] {
        let net = |object: &Object, on: &[usize]| -> Result<f64> {
            let what = what as u32;
            Ok(measure(object, what, on)? - measure(object, what | IDLE, on)?)
        };
        let alone = &cpus[..1];
        let one = net(&usual, alone)?;
        let two = match cpus.len() {
            2 => Some(net(&usual, &cpus)?),
            _ => None,
        };
        let no_books = net(&load(true, false)?, alone)?;
        let locked = net(&load(false, true)?, alone)?;
        let looked_at = load(true, true)?;
        break_down(&looked_at)?;
        let broken_down = net(&looked_at, alone)?;
        rows.push((
            name,
            one,
            two,
            one - no_books,
            locked - one,
            broken_down - one,
            one + programs * entry,
        ));
    }
    let show = |ns: f64| format!("{ns:.0}");
    let head = [
        "ns a request",
        "one thread",
        "two threads at once, each",
        "of that phases",
        "locked additions would add",
        "a break-down adds",
        "with the entries into its programs",
    ];
    let (left, between, right) = if markdown {
        ("| ", " | ", " |")
    } else {
        ("", "  ", "")
    };
    println!("{left}{}{right}", head.join(between));
    if markdown {
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    }
    for (name, one, two, phases, locked, broken_down, all) in rows {
        let two = two.map_or("one core".to_owned(), show);
        let cells = [
            name.to_owned(),
            show(one),
            two,
            show(phases),
            show(locked),
            show(broken_down),
            show(all),
        ];
        println!("{left}{}{right}", cells.join(between));
    }
    println!("\nThe kernel's entry into a program takes {entry:.0} ns here. CPUs {cpus:?}.");
    Ok(())
}

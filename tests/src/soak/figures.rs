//! Figures that may not grow: of the agent's two processes, and of the kernel.

use anyhow::{Context, Result, ensure};

use crate::agent::Agent;
use crate::server::Server;

/// Quantity that is to be flat.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Name of the quantity in the table.
    pub name: &'static str,
    /// Unit of the quantity.
    pub unit: &'static str,
    /// Growth that is allowed: this fraction of the quantity, or a number of `units` if that is more.
    pub part: f64,
    pub units: f64,
    /// True if its growth is a failure; else it is only reported.
    pub judged: bool,
    /// True for quantities of `nfscope-http`, which is killed now and then and begins anew.
    pub of_http: bool,
}

const fn flat(name: &'static str, unit: &'static str, part: f64, units: f64) -> Quantity {
    Quantity {
        name,
        unit,
        part,
        units,
        judged: true,
        of_http: false,
    }
}

const fn flat_http(name: &'static str, unit: &'static str, part: f64, units: f64) -> Quantity {
    Quantity {
        of_http: true,
        ..flat(name, unit, part, units)
    }
}

/// Every quantity, in the order of [`Figures`].
pub const QUANTITIES: [Quantity; 13] = [
    flat("main process, resident", "KiB", 0.03, 256.0),
    flat("main process, anonymous", "KiB", 0.05, 256.0),
    flat("main process, descriptors", "", 0.0, 0.0),
    // A thread for blocking calls comes and goes.
    flat("main process, threads", "", 0.0, 1.0),
    flat_http("nfscope-http, resident", "KiB", 0.03, 256.0),
    flat_http("nfscope-http, anonymous", "KiB", 0.05, 256.0),
    flat_http("nfscope-http, descriptors", "", 0.0, 2.0),
    flat("BPF maps and programs", "KiB", 0.0, 64.0),
    flat("BPF objects", "", 0.0, 0.0),
    flat("per-CPU memory of the kernel", "KiB", 0.02, 256.0),
    flat("slab that cannot be reclaimed", "KiB", 0.05, 1024.0),
    flat("samples in /metrics", "", 0.03, 20.0),
    Quantity {
        judged: false,
        ..flat("slab that can be reclaimed", "KiB", 0.0, 0.0)
    },
];

/// Reading of all quantities.
pub type Figures = [f64; QUANTITIES.len()];

/// Script that prints a line of numbers; `$main` is the agent's process id. It first makes the kernel drop memory that it may drop at
/// once: caches, and entries of each address that ever connected. The kernel keeps TCP's metrics until they are flushed, and access
/// rights for half an hour.
const SCRIPT: &str = r#"
http=$(pgrep -x nfscope-http | head -n 1)
[ -n "$main" ] && [ -n "$http" ] || { echo "one of the processes is gone" >&2; exit 1; }
set -e
ip tcp_metrics flush
date +%s >/proc/net/rpc/auth.unix.ip/flush
echo 2 >/proc/sys/vm/drop_caches
for cache in /sys/kernel/slab/*/shrink; do echo 1 >$cache; done
set +e
of() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
fds() { ls "/proc/$1/fd" | wc -l; }
# A map or a program may have several descriptors; a link names its program as well. Others close while they are listed.
bpf=$(cat "/proc/$main/fdinfo/"* 2>/dev/null | awk '/^pos:/ { kept = "" } /^memlock:/ { kept = $2 } /^(map|prog)_id:/ && kept != "" { seen[$1 $2] = kept } END { for (id in seen) { n++; sum += seen[id] } print int(sum / 1024), n + 0 }')
# Seconds since it was started: field 22 of its stat, the 20th after its name.
age() { awk -v up="$(cut -d' ' -f1 /proc/uptime)" -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(up - $20 / ticks) }' "/proc/$1/stat"; }
memory() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }
echo $(of $main VmRSS) $(of $main RssAnon) $(fds $main) $(ls /proc/$main/task | wc -l) $(of $http VmRSS) $(of $http RssAnon) $(fds $http) $bpf $(memory Percpu) $(memory SUnreclaim) $(memory SReclaimable) $(age $http)
"#;

/// Reads all quantities, in a machine without a load, and the age of `nfscope-http` in seconds. `series` is the number of samples of
/// the exposition.
pub fn read(server: &Server, agent: &Agent, series: u64) -> Result<(Figures, f64)> {
    let script = format!("main=$(pgrep -o -x {})\n{SCRIPT}", agent.process());
    let line = server.sh(&script)?.stdout;
    let mut numbers: Vec<f64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("figures of the machine: {line:?}"))?;
    ensure!(
        numbers.len() == QUANTITIES.len(),
        "the machine has not all figures: {line:?}"
    );
    let age = numbers.pop().context("no age")?;
    let mut figures = Figures::default();
    let before = QUANTITIES.len() - 2;
    figures[..before].copy_from_slice(&numbers[..before]);
    figures[before] = series as f64;
    figures[before + 1] = numbers[before];
    Ok((figures, age))
}

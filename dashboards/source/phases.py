"""Where the time of operations and of requests goes."""

from . import queries as q
from .panels import dashboard, timeseries, variable

CHOSEN = 'version=~"$version",op=~"$op"'
PHASES = "nfscope_op_phase_seconds_total"

# Causes of a rise of each phase.
MEANING = {
    "cpu": "work: encryption, checksums, large directories, or simply more operations",
    "runqueue": "CPUs that other programs use, or too few CPUs",
    "log": "a journal or intent log that is slow, or used too often",
    "disk": "reads that memory does not hold, or writes that must wait for the disk",
    "throttle": "more writes than the disks or the pool store",
    "upcall": "a daemon that answers slowly: rpc.mountd, rpc.idmapd, nfsdcld",
    "recall": "clients that return delegations slowly",
    "reclaim": "too little memory",
    "lock": "other waits: locks, other threads, anything that is not named; nfscope diagnose looks for the cause",
}


def phase(name: str):
    """The operations that spend most time in a phase."""
    chosen = f'{CHOSEN},phase="{name}"'
    return timeseries(
        f"Phase {name}",
        f"Time of operations in the phase {name}, the eight with most; 100 % keeps one thread busy. A rise means {MEANING[name]}.",
        "percentunit", (q.busiest(8, q.rate(PHASES, "version, op", chosen)), "v{{version}} {{op}}"),
    )


DASHBOARD = dashboard(
    "phases",
    "phases",
    "What operations wait for, and where requests spend their time on the server.",
    variables=[variable("version", PHASES), variable("op", PHASES)],
    content=[
        ("sched: where operations' time goes", [
            timeseries(
                "Shares of the chosen operations' time",
                "On a CPU (cpu), waiting for one (runqueue), asleep until the log is durable (log), for other disk I/O "
                "(disk), until written data is stored (throttle), a daemon answers (upcall), a delegation is returned (recall) or "
                "memory is free (reclaim), for anything else (lock: other waits). They add up to the duration; the one that rises is the cause.",
                "percentunit", (q.share(PHASES, "phase", CHOSEN), "{{phase}}"), stacked=True, top=1,
            ),
            timeseries(
                "Time of the chosen operations",
                "The same in threads: 100 % keeps one thread busy. Where it rises to the number of threads, requests queue.",
                "percentunit", (q.rate(PHASES, "phase", CHOSEN), "{{phase}}"), stacked=True,
            ),
            *(phase(name) for name in MEANING),
            timeseries(
                "CPUs in use",
                "Share of the time of all CPUs of the host, used by any program. Near 100 % threads wait for a CPU: see the phase runqueue.",
                "percentunit",
                (
                    f"1 - {q.rate('nfscope_cpu_idle_seconds_total', 'instance')} / "
                    f"{q.by('instance', q.of('nfscope_cpus'))}",
                    "{{instance}}",
                ),
                top=1,
            ),
        ]),
        ("nfsd: where requests' time goes", [
            timeseries(
                "Shares of the requests' time",
                "Waiting for a thread (queue), being read and checked (receive), executing, replying. Where the queue rises, "
                "look at the threads; where the reply rises, at clients and network.",
                "percentunit", (q.share("nfscope_rpc_phase_seconds_total", "phase"), "{{phase}}"), stacked=True, top=1,
            ),
            timeseries(
                "Time of requests by version and phase",
                "The same in requests: 100 % is one request on the server at any moment. A rise is more demand or slower answers.",
                "percentunit",
                (q.rate("nfscope_rpc_phase_seconds_total", "version, phase"), "v{{version}} {{phase}}"), stacked=True,
            ),
        ]),
    ],
)

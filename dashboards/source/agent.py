"""nfscope itself: whether its figures can be trusted, and what they cost."""

from . import queries as q
from .panels import dashboard, table, timeseries

DASHBOARD = dashboard(
    "agent",
    "nfscope itself",
    "What is measured and what is not, what was lost, and what measuring costs.",
    content=[
        ("nfscope: what is measured", [
            timeseries(
                "Coverage",
                "What nfscope counted over what the kernel counted: operations, RPC calls, bytes. 1 is exact; where it falls, "
                "the other figures are incomplete.",
                "percentunit",
                (q.coverage("ops", "instance, version"), "{{instance}} v{{version}} operations"),
                (q.coverage("rpcs", "instance"), "{{instance}} RPC calls"),
                (q.coverage("io_bytes", "instance, op"), "{{instance}} bytes of {{op}}"),
                top=1,
            ),
            timeseries(
                "Lost events",
                "Events that a probe could not measure, or only in part, a second; docs/metrics.md explains the reasons. A few are "
                "normal under load; a rise beside a falling coverage is not.",
                "ops", (q.rate("nfscope_events_lost_total", "instance, probe, reason"), "{{instance}} {{probe}} {{reason}}"),
            ),
            table(
                "Programs",
                "Each probe program: 1 where it is attached, 0 where it is not; nfscope check on that server gives the reason. "
                "A program that turns to 0 takes its series away.",
                "short",
                [("attached", "short", q.by("instance, probe, program", q.of("nfscope_probe_attached"), "min"))],
            ),
            table(
                "Builds",
                "What runs on each server. Two rows that stay mean servers of different versions.",
                "short", [("running", "short", q.by("instance, version, revision", q.of("nfscope_build_info")))],
            ),
        ]),
        ("nfscope: what it costs", [
            timeseries(
                "Map fill",
                "Entries over capacity of each BPF map that can fill. Near 1, new devices, volumes or datasets are not measured individually.",
                "percentunit",
                (f"{q.by('instance, map', q.of('nfscope_map_entries'))} / {q.by('instance, map', q.of('nfscope_map_capacity'))}",
                 "{{instance}} {{map}}"), top=1,
            ),
            timeseries(
                "Kernel memory",
                "Kernel memory of each probe's maps and programs. It rises with the CPUs that the host may have up to 64, and when a "
                "probe attaches.",
                "bytes", (q.by("instance, probe", q.of("nfscope_kernel_memory_bytes")), "{{instance}} {{probe}}"), stacked=True,
            ),
            timeseries(
                "Reading time",
                "Time that reading the probes took for a scrape. It rises with clients, exports, devices and volumes.",
                "s", (q.by("instance", q.of("nfscope_scrape_seconds")), "{{instance}}"),
            ),
            timeseries(
                "Memory of the agent",
                "What of the agent's memory is in use, and its address space. A rise that does not end is a leak.",
                "bytes",
                (q.by("instance", q.of("process_resident_memory_bytes")), "{{instance}} resident"),
                (q.by("instance", q.of("process_virtual_memory_bytes")), "{{instance}} virtual"),
            ),
            timeseries(
                "CPU time of the agent",
                "CPU time of all threads of the agent, in CPUs. It rises with scrapes, clients, exports, devices and volumes.",
                "percentunit", (q.rate("process_cpu_seconds_total", "instance"), "{{instance}}"),
            ),
            timeseries(
                "File descriptors",
                "Descriptors that the agent has open, and the most that it may have. Connections take what probes leave; near the "
                "limit the oldest connections are closed.",
                "short",
                (q.by("instance", q.of("process_open_fds")), "{{instance}} open"),
                (q.by("instance", q.of("process_max_fds")), "{{instance}} limit"),
            ),
            timeseries(
                "Running since",
                "Time since the agent started. A fall is a restart: all counters began anew.",
                "s", (f"time() - {q.by('instance', q.of('process_start_time_seconds'))}", "{{instance}}"),
            ),
            timeseries(
                "CPU time of the probes",
                "Time inside the probe programs, in CPUs; only while the host keeps BPF run-time statistics "
                "(sysctl kernel.bpf_stats_enabled=1). It rises with operations and, for sched, with context switches.",
                "percentunit", (q.rate("nfscope_probe_run_seconds_total", "instance, probe"), "{{instance}} {{probe}}"), stacked=True,
            ),
            timeseries(
                "Time of one run",
                "Average time of one run of a probe's programs, under the same condition. It rises where CPUs are "
                "slowed down, or shared.",
                "s",
                (
                    f"{q.rate('nfscope_probe_run_seconds_total', 'instance, probe')} / "
                    f"{q.rate('nfscope_probe_runs_total', 'instance, probe')}",
                    "{{instance}} {{probe}}",
                ),
            ),
        ]),
    ],
)

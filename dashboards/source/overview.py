"""The first dashboard: is there a bottleneck, and which of the other dashboards has more."""

from . import queries as q
from .panels import dashboard, stat, state_timeline, table, timeseries

DASHBOARD = dashboard(
    "overview",
    "overview",
    "Whether the NFS server has a bottleneck, and its load, latency and errors.",
    content=[
        ("nfscope: findings", [
            state_timeline(
                "Findings",
                "Each kind of finding: red while it is active. The name of a red bar is a section of docs/findings.md.",
                (q.by("instance, kind", q.of("nfscope_bottleneck_active"), "max"), "{{instance}} {{kind}}"),
                off="no", on="active",
            ),
            table(
                "Active findings",
                "What the agent says of each active finding: severity, device, client with the most time, figure, and first action. "
                "Empty while there is none. Figures are of the finding's begin.",
                "short",
                [("active", "short", q.by("instance, kind, severity, device, client, text, action", q.of("nfscope_finding_info"), "max"))],
            ),
            timeseries(
                "What the causes explain",
                "Share of request time in the server that each cause explains. A cause that rises to 25 % and stays there "
                "becomes a finding.",
                "percentunit",
                (q.by("kind", q.of("nfscope_bottleneck_score_ratio"), "max"), "{{kind}}"),
                width=24,
            ),
        ]),
        ("nfsd: requests", [
            stat(
                "Operations", "NFSv3 procedures and NFSv4 component operations a second. Where it rises, so does the demand.",
                "ops", q.count("nfscope_op_duration_seconds"),
            ),
            stat(
                "Residence p99",
                "99 of 100 requests stay on the server for less than this, from their arrival to their reply; the slowest of the "
                "chosen servers. Where it rises, "
                "clients wait longer; the panels below say for what.",
                "s", q.worst_quantile(0.99, "nfscope_rpc_duration_seconds"),
            ),
            stat(
                "Queue p99",
                "99 of 100 requests get a thread within this time, on the slowest of the chosen servers. Where it rises, all threads are busy: with work, or waiting.",
                "s", q.worst_quantile(0.99, "nfscope_rpc_queue_seconds"), limits=(0.01, 0.1),
            ),
            stat(
                "Thread utilization",
                "Share of the nfsd threads' time in which they execute a request, of the busiest server. Near 1 requests queue.",
                "percentunit",
                q.by("", f"{q.rate('nfscope_thread_busy_seconds_total', 'instance')} / "
                         f"{q.by('instance', q.of('nfscope_threads'))}", "max"),
                limits=(0.8, 0.95),
            ),
            stat(
                "Errors", "Operations that answered with a status other than OK. Some are normal (noent); see operations.",
                "ops", q.rate("nfscope_op_errors_total"),
            ),
            stat(
                "Coverage",
                "Operations that were timed over operations that the kernel counted. 1 is exact; below 1 the other figures "
                "are incomplete.",
                "percentunit", q.by("", q.coverage("ops", "instance, version"), "min"), limits=(0.999, 0.99), rising=False,
            ),
            timeseries(
                "Operations by version", "Operations a second by NFS version. A rise is more demand.",
                "ops", (q.count("nfscope_op_duration_seconds", "version"), "v{{version}}"), stacked=True,
            ),
            timeseries(
                "Residence",
                "Time that requests stay on each server. Where p99 rises and p50 does not, only some requests wait.",
                "s",
                (q.quantile(0.5, "nfscope_rpc_duration_seconds", "instance"), "{{instance}} p50"),
                (q.quantile(0.99, "nfscope_rpc_duration_seconds", "instance"), "{{instance}} p99"),
            ),
            timeseries(
                "Residence by phase",
                "Where requests spend their time on the server, as shares: waiting for a thread (queue), being read (receive), "
                "executing, replying. Where the queue rises, there are too few threads, or threads wait; where the reply "
                "rises, clients or the network read slowly.",
                "percentunit",
                (q.share("nfscope_rpc_phase_seconds_total", "phase"), "{{phase}}"), stacked=True, top=1,
            ),
        ]),
        ("sched: where operations' time goes", [
            timeseries(
                "Operations by phase",
                "What the threads do in operations, as shares: on a CPU (cpu), waiting for one (runqueue), for the log, "
                "for other disk I/O (disk), for anything else (lock: other waits). The phase that rises is where to look.",
                "percentunit",
                (q.share("nfscope_op_phase_seconds_total", "phase"), "{{phase}}"), stacked=True, top=1,
            ),
        ]),
        ("jbd2, xfs, btrfs, zfs: logs", [
            timeseries(
                "Log wait p99",
                "99 of 100 waits of a thread for the journal or intent log are shorter. Where it rises, synchronous writes, "
                "creates and removes become slower.",
                "s",
                (q.quantile(0.99, "nfscope_log_wait_seconds", "instance, fs, volume"), "{{instance}} {{fs}} {{volume}}"),
            ),
        ]),
        ("block: disks", [
            timeseries(
                "Device time",
                "99 of 100 requests to a disk are done in less than p99, and the average. Where they "
                "rise without more demand, the disk itself is slow.",
                "s",
                (q.quantile(0.99, "nfscope_block_device_seconds", "instance, device, op"), "{{instance}} {{device}} {{op}} p99"),
                (q.mean("nfscope_block_device_seconds", "instance, device, op"), "{{instance}} {{device}} {{op}} mean"),
            ),
        ]),
    ],
)

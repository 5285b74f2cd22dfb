"""Recorded series: each server has the same ones, however its histograms are stored and whichever engine keeps them.

A rule is written once. `Engine.PROMETHEUS` takes the native histogram of a series, or its classic one where there is no native
one: `or` between series that have every label, never between sums, which would drop servers. `Engine.CLASSIC` is for engines
without native histograms, VictoriaMetrics for example, whose parsers refuse what asks for them.

Names are level:metric:operations. The level names the labels that tell series apart, but cluster and job, which each has.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

WINDOW = "5m"
SERVER = "cluster, job, instance"


class Engine(enum.Enum):
    """What evaluates the rules."""

    PROMETHEUS = "prometheus"
    CLASSIC = "victoriametrics"


@dataclass(frozen=True)
class Rule:
    """A recorded series: its name, what it is made of, and why it is there."""

    name: str
    expr: str
    why: str = ""
    labels: tuple[tuple[str, str], ...] = ()


# Labels of each histogram, and the histograms with classic buckets; filled from the metric table.
HISTOGRAMS: dict[str, list[str]] = {}
# Parts that dashboards have asked for.
_asked: set[tuple[str, str]] = set()


def level(labels: list[str]) -> str:
    """The first part of a name."""
    return "_".join(["instance", *labels])


def part(metric: str, what: str) -> str:
    """The recorded series of a histogram's count or sum in a second."""
    _asked.add((metric, what))
    return f"{level(HISTOGRAMS[metric])}:{metric}_{what}:rate{WINDOW}"


def p99(metric: str) -> str:
    """The recorded 99th percentile of each series of a histogram."""
    return f"{level(HISTOGRAMS[metric])}:{metric}:p99_{WINDOW}"


def parts(engine: Engine) -> list[Rule]:
    """Counts and sums of histograms, for whatever dashboards and other rules have asked."""
    rules = []
    for metric in HISTOGRAMS:
        for what in ("count", "sum"):
            if (metric, what) in _asked:
                classic = f"rate({metric}_{what}[{WINDOW}])"
                native = f"histogram_{what}(rate({metric}[{WINDOW}]))"
                expr = classic if engine is Engine.CLASSIC else f"{native}\nor {classic}"
                rules.append(Rule(part(metric, what), expr))
    return rules


def _p99(engine: Engine, metric: str, labels: str | None = None) -> str:
    """Of each series, or of the sums by these labels."""

    def one(series: str, extra: str) -> str:
        rate = f"rate({series}[{WINDOW}])"
        return f"histogram_quantile(0.99, {f'sum by ({labels}{extra}) ({rate})' if labels else rate})"

    classic = one(f"{metric}_bucket", ", le")
    return classic if engine is Engine.CLASSIC else f"{one(metric, '')}\nor {classic}"


# Histograms whose 99th percentile is recorded by all their labels, for pages over many servers and for alerts of users.
QUANTILES = ["nfscope_op_duration_seconds", "nfscope_rpc_queue_seconds", "nfscope_log_wait_seconds"]


def quantiles(engine: Engine) -> list[Rule]:
    """99th percentiles."""
    rules = [Rule(p99(metric), _p99(engine, metric)) for metric in QUANTILES]
    residence = "nfscope_rpc_duration_seconds"
    rules.append(Rule(f"instance:{residence}:p99_{WINDOW}", _p99(engine, residence, SERVER)))
    return rules


def _ratio(labels: str, over: str, under: str, window: str = WINDOW, positive: bool = False) -> str:
    below = f"sum by ({labels}) (rate({under}[{window}]))"
    return f"sum by ({labels}) (rate({over}[{window}]))\n/ {f'({below} > 0)' if positive else below}"


def _share(metric: str) -> str:
    return (
        f"sum by ({SERVER}, phase) (rate({metric}[{WINDOW}]))\n"
        f"/ on ({SERVER}) group_left ()\n"
        f"sum by ({SERVER}) (rate({metric}[{WINDOW}]))"
    )


def plain() -> list[Rule]:
    """What needs no histograms, and is the same in every engine."""
    return [
        Rule(
            "instance_version:nfscope_ops_coverage:ratio_rate10m",
            _ratio(f"{SERVER}, version", "nfscope_timed_ops_total", "nfscope_kernel_ops_total", "10m", True),
            "What nfscope counted of what the kernel counted: 1 is exact.",
        ),
        Rule(
            "instance:nfscope_rpcs_coverage:ratio_rate10m",
            _ratio(SERVER, "nfscope_timed_rpcs_total", "nfscope_kernel_rpcs_total", "10m", True),
        ),
        Rule(
            "instance_op:nfscope_io_coverage:ratio_rate10m",
            _ratio(f"{SERVER}, op", "nfscope_timed_io_bytes_total", "nfscope_kernel_io_bytes_total", "10m", True),
        ),
        Rule(
            "instance_pool:nfscope_thread_utilization:ratio_rate5m",
            f"sum by ({SERVER}, pool) (rate(nfscope_thread_busy_seconds_total[{WINDOW}]))\n"
            f"/ sum by ({SERVER}, pool) (nfscope_threads)",
            "Share of the threads' time with a request in hand.",
        ),
        Rule(
            "instance_phase:nfscope_op_phase_seconds:share_rate5m",
            _share("nfscope_op_phase_seconds_total"),
            "Where the time of operations goes, and where that of requests.",
        ),
        Rule("instance_phase:nfscope_rpc_phase_seconds:share_rate5m", _share("nfscope_rpc_phase_seconds_total")),
    ]


OPERATIONS = "instance:nfscope_operations:rate5m"
THREADS = "instance:nfscope_thread_utilization:max_ratio_rate5m"
SATURATED = "instance:nfscope_threads_saturated:max_rate5m"
CPUS = "instance:nfscope_cpu_utilization:ratio_rate5m"
DISKS = "instance:nfscope_block_busy:max_rate5m"
SATURATION = "instance:nfscope_saturation:max_rate5m"
FINDINGS = "instance:nfscope_findings:count"
ANSWERS = "instance:nfscope_up:max"
RESIDENCE = "instance:nfscope_rpc_duration_seconds:mean_1h"
RESIDENCE_P99 = f"instance:nfscope_rpc_duration_seconds:p99_{WINDOW}"
OPERATION_MEAN = "instance_version_op:nfscope_op_duration_seconds:mean_1h"


def _mean_1h(metric: str, labels: str) -> str:
    over, under = part(metric, "sum"), part(metric, "count")
    return f"sum by ({labels}) (avg_over_time({over}[1h]))\n/ (sum by ({labels}) (avg_over_time({under}[1h])) > 0)"


def of_servers() -> list[Rule]:
    """One series a server: what the fleet page and `nfscope fleet` sort servers by."""
    duration = "nfscope_op_duration_seconds"
    saturation = [
        f'label_replace({THREADS}, "resource", "threads", "", "")',
        f'label_replace({CPUS}, "resource", "CPUs", "", "")',
        f'label_replace({DISKS}, "resource", "disk", "", "")',
    ]
    return [
        Rule(OPERATIONS, f"sum by ({SERVER}) ({part(duration, 'count')})"),
        Rule(
            ANSWERS,
            f"max by ({SERVER}) (\n  up and on (cluster, job) nfscope_build_info\n  or up{{job=\"nfscope\"}}\n)",
            "1 where the agent answers, 0 where not: the targets of jobs in which an agent answers, and those of the job nfscope.",
        ),
        Rule(
            FINDINGS,
            f"sum by ({SERVER}) (nfscope_bottleneck_active)",
            "How many findings are active.",
        ),
        Rule(
            THREADS,
            f"max by ({SERVER}) (instance_pool:nfscope_thread_utilization:ratio_rate5m)",
            "How full a server is: its fullest pool of threads, its CPUs, its busiest disk below an export, and the fullest of these.",
        ),
        Rule(SATURATED, f"max by ({SERVER}) (rate(nfscope_threads_saturated_seconds_total[{WINDOW}]))"),
        Rule(
            CPUS,
            # The offset leaves out a server that just appeared: it has too little idle time in the window, and would look busy.
            f"(\n  1 - sum by ({SERVER}) (rate(nfscope_cpu_idle_seconds_total[{WINDOW}]))\n  / sum by ({SERVER}) (nfscope_cpus)\n)\n"
            f"and on ({SERVER}) nfscope_cpus offset 4m",
        ),
        Rule(
            DISKS,
            f"max by ({SERVER}) (\n  rate(nfscope_block_busy_seconds_total[{WINDOW}])\n"
            f"  and on ({SERVER}, device) nfscope_export_device_info\n)",
        ),
        Rule(SATURATION, f"max by ({SERVER}) (\n  " + "\n  or ".join(saturation) + "\n)"),
        Rule(
            RESIDENCE,
            _mean_1h("nfscope_rpc_duration_seconds", SERVER),
            "Compared with a week ago: means of an hour, which a burst hardly moves.",
        ),
        Rule(OPERATION_MEAN, _mean_1h(duration, f"{SERVER}, version, op")),
    ]


def groups(engine: Engine) -> list[tuple[str, list[Rule]]]:
    """Every recorded series, in groups that are evaluated in their order. A rule sees what those before it in its group have."""
    servers = of_servers()
    return [
        ("nfscope-histograms", [*parts(engine), *quantiles(engine)]),
        ("nfscope-ratios", plain()),
        ("nfscope-servers", servers),
    ]

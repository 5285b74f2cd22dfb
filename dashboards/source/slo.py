"""Objectives: sloth's specification (prometheus/v1) as recording rules and alerts in sloth's form.

What each objective costs is small, because its query asks recorded series: one a server and objective.
"""

import json
import re
from dataclasses import dataclass

from .recorded import SERVER, WINDOW, Engine

# Window that is always recorded: the period and the present rate are computed from it.
SHORTEST = "5m"
DURATION = "nfscope_op_duration_seconds"
# Least rate of operations: with fewer in the window a single slow one would decide the p99, so the minute does not count.
ENOUGH = "100 / 300"
WITHIN = f"instance_op:{DURATION}_within:ratio_rate{WINDOW}"
ON = "on (sloth_id, sloth_slo, sloth_service) group_left ()"


def _minutes(window: str) -> int:
    """A duration of one unit, as Prometheus writes it."""
    found = re.fullmatch(r"(\d+)([mhdw])", window)
    if not found or int(found[1]) == 0:
        raise SystemExit(f"error: dashboards/slo.yml: {window!r} is no duration\n  fix: write a number and m, h, d or w: 30m")
    return int(found[1]) * {"m": 1, "h": 60, "d": 1440, "w": 10080}[found[2]]


@dataclass(frozen=True)
class Windows:
    """The period of objectives, and of each kind of alert the pairs of which one must hold: factor, short and long window."""

    period: str
    pairs: dict[str, list[tuple[float, str, str]]]

    @staticmethod
    def of(spec: dict) -> "Windows":
        """What alert_windows has."""
        given = spec["alert_windows"]
        period = given["sloPeriod"]
        pairs: dict[str, list[tuple[float, str, str]]] = {}
        for kind in ("page", "ticket"):
            for speed in ("quick", "slow"):
                one = given[kind][speed]
                short, long = one["shortWindow"], one["longWindow"]
                if not _minutes(short) < _minutes(long) < _minutes(period):
                    raise SystemExit(
                        f"error: dashboards/slo.yml: {kind} {speed}: {short}, {long} and {period} do not rise\n"
                        "  fix: write shortWindow < longWindow < sloPeriod"
                    )
                factor = one["errorBudgetPercent"] / 100 * _minutes(period) / _minutes(long)
                pairs.setdefault(kind, []).append((factor, short, long))
        return Windows(period, pairs)

    def all(self) -> list[str]:
        """Every window that is asked for, the shortest first."""
        asked = {w for pairs in self.pairs.values() for _, short, long in pairs for w in (short, long)}
        return sorted(asked | {SHORTEST}, key=_minutes)

    def days(self) -> str:
        return f"{_minutes(self.period) / 1440:.12g}"


def groups(spec: dict, engine: Engine) -> list[dict]:
    """Groups of rules of every objective."""
    if spec.get("version") != "prometheus/v1":
        raise SystemExit('error: dashboards/slo.yml: version is not "prometheus/v1"\n  fix: write version: prometheus/v1')
    out = [{"name": "nfscope-within", "rules": within(spec, engine)}]
    windows = Windows.of(spec)
    for slo in spec["slos"]:
        out += _objective(spec["service"], slo, windows)
    return out


def within(spec: dict, engine: Engine) -> list[dict]:
    """The share of an operation that took at most so long, for each pair of operation and edge that an objective asks for.

    Servers with fewer than 100 such operations in 5 minutes have none.
    """
    asked = sorted(set(re.findall(rf'{WITHIN}\{{op="(\w+)",le="([\d.]+)"\}}', json.dumps(spec).replace('\\"', '"'))))
    rules = []
    for op, le in asked:
        counted = f'{DURATION}_bucket{{op="{op}",le="{le}"}}'
        classic = (
            f"sum by ({SERVER}, op) (rate({counted}[{WINDOW}]))\n"
            f'/ (sum by ({SERVER}, op) (rate({DURATION}_count{{op="{op}"}}[{WINDOW}])) >= {ENOUGH})'
        )
        rate = f'sum by ({SERVER}, op) (rate({DURATION}{{op="{op}"}}[{WINDOW}]))'
        native = f"(\n  histogram_fraction(0, {le}, {rate})\n  and histogram_count({rate}) >= {ENOUGH}\n)"
        expr = classic if engine is Engine.CLASSIC else f"{classic}\nor {native}"
        rules.append({"record": WITHIN, "expr": expr, "labels": {"le": le}})
    return rules


def _objective(service: str, slo: dict, windows: Windows) -> list[dict]:
    name = f"{service}-{slo['name']}"
    ids = {"sloth_id": name, "sloth_service": service, "sloth_slo": slo["name"]}
    chosen = "{" + ", ".join(f'{k}="{v}"' for k, v in ids.items()) + "}"
    budget = f"{(100 - slo['objective']) / 100:.12g}"
    recordings = [
        {
            "record": f"slo:sli_error:ratio_rate{window}",
            "expr": _ratio(slo["sli"], window),
            "labels": {**ids, "sloth_window": window},
        }
        for window in windows.all()
    ]
    period, now = windows.period, f"slo:sli_error:ratio_rate{SHORTEST}{chosen}"
    recordings.append({
        "record": f"slo:sli_error:ratio_rate{period}",
        "expr": f"sum_over_time({now}[{period}])\n/ ignoring (sloth_window)\ncount_over_time({now}[{period}])",
        "labels": {**ids, "sloth_window": period},
    })
    meta = [
        ("slo:objective:ratio", f"vector({slo['objective'] / 100:.12g})"),
        ("slo:error_budget:ratio", f"vector({budget})"),
        ("slo:time_period:days", f"vector({windows.days()})"),
        ("slo:current_burn_rate:ratio", f"{now}\n/ {ON}\nslo:error_budget:ratio{chosen}"),
        ("slo:period_burn_rate:ratio", f"slo:sli_error:ratio_rate{period}{chosen}\n/ {ON}\nslo:error_budget:ratio{chosen}"),
        ("slo:period_error_budget_remaining:ratio", f"1 - slo:period_burn_rate:ratio{chosen}"),
    ]
    # The period is computed over its whole length, and changes slowly.
    return [
        {"name": f"sloth-slo-sli-recordings-{name}", "interval": "1m", "rules": recordings},
        {
            "name": f"sloth-slo-meta-recordings-{name}",
            "interval": "1m",
            "rules": [{"record": record, "expr": expr, "labels": ids} for record, expr in meta],
        },
        {"name": f"sloth-slo-alerts-{name}", "rules": _alerts(slo, chosen, budget, windows)},
    ]


def _ratio(sli: dict, window: str) -> str:
    if "raw" in sli:
        query = sli["raw"]["error_ratio_query"]
    else:
        query = f"({sli['events']['error_query']})\n/\n({sli['events']['total_query']})"
    return query.replace("{{.window}}", window).strip()


def _alerts(slo: dict, chosen: str, budget: str, windows: Windows) -> list[dict]:
    alerting = slo["alerting"]
    rules = []
    for kind, pairs in windows.pairs.items():
        own = alerting.get(f"{kind}_alert", {})
        if own.get("disable"):
            continue
        # The value of the alert is the burn rate in the short window: how many times as fast as allowed the error budget is used.
        arms = [
            "(\n"
            f"  max by ({SERVER}) (slo:sli_error:ratio_rate{short}{chosen}) / {budget} > {factor:g}\n"
            f"  and on ({SERVER})\n"
            f"  max by ({SERVER}) (slo:sli_error:ratio_rate{long}{chosen}) / {budget} > {factor:g}\n"
            ")"
            for factor, short, long in pairs
        ]
        rules.append({
            "alert": alerting["name"],
            "expr": "\nor\n".join(arms),
            "labels": {**alerting.get("labels", {}), "sloth_severity": kind, **own.get("labels", {})},
            "annotations": {**alerting.get("annotations", {}), **own.get("annotations", {})},
        })
    return rules

"""Objectives: sloth's specification (prometheus/v1) as recording rules and alerts in sloth's form.

What each objective costs is small, because its query asks recorded series: one a server and objective.
"""

import json
import re

from .recorded import SERVER, WINDOW, Engine

WINDOWS = ["5m", "30m", "1h", "2h", "6h", "1d", "3d"]
PERIOD_DAYS = 30
# Factor of the burn rate, short and long window; the two of each pair are joined by `or`.
PAGE = [(14.4, "5m", "1h"), (6, "30m", "6h")]
TICKET = [(3, "2h", "1d"), (1, "6h", "3d")]
DURATION = "nfscope_op_duration_seconds"
# One slow operation of a few is no p99: fewer in the window are no minute of an objective.
ENOUGH = "100 / 300"
WITHIN = f"instance_op:{DURATION}_within:ratio_rate{WINDOW}"
ON = "on (sloth_id, sloth_slo, sloth_service) group_left ()"


def groups(spec: dict, engine: Engine) -> list[dict]:
    """Groups of rules of every objective."""
    if spec.get("version") != "prometheus/v1":
        raise SystemExit('error: dashboards/slo.yml: version is not "prometheus/v1"\n  fix: write version: prometheus/v1')
    out = [{"name": "nfscope-within", "rules": within(spec, engine)}]
    for slo in spec["slos"]:
        out += _objective(spec["service"], slo)
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


def _objective(service: str, slo: dict) -> list[dict]:
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
        for window in WINDOWS
    ]
    recordings.append({
        "record": f"slo:sli_error:ratio_rate{PERIOD_DAYS}d",
        "expr": f"sum_over_time(slo:sli_error:ratio_rate5m{chosen}[{PERIOD_DAYS}d])\n/ ignoring (sloth_window)\n"
                f"count_over_time(slo:sli_error:ratio_rate5m{chosen}[{PERIOD_DAYS}d])",
        "labels": {**ids, "sloth_window": f"{PERIOD_DAYS}d"},
    })
    meta = [
        ("slo:objective:ratio", f"vector({slo['objective'] / 100:.12g})"),
        ("slo:error_budget:ratio", f"vector({budget})"),
        ("slo:time_period:days", f"vector({PERIOD_DAYS})"),
        ("slo:current_burn_rate:ratio", f"slo:sli_error:ratio_rate5m{chosen}\n/ {ON}\nslo:error_budget:ratio{chosen}"),
        ("slo:period_burn_rate:ratio", f"slo:sli_error:ratio_rate{PERIOD_DAYS}d{chosen}\n/ {ON}\nslo:error_budget:ratio{chosen}"),
        ("slo:period_error_budget_remaining:ratio", f"1 - slo:period_burn_rate:ratio{chosen}"),
    ]
    # The 30 days need a look at all of them, and change slowly.
    return [
        {"name": f"sloth-slo-sli-recordings-{name}", "interval": "1m", "rules": recordings},
        {
            "name": f"sloth-slo-meta-recordings-{name}",
            "interval": "1m",
            "rules": [{"record": record, "expr": expr, "labels": ids} for record, expr in meta],
        },
        {"name": f"sloth-slo-alerts-{name}", "rules": _alerts(slo, chosen, budget)},
    ]


def _ratio(sli: dict, window: str) -> str:
    if "raw" in sli:
        query = sli["raw"]["error_ratio_query"]
    else:
        query = f"({sli['events']['error_query']})\n/\n({sli['events']['total_query']})"
    return query.replace("{{.window}}", window).strip()


def _alerts(slo: dict, chosen: str, budget: str) -> list[dict]:
    alerting = slo["alerting"]
    rules = []
    for kind, pairs in (("page", PAGE), ("ticket", TICKET)):
        own = alerting.get(f"{kind}_alert", {})
        if own.get("disable"):
            continue
        # The value is how many times as fast as allowed the allowance goes, in the short window.
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

"""Rule files as text: recording rules for each engine, and alerts."""

from . import recorded, slo
from .recorded import Engine, Rule

RECORDING = {
    Engine.PROMETHEUS: [
        "A server's histograms are native ones or, where it has none, classic ones: the recorded series are the same.",
    ],
    Engine.CLASSIC: [
        "For engines without native histograms, VictoriaMetrics for example: of classic histograms alone.",
        "Recorded series have the names that they have in Prometheus.",
    ],
}
MADE = "Made by dashboards/generate.py from dashboards/source/recorded.py."
TOKEN = "$EVIDENCE"
# Evidence of a finding, asked for in a template: sentence, and first action of the advice.
EVIDENCE = (
    '{{- with printf "nfscope_finding_info{cluster=%q,job=%q,instance=%q,kind=%q}" '
    "$labels.cluster $labels.job $labels.instance $labels.kind | query }}\n"
    'The agent says: {{ . | first | label "text" }}.\n'
    '{{- with . | first | label "action" }} First action: {{ . }}.{{ end }}{{ end }}'
)
OBJECTIVES = ["Made by dashboards/generate.py from dashboards/slo.yml: the form is that of sloth."]


def files(spec: dict, alerts: str, config: dict) -> dict[str, str]:
    """Every rule file, by its path below rules/."""
    out = {"alerts.yml": _absolute(_generated(alerts), config)}
    for engine, folder in ((Engine.PROMETHEUS, ""), (Engine.CLASSIC, "victoriametrics/")):
        # Objectives come before the other rules, because they ask for recorded parts.
        objectives = slo.groups(spec, engine)
        out[f"{folder}recording.yml"] = text([MADE, *RECORDING[engine]], _groups(recorded.groups(engine)))
        out[f"{folder}slo.yml"] = _absolute(text(OBJECTIVES, objectives), config)
    return out


def _generated(alerts: str) -> str:
    indented = EVIDENCE.replace("\n", "\n" + " " * 12)
    return "# Made by dashboards/generate.py from dashboards/source/alerts.yml.\n" + alerts.replace(f" {TOKEN}\n", f" {indented}\n")


def _absolute(rules: str, config: dict) -> str:
    """Paths of runbooks behind the address that config.json has."""
    return rules.replace("runbook_url: docs/", f"runbook_url: {config['runbooks']}docs/")


def _groups(groups: list[tuple[str, list[Rule]]]) -> list[dict]:
    return [{"name": name, "rules": [_recording(rule) for rule in rules]} for name, rules in groups]


def _recording(rule: Rule) -> dict:
    out = {"#": rule.why} if rule.why else {}
    out |= {"record": rule.name, "expr": rule.expr}
    return out | ({"labels": dict(rule.labels)} if rule.labels else {})


def text(head: list[str], groups: list[dict]) -> str:
    """YAML as one would write it by hand: promtool's own order of fields, expressions as blocks."""
    lines = [f"# {line}" for line in head] + ["groups:"]
    for group in groups:
        lines.append(f"  - name: {group['name']}")
        if "interval" in group:
            lines.append(f"    interval: {group['interval']}")
        lines.append("    rules:")
        for rule in group["rules"]:
            lines += _rule(rule)
    return "\n".join(lines) + "\n"


def _rule(rule: dict) -> list[str]:
    lines = [f"      # {rule['#']}"] if "#" in rule else []
    begin = "      - "
    for field in ("record", "alert", "expr", "for", "labels", "annotations"):
        if field not in rule:
            continue
        value = rule[field]
        if isinstance(value, dict):
            lines.append(f"{begin}{field}:")
            lines += [f"          {name}: {_scalar(v, 10)}" for name, v in value.items()]
        else:
            lines.append(f"{begin}{field}: {_scalar(value, 8)}")
        begin = "        "
    return lines


def _scalar(value: str, indent: int) -> str:
    """A block where it is long or has lines, quotes where YAML would read it as something else."""
    if "\n" in value or len(value) > 100:
        return ">-\n" + "\n".join(" " * (indent + 2) + line for line in value.split("\n"))
    plain = value[:1].isalpha() and not any(c in value for c in "{}#\"'") and ": " not in value and not value.endswith(":")
    return value if plain else "'" + value.replace("'", "''") + "'"

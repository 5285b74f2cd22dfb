"""Writes dashboards and rules: python dashboards/generate.py [DIRECTORY [TABLE [OBJECTIVES]]]

DIRECTORY is dashboards unless given; it gets grafana/ and rules/. TABLE is docs/metrics.md, which names the families that have
to be shown. OBJECTIVES is slo.yml. config.json and source/alerts.yml are read beside this file. The Python that has the libraries is the one
that tests/setup/setup.sh monitoring makes: ~/.cache/nfscope/lab/dashboards/bin/python.
"""

import importlib
import json
import re
import sys
from pathlib import Path

try:
    import yaml
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
except ModuleNotFoundError as missing:
    sys.exit(f"error: this Python has no {missing.name}\n  fix: tests/setup/setup.sh monitoring, then ~/.cache/nfscope/lab/dashboards/bin/python")

from source import others, recorded, rules

DASHBOARDS = ["fleet", "overview", "operations", "phases", "threads", "logs", "disks", "clients", "agent"]


def main() -> None:
    here = Path(__file__).resolve().parent
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    table = Path(sys.argv[2]) if len(sys.argv) > 2 else here.parent / "docs/metrics.md"
    objectives = Path(sys.argv[3]) if len(sys.argv) > 3 else here / "slo.yml"
    config = json.loads((here / "config.json").read_text())
    families = others.families(table)
    # Dashboards use recorded series, whose names have the labels of the metric table.
    recorded.HISTOGRAMS.update({f.name: f.labels for f in families if f.kind == "histogram"})
    modules = [importlib.import_module(f"source.{name}") for name in DASHBOARDS]
    asked = set(re.findall(r"\bnfscope_\w+", "".join(shown(module.DASHBOARD()) for module in modules)))
    parts = {f"{name}{ending}" for name in recorded.HISTOGRAMS for ending in ("_bucket", "_count", "_sum")}
    asked |= {name.rsplit("_", 1)[0] for name in asked & parts}
    unseen = [f for f in families if f.name not in asked]
    for name, module in zip(DASHBOARDS, modules):
        write(into / f"grafana/{name}.json", text(module.DASHBOARD(others.rows(name, unseen))) + "\n")
    spec = yaml.safe_load(objectives.read_text())
    files = rules.files(spec, (here / "source/alerts.yml").read_text(), config)
    for name, content in files.items():
        write(into / "rules" / name, content)
    write(into / "rules/mixin.json", for_jsonnet(files))


def for_jsonnet(files: dict[str, str]) -> str:
    """Rules as JSON: not every jsonnet reads YAML right."""

    def groups(*names: str) -> list:
        return [group for name in names for group in yaml.safe_load(files[name])["groups"]]

    out = {
        "prometheus": groups("recording.yml", "slo.yml"),
        "victoriametrics": groups("victoriametrics/recording.yml", "victoriametrics/slo.yml"),
        "alerts": groups("alerts.yml"),
    }
    return json.dumps(out, indent=2) + "\n"


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def shown(dashboard) -> str:
    """The dashboard without its annotations: a mark shows no family."""
    return json.dumps({name: value for name, value in json.loads(text(dashboard)).items() if name != "annotations"})


def text(dashboard) -> str:
    return json.dumps(dashboard, cls=JSONEncoder, sort_keys=True, indent=2)


main()

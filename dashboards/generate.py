"""Writes the dashboards: python dashboards/generate.py [DIRECTORY [TABLE]]

DIRECTORY is dashboards/grafana unless given, TABLE docs/metrics.md, which names the families that have to be shown. The
Python that has the library is the one that tests/setup/setup.sh monitoring makes: ~/.cache/nfscope/lab/dashboards/bin/python.
"""

import json
import re
import sys
from pathlib import Path

try:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
except ModuleNotFoundError:
    sys.exit("error: this Python has no grafana-foundation-sdk\n  fix: tests/setup/setup.sh monitoring, then ~/.cache/nfscope/lab/dashboards/bin/python")

from source import agent, clients, disks, logs, operations, others, overview, phases, threads

DASHBOARDS = [overview, operations, phases, threads, logs, disks, clients, agent]


def main() -> None:
    here = Path(__file__).resolve().parent
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "grafana"
    table = Path(sys.argv[2]) if len(sys.argv) > 2 else here.parent / "docs/metrics.md"
    asked = set(re.findall(r"nfscope_\w+", "".join(text(module.DASHBOARD()) for module in DASHBOARDS)))
    unseen = [f for f in others.families(table) if not asked & {f.name, f"{f.name}_bucket", f"{f.name}_count"}]
    for module in DASHBOARDS:
        name = module.__name__.rsplit(".", 1)[-1]
        (into / f"{name}.json").write_text(text(module.DASHBOARD(others.rows(name, unseen))) + "\n")


def text(dashboard) -> str:
    return json.dumps(dashboard, cls=JSONEncoder, sort_keys=True, indent=2)


main()

"""Writes the dashboards: python dashboards/generate.py [DIRECTORY]

DIRECTORY is dashboards/grafana unless given. The Python that has the library is the one that tests/setup/setup.sh monitoring
makes: ~/.cache/nfscope/lab/dashboards/bin/python.
"""

import json
import sys
from pathlib import Path

try:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
except ModuleNotFoundError:
    sys.exit("error: this Python has no grafana-foundation-sdk\n  fix: tests/setup/setup.sh monitoring, then ~/.cache/nfscope/lab/dashboards/bin/python")

from source import agent, clients, disks, logs, operations, overview, phases, threads

DASHBOARDS = [overview, operations, phases, threads, logs, disks, clients, agent]


def main() -> None:
    here = Path(__file__).resolve().parent
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "grafana"
    for module in DASHBOARDS:
        text = json.dumps(module.DASHBOARD, cls=JSONEncoder, sort_keys=True, indent=2)
        name = module.__name__.rsplit(".", 1)[-1]
        (into / f"{name}.json").write_text(text + "\n")


main()

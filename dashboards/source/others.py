"""Panels of the families that no dashboard shows in a panel of its own: drawn from docs/metrics.md, which is the metric table.

A new family needs no work here. It is worth a panel of its own, which says what a rise means, as soon as somebody knows.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from . import queries as q
from .panels import timeseries

# Beginning of a family's name after nfscope_, the dashboard that shows it, and the words of its row.
PLACES = [
    ("block_", "disks", "block"),
    ("zfs_", "logs", "zfs"),
    ("log_", "logs", "jbd2, xfs, btrfs, zfs"),
    ("client_view_", "clients", "client"),
    ("client_", "clients", "nfsd"),
    ("nfs4_", "clients", "nfsd"),
    ("session_", "operations", "nfsd"),
    ("export_", "clients", "nfsd"),
    ("op_phase", "phases", "sched"),
    ("connection", "threads", "nfsd"),
    ("unacknowledged_", "threads", "nfsd"),
    ("rpc_", "threads", "nfsd"),
    ("thread", "threads", "nfsd"),
    ("op_", "operations", "nfsd"),
    ("compound_", "operations", "nfsd"),
    ("write", "operations", "nfsd"),
    ("read", "operations", "nfsd"),
    ("", "agent", "nfscope"),
]
# Format of a line of the table: family, type, labels, since, meaning.
LINE = re.compile(r"^\| `(nfscope_\w+)` \| (\w+) \| (.*?) \| \S+ \| (.*) \|$", re.M)


@dataclass
class Family:
    """A line of the metric table."""

    name: str
    kind: str
    labels: list[str]
    meaning: str


def families(table: Path) -> list[Family]:
    """What `nfscope metrics --markdown` has written."""
    lines = LINE.findall(table.read_text())
    return [Family(name, kind, re.findall(r"`(\w+)`", labels), meaning) for name, kind, labels, meaning in lines]


def rows(dashboard: str, unseen: list[Family]) -> list:
    """The rows that this dashboard needs besides its own."""
    found = {}
    for family in unseen:
        rest = family.name.removeprefix("nfscope_")
        place, words = next((place, words) for prefix, place, words in PLACES if rest.startswith(prefix))
        if place == dashboard:
            found.setdefault(f"{words}: other figures", []).append(_panel(family))
    return list(found.items())


def _panel(family: Family):
    labels = ["instance", *family.labels]
    by, legend = ", ".join(labels), " ".join(f"{{{{{label}}}}}" for label in labels)
    title = family.name.removeprefix("nfscope_").removesuffix("_total").replace("_", " ").capitalize()
    seconds, size = "_seconds" in family.name, "_bytes" in family.name
    if family.kind == "histogram":
        how, unit = "99 of 100 are below the line.", "s" if seconds else "bytes" if size else "short"
        query = q.quantile(0.99, family.name, by)
    elif family.kind == "counter":
        how, unit = "The line is its growth in a second.", "percentunit" if seconds else "Bps" if size else "cps"
        query = q.rate(family.name, by)
    else:
        how, unit = "The line is its value.", "s" if seconds else "bytes" if size else "short"
        query = q.by(by, q.of(family.name))
    return timeseries(title, f"{family.meaning.rstrip('.')}. {how}", unit, (query, legend))

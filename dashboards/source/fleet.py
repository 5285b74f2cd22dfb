"""Many servers on one page: which of them to look at. Every query asks recorded series, one a server."""

from . import queries as q
from . import recorded as r
from .panels import dashboard, stat, table, timeseries

SERVER = "instance"
LAST_WEEK = "offset 1w"


def of_server(name: str) -> str:
    """A recorded series, by server."""
    return q.by(SERVER, q.of(name), "max")


def against_last_week(name: str, labels: str = SERVER) -> str:
    """How many times as long as a week ago."""
    return f"{q.by(labels, q.of(name), 'max')} / {q.by(labels, f'{q.of(name)} {LAST_WEEK}', 'max')}"


SCORES = q.by(f"{SERVER}, kind", q.of("nfscope_bottleneck_score_ratio"), "max")
ACTIVE = q.by(f"{SERVER}, kind", q.of("nfscope_bottleneck_active"), "max")

DASHBOARD = dashboard(
    "fleet",
    "fleet",
    "Many servers: which have findings, which are full, which have become slower than last week.",
    content=[
        ("nfscope: the fleet", [
            stat(
                "Servers", "Chosen servers whose agents answer. A fall is agents, hosts or networks that are down.",
                "short", f"count({q.by(SERVER, q.of('nfscope_build_info'))})",
            ),
            stat(
                "Not answering",
                "Chosen servers whose agents Prometheus cannot scrape, in jobs of which another agent answers and in the job nfscope. "
                "Above 0 nothing is known of them.",
                "short", q.by("", f"{q.of(r.ANSWERS)} == bool 0"), limits=(1, 1),
            ),
            stat(
                "With findings", "Chosen servers with a finding that is active. The table below names them.",
                "short", q.by("", f"{of_server(r.FINDINGS)} > bool 0"), limits=(1, 10),
            ),
            stat(
                "Fullest", "Saturation of the fullest of the chosen servers: threads, CPUs or a disk. Near 1 requests queue.",
                "percentunit", q.by("", q.of(r.SATURATION), "max"), limits=(0.8, 0.95),
            ),
            stat(
                "Slower than last week",
                "Chosen servers on which requests stay half as long again as a week ago, or longer. Where it rises, see the "
                "table of regressions.",
                "short", q.by("", f"{against_last_week(r.RESIDENCE)} > bool 1.5"), limits=(1, 10),
            ),
            stat(
                "Operations", "Operations a second of all chosen servers. Where it rises, so does the demand.",
                "ops", q.by("", q.of(r.OPERATIONS)),
            ),
            table(
                "Servers by finding",
                "One row a finding that is active: the share of request time on that server that it explains. A click on the "
                "server opens its overview; docs/findings.md has a section for each kind.",
                "short",
                [("share", "percentunit", f"{SCORES} and ({ACTIVE} == 1)")],
                servers=True,
            ),
            table(
                "Servers by saturation",
                "How full each server is: its fullest pool of threads, its CPUs, its busiest disk. The first column is the "
                "fullest of the three; all busy is the share of time in which every thread of a pool has a request. Near 100 % "
                "requests queue; a disk that serves many requests at once has room even there.",
                "short",
                [
                    ("saturation", "percentunit", of_server(r.SATURATION)),
                    ("threads", "percentunit", of_server(r.THREADS)),
                    ("all busy", "percentunit", of_server(r.SATURATED)),
                    ("CPUs", "percentunit", of_server(r.CPUS)),
                    ("disk", "percentunit", of_server(r.DISKS)),
                    ("operations", "ops", of_server(r.OPERATIONS)),
                    ("p99", "s", of_server(r.RESIDENCE_P99)),
                ],
                servers=True,
            ),
            table(
                "Servers by regression against last week",
                "How many times as long as a week ago a request stays on the server, as means of an hour. Above 1 it has become "
                "slower; a different mix of operations moves it, too, so look at the next table.",
                "short",
                [
                    ("times", "short", against_last_week(r.RESIDENCE)),
                    ("now", "s", of_server(r.RESIDENCE)),
                    ("last week", "s", q.by(SERVER, f"{q.of(r.RESIDENCE)} {LAST_WEEK}", "max")),
                ],
                servers=True,
            ),
            table(
                "Operations by regression against last week",
                "The same of single operations, the fifty with the greatest factor. A rare operation has a factor by chance; "
                "time in all says whether it matters (100 % keeps one thread busy).",
                "short",
                [
                    ("times", "short", q.busiest(50, against_last_week(r.OPERATION_MEAN, f"{SERVER}, version, op"))),
                    ("time in all", "percentunit", q.total("nfscope_op_duration_seconds", f"{SERVER}, version, op")),
                ],
                servers=True, required="times",
            ),
            timeseries(
                "Findings by kind", "Servers with each kind of finding. A kind that rises on many servers at once has one cause.",
                "short", (q.by("kind", q.of("nfscope_bottleneck_active")), "{{kind}}"), stacked=True,
            ),
            timeseries(
                "Saturation", "The ten fullest servers. A line that rises to 100 % is a server whose requests begin to queue.",
                "percentunit", (q.busiest(10, of_server(r.SATURATION)), "{{instance}}"), top=1,
            ),
            timeseries(
                "Operations by cluster", "Operations a second. A rise is more demand.",
                "ops", (q.by("cluster", q.of(r.OPERATIONS)), "{{cluster}}"), stacked=True,
            ),
            timeseries(
                "Residence p99", "99 of 100 requests stay for less, the ten slowest servers. Where it rises, clients wait longer.",
                "s", (q.busiest(10, of_server(r.RESIDENCE_P99)), "{{instance}}"),
            ),
        ]),
        ("nfscope: objectives", [
            table(
                "Objectives",
                "What is left of each allowance of 30 days, and how many times as fast as it may it is spent now. Below 0 the "
                "objective is missed; dashboards/slo.yml has the objectives.",
                "short",
                [
                    ("left", "percentunit", q.by(f"{SERVER}, sloth_slo", q.of("slo:period_error_budget_remaining:ratio"), "min")),
                    ("spent", "short", q.by(f"{SERVER}, sloth_slo", q.of("slo:current_burn_rate:ratio"), "max")),
                ],
                servers=True,
            ),
        ]),
    ],
)

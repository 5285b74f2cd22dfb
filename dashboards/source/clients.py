"""Which clients and exports generate the load."""

from . import queries as q
from .panels import dashboard, table, timeseries


def seconds_each(kind: str) -> str:
    """The average operation's time."""
    return f"{q.rate(f'nfscope_{kind}_op_seconds_total', kind)} / {q.rate(f'nfscope_{kind}_ops_total', kind)}"


def busiest(kind: str, noun: str) -> list:
    """The panels that clients and exports have in common."""
    named = f"{{{{{kind}}}}}"
    return [
        table(
            f"{noun} now",
            f"One row a {kind}: operations a second, their average time, and the time of all of them (100 % keeps one thread "
            "busy). What rises to the top of the first column generates most operations.",
            "none",
            [
                ("rate", "ops", q.rate(f"nfscope_{kind}_ops_total", kind)),
                ("mean", "s", seconds_each(kind)),
                ("time in all", "percentunit", q.rate(f"nfscope_{kind}_op_seconds_total", kind)),
            ],
        ),
        timeseries(
            f"{noun} by operations", f"Operations a second, the ten with most. A {kind} that rises alone is where to look.",
            "ops", (q.busiest(10, q.rate(f"nfscope_{kind}_ops_total", kind)), named),
        ),
        timeseries(
            f"{noun} by time",
            f"Time of their operations on the server, the ten with most; 100 % keeps one thread busy. A {kind} that rises "
            "here and not in operations causes expensive operations.",
            "percentunit", (q.busiest(10, q.rate(f"nfscope_{kind}_op_seconds_total", kind)), named),
        ),
        timeseries(
            f"{noun} by average operation",
            f"Average time of an operation, the ten longest. A {kind} that rises alone has slower work, not a slower server.",
            "s", (q.busiest(10, seconds_each(kind)), named),
        ),
        timeseries(
            f"{noun} that lost their series",
            f"Each of the busiest {kind}s has series of its own, all others are counted as other. A rise means that more "
            f"{kind}s are active than --max-{kind}s allows.",
            "ops", (q.rate(f"nfscope_{kind}_evictions_total", "instance"), "{{instance}}"),
        ),
    ]


DASHBOARD = dashboard(
    "clients",
    "clients and exports",
    "The busiest clients and exports: their operations, and what these cost the server.",
    content=[
        ("nfsd: clients", [
            *busiest("client", "Clients"),
            timeseries(
                "Sending replies",
                "Time spent on handing replies to each client's socket, in seconds a second, the ten largest. Where it rises, this "
                "client, or the network to it, takes its replies late.",
                "none", (q.busiest(10, q.rate("nfscope_client_reply_seconds_total", "client")), "{{client}}"),
            ),
            timeseries(
                "Round-trip time",
                "Smoothed round-trip time of each client's TCP connection, the ten longest. Where it rises, the network or the "
                "client is slow, not the server.",
                "s", (q.busiest(10, q.by("client", q.of("nfscope_client_rtt_seconds"), "max")), "{{client}}"),
            ),
        ]),
        ("nfsd: exports", busiest("export", "Exports")),
    ],
)

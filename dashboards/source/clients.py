"""Which clients and exports generate the load."""

from . import queries as q
from .panels import dashboard, table, timeseries


def seconds_each(kind: str) -> str:
    """The average operation's time."""
    each = f"instance, {kind}"
    return f"{q.rate(f'nfscope_{kind}_op_seconds_total', each)} / {q.rate(f'nfscope_{kind}_ops_total', each)}"


SESSION_REQUESTS = "nfscope_client_session_requests_total"
FULL_SLOTS = (
    q.rate(SESSION_REQUESTS, "instance, client", 'slots="full"') + " / " + q.rate(SESSION_REQUESTS, "instance, client")
)


def busiest(kind: str, noun: str) -> list:
    """The panels that clients and exports have in common."""
    each = f"instance, {kind}"
    named = f"{{{{instance}}}} {{{{{kind}}}}}"
    return [
        table(
            f"{noun} now",
            f"One row a {kind} and server: operations a second, their average time, and the time of all of them (100 % keeps one thread "
            "busy). What rises to the top of the first column generates most operations.",
            "short",
            [
                ("rate", "ops", q.rate(f"nfscope_{kind}_ops_total", each)),
                ("mean", "s", seconds_each(kind)),
                ("time in all", "percentunit", q.rate(f"nfscope_{kind}_op_seconds_total", each)),
            ],
        ),
        timeseries(
            f"{noun} by operations", f"Operations a second, the ten with most. A {kind} that rises alone is where to look.",
            "ops", (q.busiest(10, q.rate(f"nfscope_{kind}_ops_total", each)), named),
        ),
        timeseries(
            f"{noun} by time",
            f"Time of their operations on the server, the ten with most; 100 % keeps one thread busy. A {kind} that rises "
            "here and not in operations causes expensive operations.",
            "percentunit", (q.busiest(10, q.rate(f"nfscope_{kind}_op_seconds_total", each)), named),
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
                "short", (q.busiest(10, q.rate("nfscope_client_reply_seconds_total", "instance, client")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Requests with every slot in use",
                "Part of each client's NFSv4.1 requests that were sent with every slot of its session in use, the ten largest. Where it "
                "rises, the client's other requests wait for a slot in the client.",
                "percentunit", (
                    q.busiest(10, FULL_SLOTS),
                    "{{instance}} {{client}}",
                ),
            ),
            timeseries(
                "Slots of sessions",
                "Slots that the server granted each client's session. Where it falls, the server has little memory for replies.",
                "short", (q.busiest(10, q.by("instance, client", q.of("nfscope_client_session_slots"), "max")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Requests by client",
                "RPC requests of each client, the ten with most. Over NFSv4 a request has several operations. A rise is more demand.",
                "reqps", (q.busiest(10, q.rate("nfscope_client_requests_total", "instance, client")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Requests that only walk a path",
                "Requests that look up names or access rights and do nothing else, the ten clients with most. Each is a round trip that "
                "an open of the client waits for.",
                "reqps", (
                    q.busiest(10, q.rate("nfscope_client_walk_requests_total", "instance, client, version")),
                    "{{instance}} {{client}} v{{version}}",
                ),
            ),
            timeseries(
                "Requests that open files",
                "Requests with an OPEN, the ten clients with most (NFSv4). Where they rise, programs on this client open more files.",
                "reqps", (q.busiest(10, q.rate("nfscope_client_open_requests_total", "instance, client")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Time of walking and opening",
                "Time of NFSv4 requests that walk a path or open a file, in seconds a second, the ten largest. Where it rises alone, the "
                "server answers them slower. The network is no part of it.",
                "short", (q.busiest(10, q.rate("nfscope_client_open_seconds_total", "instance, client")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Round-trip time",
                "Smoothed round-trip time of each client's TCP connection, the ten longest. Where it rises, the network or the "
                "client is slow, not the server.",
                "s", (q.busiest(10, q.by("instance, client", q.of("nfscope_client_rtt_seconds"), "max")), "{{instance}} {{client}}"),
            ),
        ]),
        ("nfsd: what NFSv4 clients hold", [
            timeseries(
                "NFSv4 clients",
                "Clients by status. courtesy: silent for longer than the lease. Where they rise, clients go away without unmounting, or "
                "cannot reach the server.",
                "short", (q.by("instance, status", q.of("nfscope_nfs4_clients")), "{{instance}} {{status}}"),
            ),
            timeseries(
                "Opens, locks, delegations, layouts",
                "What clients hold. Where opens rise without end, a program leaves files open.",
                "short", (q.by("instance, type", q.of("nfscope_nfs4_states")), "{{instance}} {{type}}"),
            ),
            timeseries(
                "Callback paths that are not up",
                "Clients that the server cannot call back. They get no delegations, and give none back: look for firewalls and address "
                "translation between the server and NFSv4.0 clients.",
                "short", (q.by("instance, state", q.of("nfscope_nfs4_callbacks", 'state!="up"')), "{{instance}} {{state}}"),
            ),
            timeseries(
                "Revoked states",
                "What the server has taken away and the client has not acknowledged. Any is a client that did not answer in time.",
                "short", (q.by("instance", q.of("nfscope_nfs4_revoked_states")), "{{instance}}"),
            ),
            timeseries(
                "Oldest renewal",
                "Time since the client renewed its lease that did so longest ago. Above the lease time (90 s by default) it is gone.",
                "s", (q.by("instance", q.of("nfscope_nfs4_oldest_renewal_seconds"), "max"), "{{instance}}"),
            ),
            timeseries(
                "Too much to list",
                "1 where clients hold more than the agent looks at. The other panels of this row then show too little.",
                "short", (q.by("instance", q.of("nfscope_nfs4_partial"), "max"), "{{instance}}"),
            ),
        ]),
        ("nfsd: exports", busiest("export", "Exports")),
    ],
)

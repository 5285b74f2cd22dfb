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

RETURN_SECONDS = (
    q.rate("nfscope_client_delegation_recall_seconds_total", "instance, client")
    + " / "
    + q.rate("nfscope_client_delegation_recalls_total", "instance, client")
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
                ("read", "Bps", q.rate(f"nfscope_{kind}_io_bytes_total", each, 'op="read"')),
                ("written", "Bps", q.rate(f"nfscope_{kind}_io_bytes_total", each, 'op="write"')),
            ],
        ),
        timeseries(
            f"{noun} by bytes",
            f"Bytes a second that READs returned and WRITEs stored, the ten with most. A {kind} that rises here and not in operations "
            "moves larger pieces.",
            "Bps", (q.busiest(10, q.rate(f"nfscope_{kind}_io_bytes_total", f"{each}, op")), f"{named} {{{{op}}}}"),
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
                "Smoothed round-trip time of each client's TCP connection, the ten longest. It holds the time for which a client "
                "delays its acknowledgements, 40 ms and more on a quiet connection: the shortest round trip is the distance.",
                "s", (q.busiest(10, q.by("instance, client", q.of("nfscope_client_rtt_seconds"), "max")), "{{instance}} {{client}}"),
            ),
        ]),
        ("lockd: locks of NFSv3", [
            timeseries(
                "Clients that wait for a lock",
                "Clients of NFSv3 that wait for a lock now. Their programs stand still meanwhile, although the server has nothing to do. "
                "nfscope stuck on the server names the holder where the kernel lists it.",
                "short", (q.by("instance", q.of("nfscope_lockd_waiting_clients")), "{{instance}}"),
            ),
            timeseries(
                "Longest waits for a lock",
                "Clients of NFSv3 that lockd has told to wait, the ten that wait longest. A client that stays here has a program that stands still.",
                "s", (q.busiest(10, q.by("instance, client", q.of("nfscope_client_lock_wait_seconds"), "max")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Lock requests and answers",
                "Requests of lockd by procedure and answer. Where blocked rises, clients wait for each other's locks; where denied_nolocks does, "
                "rpc.statd does not run.",
                "reqps", (q.rate("nfscope_lockd_answers_total", "instance, procedure, answer"), "{{instance}} {{procedure}} {{answer}}"),
            ),
            timeseries(
                "Clients' LOCK requests",
                "The ten busiest pairs of client and answer. A client whose denied rises asks for a lock in a loop.",
                "reqps", (q.busiest(10, q.rate("nfscope_client_lockd_answers_total", "instance, client, answer")), "{{instance}} {{client}} {{answer}}"),
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
                "What an administrator has taken away, as by /proc/fs/nfsd/unlock_filesystem, and the client has not acknowledged; from Linux 6.9 on.",
                "short", (q.by("instance", q.of("nfscope_nfs4_revoked_states")), "{{instance}}"),
            ),
            timeseries(
                "Oldest renewal",
                "Time since the client renewed its lease that did so longest ago. Above the lease time (90 s by default) it is gone.",
                "s", (q.by("instance", q.of("nfscope_nfs4_oldest_renewal_seconds"), "max"), "{{instance}}"),
            ),
            timeseries(
                "Time since the laundromat ran",
                "Since the kernel last ended leases of silent clients and revoked delegations. It does so once in a lease at the "
                "latest (90 s by default). Where it goes on rising, nfscope stuck says whether the laundromat hangs.",
                "s", (q.by("instance", q.of("nfscope_nfs4_laundromat_age_seconds"), "max"), "{{instance}}"),
            ),
            timeseries(
                "Too much to list",
                "1 where clients hold more than the agent looks at. The other panels of this row then show too little.",
                "short", (q.by("instance", q.of("nfscope_nfs4_partial"), "max"), "{{instance}}"),
            ),
        ]),
        ("nfsd: delegations and layouts", [
            timeseries(
                "Delegations granted",
                "Delegations a second, by type. A client with one opens, reads and locks the file without asking the server.",
                "ops", (q.rate("nfscope_nfs4_delegations_granted_total", "instance, type"), "{{instance}} {{type}}"),
            ),
            timeseries(
                "Delegations that end",
                "Delegations a second that clients return, that the server recalls, and that it revokes. Where recalls come near the "
                "grants, clients use the same files, and delegations cost more than they save. Revoked ones are of clients that do not answer.",
                "ops",
                (q.rate("nfscope_nfs4_delegations_returned_total", "instance"), "{{instance}} returned"),
                (q.rate("nfscope_nfs4_delegation_recalls_total", "instance"), "{{instance}} recalled"),
                (q.rate("nfscope_nfs4_delegations_revoked_total", "instance"), "{{instance}} revoked"),
            ),
            timeseries(
                "Recalls, 99th percentile",
                "From the recall of a delegation or layout until the client returned it, or until the server took it away. Returned "
                "ones rise with the distance to clients; those taken away last a lease.",
                "s", (q.quantile(0.99, "nfscope_nfs4_recall_seconds", "instance, state, end"), "{{instance}} {{state}} {{end}}"),
            ),
            timeseries(
                "Recalls under way",
                "Delegations and layouts that clients were asked for and have not returned. Others that want the file wait meanwhile.",
                "short", (q.by("instance, state", q.of("nfscope_nfs4_recalls_pending")), "{{instance}} {{state}}"),
            ),
            timeseries(
                "Oldest recall",
                "Since the oldest of them was asked for. At the lease time (90 s by default) the server takes it away.",
                "s", (q.by("instance, state", q.of("nfscope_nfs4_oldest_recall_seconds"), "max"), "{{instance}} {{state}}"),
            ),
            timeseries(
                "Recalls by client",
                "Delegations a second that each client is asked for, the ten with most. Two that rise together use the same files.",
                "ops",
                (q.busiest(10, q.rate("nfscope_client_delegation_recalls_total", "instance, client")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Time until clients return delegations",
                "Average time from the recall to the return, the ten longest clients. One that rises alone is far away, slow or gone.",
                "s",
                (q.busiest(10, RETURN_SECONDS), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Delegations still to return",
                "Recalled delegations that each client has not returned, the ten with most. One that stays keeps others from its files.",
                "short",
                (q.busiest(10, q.by("instance, client", q.of("nfscope_client_delegation_recalls_pending"), "max")), "{{instance}} {{client}}"),
            ),
            timeseries(
                "Layouts (pNFS)",
                "Layouts a second that are granted, end, are recalled, and whose recall failed. Failed ones are of clients that are kept "
                "from the storage.",
                "ops",
                (q.rate("nfscope_nfs4_layouts_granted_total", "instance"), "{{instance}} granted"),
                (q.rate("nfscope_nfs4_layouts_ended_total", "instance"), "{{instance}} ended"),
                (q.rate("nfscope_nfs4_layout_recalls_total", "instance"), "{{instance}} recalled"),
                (q.rate("nfscope_nfs4_layout_recalls_failed_total", "instance"), "{{instance}} failed"),
            ),
            timeseries(
                "Layouts by client",
                "Layouts a second granted to each client, the ten with most. A client with layouts and many READs and WRITEs does not use them.",
                "ops",
                (q.busiest(10, q.rate("nfscope_client_layouts_granted_total", "instance, client")), "{{instance}} {{client}}"),
            ),
        ]),
        ("nfsd: exports", busiest("export", "Exports")),
    ],
)

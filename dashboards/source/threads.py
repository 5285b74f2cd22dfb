"""The nfsd threads, and the requests that wait for them."""

from . import queries as q
from .panels import dashboard, heatmap, timeseries

POOL = "instance, pool"
NAMED = "{{instance}} pool {{pool}}"

DASHBOARD = dashboard(
    "threads",
    "threads and RPC",
    "Whether there are enough nfsd threads, how long requests wait for one, and what comes in and goes out.",
    content=[
        ("nfsd: threads", [
            timeseries(
                "Threads",
                "nfsd threads that run, threads that execute a request, and the most that the pool may have. Where busy threads "
                "rise to those that run, requests queue.",
                "short",
                (q.by(POOL, q.of("nfscope_threads")), f"{NAMED} running"),
                (q.by(POOL, q.of("nfscope_threads_busy")), f"{NAMED} busy"),
                (q.by(POOL, q.of("nfscope_threads_limit")), f"{NAMED} limit"),
            ),
            timeseries(
                "Utilization",
                "Share of the threads' time in which they execute a request. Above 0.8 requests begin to queue; whether more threads "
                "would help depends on what the threads wait for: see phases.",
                "percentunit",
                (f"{q.rate('nfscope_thread_busy_seconds_total', POOL)} / {q.by(POOL, q.of('nfscope_threads'))}", NAMED), top=1,
            ),
            timeseries(
                "Every thread busy",
                "Share of the time during which every running thread executed a request: a request that arrived then had to "
                "wait. A rise is thread starvation, or threads that wait for something slow.",
                "percentunit", (q.rate("nfscope_threads_saturated_seconds_total", POOL), NAMED), top=1,
            ),
            timeseries(
                "Queue",
                "From a request's arrival on its socket until a thread took it. Where it rises, all threads are busy.",
                "s",
                (q.quantile(0.5, "nfscope_rpc_queue_seconds", POOL), f"{NAMED} p50"),
                (q.quantile(0.99, "nfscope_rpc_queue_seconds", POOL), f"{NAMED} p99"),
            ),
            heatmap(
                "Queue time",
                "How the waits for a thread spread: each column is a moment, darker is more. A band that rises is a queue that "
                "builds up.",
                "s", q.cells("nfscope_rpc_queue_seconds"),
            ),
            heatmap(
                "Residence",
                "How long requests stay on the server, from arrival to reply. A second band that appears above the first is a "
                "group of requests that wait.",
                "s", q.cells("nfscope_rpc_duration_seconds"),
            ),
        ]),
        ("nfsd: requests in hand", [
            timeseries(
                "Stuck requests",
                "Requests that a thread has had in hand for a second or longer, by what the thread waits for now. Other panels "
                "count a request when it has ended: a disk that hangs shows here first.",
                "short",
                (q.by("instance, wait", q.of("nfscope_stuck_requests")), "{{instance}} {{wait}}"),
            ),
            timeseries(
                "Oldest request",
                "Age of the oldest request in hand, by what its thread waits for now. A line that rises second by second is a request "
                "that does not end.",
                "s",
                (q.by("instance, wait", q.of("nfscope_oldest_request_seconds"), "max"), "{{instance}} {{wait}}"),
            ),
        ]),
        ("nfsd: requests that nobody takes", [
            timeseries(
                "Pending connections",
                "Connections with a request that arrived a second ago or longer and that no nfsd thread has taken. All threads "
                "hang, or they are far too few.",
                "short",
                (q.by("instance", q.of("nfscope_pending_connections")), "{{instance}}"),
            ),
            timeseries(
                "Oldest pending request",
                "Time since the oldest of these requests arrived. A line that rises second by second is a request that no thread "
                "takes.",
                "s",
                (q.by("instance", q.of("nfscope_oldest_pending_seconds"), "max"), "{{instance}}"),
            ),
        ]),
        ("nfsd: connections", [
            timeseries(
                "Connections and their limit",
                "Connections that the kernel limits, and the limit. Above it the kernel closes the oldest when the server accepts "
                "another one: raise the number of threads. From Linux 6.12 on it limits those that have shown no valid file handle.",
                "short",
                (q.by("instance, which", q.of("nfscope_limited_connections")), "{{instance}} {{which}}"),
                (q.by("instance, which", q.of("nfscope_connection_limit")), "{{instance}} {{which}}: limit"),
            ),
            timeseries(
                "Open connections",
                "Connections that the server has open, by transport. It rises with clients, and with nconnect= on them.",
                "short", (q.by("instance, transport", q.of("nfscope_connections")), "{{instance}} {{transport}}"),
            ),
            timeseries(
                "Connections accepted and closed",
                "Connections a second that the server accepted, and those that were closed, by reason. limit: the kernel closed the "
                "oldest. Where both rise together, clients connect again and again.",
                "short",
                (q.rate("nfscope_connections_accepted_total", "instance"), "{{instance}} accepted"),
                (q.rate("nfscope_connections_closed_total", "instance, reason"), "{{instance}} {{reason}}"),
            ),
            timeseries(
                "New connections that were dropped",
                "Packets of new connections that TCP dropped, because no thread accepted those before them. Clients send them again "
                "after a second or more. All threads hang, or they are far too few.",
                "short", (q.rate("nfscope_listener_drops_total", "instance"), "{{instance}}"),
            ),
            timeseries(
                "Listeners",
                "Sockets on which the server waits for connections, and for requests over UDP. One that goes away is a transport "
                "that clients can no longer use.",
                "short", (q.by("instance, transport", q.of("nfscope_listeners")), "{{instance}} {{transport}}"),
            ),
        ]),
        ("nfsd: waits for daemons", [
            timeseries(
                "Waits for daemons",
                "Time of nfsd threads that sleep until rpc.mountd, rpc.idmapd, rpc.svcgssd or nfsdcld answers, by what they ask; 100 % "
                "keeps one thread asleep. A rise is a slow name service, or a daemon that does not answer.",
                "percentunit", (q.total("nfscope_upcall_wait_seconds", "instance, upcall"), "{{instance}} {{upcall}}"),
            ),
            timeseries(
                "Questions to daemons",
                "What the kernel asks them, by kind. Each answer is kept for a while: many questions are many new clients or users, or "
                "caches that are flushed again and again (exportfs).",
                "short", (q.rate("nfscope_upcalls_total", "instance, upcall"), "{{instance}} {{upcall}}"),
            ),
        ]),
        ("nfsd: RPC", [
            timeseries(
                "Requests", "RPC requests a second by NFS version. A rise is more demand.",
                "reqps", (q.count("nfscope_rpc_duration_seconds", "version"), "v{{version}}"), stacked=True,
            ),
            timeseries(
                "Residence by version", "99 of 100 requests stay for less. Where one version rises alone, so do its operations.",
                "s", (q.quantile(0.99, "nfscope_rpc_duration_seconds", "instance, version"), "{{instance}} v{{version}} p99"),
            ),
            timeseries(
                "Bytes received", "Bytes of RPC calls over TCP. A rise is mostly more WRITEs.",
                "Bps", (q.rate("nfscope_rpc_received_bytes_total", "version"), "v{{version}}"), stacked=True,
            ),
            timeseries(
                "Bytes sent", "Bytes of RPC replies. A rise is mostly more READs, or larger directories.",
                "Bps", (q.rate("nfscope_rpc_sent_bytes_total", "version"), "v{{version}}"), stacked=True,
            ),
            timeseries(
                "Calls without a proper answer",
                "dropped, deferred for an upcall, malformed (garbage), refused (auth). Where it rises, look at rpc.mountd, at "
                "exports and at clients.",
                "reqps", (q.rate("nfscope_rpc_dropped_total", "reason"), "{{reason}}"),
            ),
            timeseries(
                "Refused calls by client",
                "Calls that became no operation: of a wrong form, with credentials that are refused, or with arguments that cannot be "
                "decoded. Where one rises, find the program at that address.",
                "reqps",
                (q.busiest(10, q.rate("nfscope_client_refused_rpcs_total", "instance, client, reason")), "{{instance}} {{client}} {{reason}}"),
            ),
            timeseries(
                "Duplicate request cache",
                "Look-ups: hit (a repeated call was answered from the cache), miss, nocache (repeating does no harm). Hits that "
                "rise are clients that repeat calls: slow answers, or a network that loses packets.",
                "reqps", (q.rate("nfscope_reply_cache_total", "result"), "{{result}}"),
            ),
        ]),
    ],
)

"""Each NFS operation: how many, how long, how large, with which result."""

from . import queries as q
from .panels import dashboard, heatmap, histogram, table, timeseries, variable

CHOSEN = 'version=~"$version",op=~"$op"'
DURATION = "nfscope_op_duration_seconds"
VERSIONS = 'version=~"$version"'

DASHBOARD = dashboard(
    "operations",
    "operations",
    "NFSv3 procedures and NFSv4 component operations: rates, durations, sizes and errors.",
    variables=[
        variable("version", histogram(DURATION), where=""),
        variable("op", histogram(DURATION), where=""),
    ],
    content=[
        ("nfsd: operations", [
            table(
                "Operations now",
                "One row an operation: how many a second, how long they take, p99 on the server where it is longest, and the time of "
                "all of them (100 % keeps one thread busy). What rises to the top of the last column is what the server spends its time on.",
                "short",
                [
                    ("rate", "ops", q.count(DURATION, "version, op", CHOSEN)),
                    ("mean", "s", q.mean(DURATION, "version, op", CHOSEN)),
                    ("p99", "s", q.worst_quantile(0.99, DURATION, "version, op", CHOSEN)),
                    ("time in all", "percentunit", q.total(DURATION, "version, op", CHOSEN)),
                ],
            ),
            heatmap(
                "Duration of the chosen operations",
                "How durations spread: each column is a moment, darker is more. A second band that appears above the first is "
                "a group of operations that wait for something.",
                "s", q.cells(DURATION, CHOSEN), width=24,
            ),
            timeseries(
                "Rate", "Operations a second, the twelve most frequent. A rise is more demand, or clients that send requests more often.",
                "ops", (q.busiest(12, q.count(DURATION, "version, op", CHOSEN)), "v{{version}} {{op}}"),
            ),
            timeseries(
                "p99", "99 of 100 are done in less, on the server where it takes longest; the twelve longest. Where it rises, look at the operation's phases.",
                "s", (q.busiest(12, q.worst_quantile(0.99, DURATION, "version, op", CHOSEN)), "v{{version}} {{op}}"),
            ),
            timeseries(
                "p50", "Half of them are done in less, on the server where it takes longest; the twelve longest. Where it rises with p99, every operation has "
                "become slower, not only some.",
                "s", (q.busiest(12, q.worst_quantile(0.5, DURATION, "version, op", CHOSEN)), "v{{version}} {{op}}"),
            ),
            timeseries(
                "Errors",
                "Operations a second that answered with a status other than OK, the twelve most frequent. noent and exist are "
                "normal; a rise of stale, jukebox, delay, io or nospc is not.",
                "ops",
                (q.busiest(12, q.rate("nfscope_op_errors_total", "version, op, status", CHOSEN)), "v{{version}} {{op}} {{status}}"),
            ),
        ]),
        ("nfsd: compounds of NFSv4", [
            timeseries(
                "COMPOUND duration",
                "One NFSv4 request with all of its operations, on the server where it takes longest. It rises with its operations, or with how many there are.",
                "s",
                (q.worst_quantile(0.5, "nfscope_compound_duration_seconds", "version", VERSIONS), "v{{version}} p50"),
                (q.worst_quantile(0.99, "nfscope_compound_duration_seconds", "version", VERSIONS), "v{{version}} p99"),
            ),
            timeseries(
                "Operations in a COMPOUND",
                "Their average number. A rise alone is no trouble: clients put more into one request.",
                "short", (q.mean("nfscope_compound_ops", "version", VERSIONS), "v{{version}}"),
            ),
        ]),
        ("nfsd: sessions", [
            timeseries(
                "Slots in use",
                "Slots of its session that a client has in use when it sends a request, on average. It rises with the programs that "
                "wait for the server at the same time.",
                "short", (q.mean("nfscope_session_slots_used", "version"), "v{{version}}"),
            ),
            timeseries(
                "Requests by free slots",
                "Requests of NFSv4.1 and 4.2 sessions. full: the client had every slot in use that the server grants it. Where they rise, "
                "other requests wait in the client.",
                "ops", (q.rate("nfscope_session_requests_total", "version, slots"), "v{{version}} {{slots}}"),
            ),
            timeseries(
                "Replayed COMPOUNDs",
                "COMPOUNDs that were answered from their slot without being executed. A rise means that clients lose replies: look at "
                "the network and at broken connections.",
                "ops", (q.rate("nfscope_session_replays_total", "version"), "v{{version}}"),
            ),
        ]),
        ("nfsd: reads and writes", [
            timeseries(
                "Bytes", "Bytes that READs returned and WRITEs stored. A rise is more demand.",
                "Bps", (q.total("nfscope_io_size_bytes", "version, op", CHOSEN), "v{{version}} {{op}}"), stacked=True,
            ),
            heatmap(
                "Size of the chosen READs and WRITEs",
                "How many bytes one of them moves. Where small ones rise, each byte costs more: applications that write or read "
                "little at a time, or mounts with a small rsize or wsize.",
                "bytes", q.cells("nfscope_io_size_bytes", CHOSEN),
            ),
            timeseries(
                "WRITEs by stability",
                "unstable ones may wait for a COMMIT, data_sync and file_sync ones are durable before they are answered. A rise "
                "of the latter loads the log: O_SYNC, or mounts with the option sync.",
                "ops", (q.rate("nfscope_write_total", "version, stability", VERSIONS), "v{{version}} {{stability}}"),
            ),
            timeseries(
                "Bytes written by stability",
                "The same in bytes. Few bytes beside many stable WRITEs are small synchronous writes.",
                "Bps", (q.rate("nfscope_write_bytes_total", "version, stability", VERSIONS), "v{{version}} {{stability}}"),
            ),
            timeseries(
                "Writes that may be lost",
                "WRITEs and COMMITs that clients take for durable, and of them those that were acknowledged although a crash may lose "
                "them, by reason. Any of async or sync_disabled is a choice that somebody made.",
                "ops",
                (q.rate("nfscope_unsafe_writes_total", "reason"), "{{reason}}"),
                (q.rate("nfscope_durable_writes_total"), "all durable ones"),
            ),
        ]),
    ],
)

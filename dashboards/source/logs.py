"""The logs of the exported file systems: journals, iclogs, tree logs, intent logs."""

from . import queries as q
from .panels import dashboard, heatmap, table, timeseries

VOLUME = "instance, volume"
NAMED = "{{instance}} {{volume}}"


def log(fs: str, what: str, written: str) -> list:
    """What every file system's log has: waits, writes, and its device."""
    where = f'fs="{fs}"'
    panels = [
        heatmap(
            f"{what}: waits",
            "How long threads wait until their changes are durable: each column is a moment, darker is more. A band that rises "
            "makes every synchronous operation slower.",
            "s", q.cells("nfscope_log_wait_seconds", where),
        ),
        timeseries(
            f"{what}: wait",
            "Half of the waits, and 99 of 100, are shorter. Where p99 rises and the log's own writes do not, there are more "
            "changes at a time, not a slower device.",
            "s",
            (q.quantile(0.5, "nfscope_log_wait_seconds", VOLUME, where), f"{NAMED} p50"),
            (q.quantile(0.99, "nfscope_log_wait_seconds", VOLUME, where), f"{NAMED} p99"),
        ),
        timeseries(
            f"{what}: waits and writes",
            "Waits of threads a second, and writes of the log. Many waits for each write are shared by threads that write at "
            "the same time; that both rise together is more synchronous work.",
            "ops",
            (q.count("nfscope_log_wait_seconds", VOLUME, where), f"{NAMED} waits"),
            (q.count("nfscope_log_commit_seconds", VOLUME, where), f"{NAMED} writes"),
        ),
        timeseries(
            f"{what}: waits per write",
            "How many waits one write of the log ends: threads that wait at the same time share it. Where it is near the number "
            "of threads, all of them wait for the log, and more threads share each write.",
            "short",
            (
                f'({q.count("nfscope_log_wait_seconds", VOLUME, where)}) / '
                f'({q.count("nfscope_log_commit_seconds", VOLUME, where)})',
                NAMED,
            ),
        ),
        timeseries(
            f"{what}: {written}",
            "99 of 100 writes of the log itself are done in less. A rise is the log's device: slow, or busy with other things.",
            "s", (q.quantile(0.99, "nfscope_log_commit_seconds", VOLUME, where), f"{NAMED} p99"),
        ),
    ]
    if fs != "btrfs":
        panels.append(timeseries(
            f"{what}: bytes",
            "Bytes written to the log, on the file system's device (main) or on a log device (separate). It rises with "
            "synchronous writes and with changes of metadata.",
            "Bps", (q.rate("nfscope_log_bytes_total", f"{VOLUME}, target", where), f"{NAMED} {{{{target}}}}"),
        ))
    panels.append(table(
        f"{what}: separate device",
        "1 where the log is on a separate device, 0 where it is on the file system's device. A change means that a log device "
        "was added or removed.",
        "short", [("separate", "short", q.by(VOLUME, q.of("nfscope_log_separate", where), "max"))], width=12,
    ))
    return panels


def of_zfs() -> list:
    """Figures that only ZFS has."""
    return [
        timeseries(
            "Commits by the property sync",
            "Commits that were requested of the intent log. Those of disabled were acknowledged without being durable: any rate above "
            "0 is data that a crash loses.",
            "ops", (q.rate("nfscope_zfs_commits_total", f"{VOLUME}, sync"), f"{NAMED} {{{{sync}}}}"),
        ),
        timeseries(
            "Commits and writers",
            "Commits of the intent log as OpenZFS counts them, and those that wrote; the rest found their changes written. "
            "Where writers rise to commits, nothing is shared.",
            "ops",
            (q.rate("nfscope_zfs_zil_commits_total", VOLUME), f"{NAMED} commits"),
            (q.rate("nfscope_zfs_zil_writers_total", VOLUME), f"{NAMED} writers"),
        ),
        timeseries(
            "Changes by kind",
            "Bytes committed to the intent log: copied and needcopy are in the log, indirect went to the main devices. A rise of "
            "indirect where there is a log device means that writes bypass it.",
            "Bps", (q.rate("nfscope_zfs_itx_bytes_total", f"{VOLUME}, kind"), f"{NAMED} {{{{kind}}}}"), stacked=True,
        ),
        timeseries(
            "Waits for a transaction group",
            "Commits that waited for a whole transaction group instead of the log. A rise is a log that cannot serve: a dataset's "
            "first commit, errors, or a log device that is full.",
            "ops", (q.rate("nfscope_zfs_txg_waits_total", f"{VOLUME}, reason"), f"{NAMED} {{{{reason}}}}"),
        ),
        timeseries(
            "Log blocks: write and flush",
            "99 of 100 blocks of the intent log are written, and flushed, in less. Where the flush rises and the write does not, "
            "the device has no protected cache.",
            "s",
            (q.quantile(0.99, "nfscope_zfs_lwb_write_seconds", f"{VOLUME}, target"), f"{NAMED} {{{{target}}}} write"),
            (q.quantile(0.99, "nfscope_zfs_lwb_flush_seconds", f"{VOLUME}, target"), f"{NAMED} {{{{target}}}} flush"),
        ),
        timeseries(
            "Log bytes by device",
            "Bytes of intent log blocks by the disk that they were written to, copies on mirrors included. A rise on the pool's "
            "disks (main) where there is a log device is a log that does not fit there.",
            "Bps",
            (q.rate("nfscope_zfs_log_device_bytes_total", f"{VOLUME}, device, target"), f"{NAMED} {{{{device}}}} {{{{target}}}}"),
            stacked=True,
        ),
        timeseries(
            "Transaction groups",
            "Writing out one transaction group. Where it rises beyond some seconds, the pool is slower than its writers.",
            "s",
            (q.quantile(0.5, "nfscope_zfs_txg_sync_seconds", VOLUME), f"{NAMED} p50"),
            (q.quantile(0.99, "nfscope_zfs_txg_sync_seconds", VOLUME), f"{NAMED} p99"),
        ),
        timeseries(
            "Write throttle",
            "Time that writers were kept waiting because the pool has too much unwritten data, in threads. Any rise is a pool that "
            "cannot write as fast as it is written to.",
            "percentunit", (q.total("nfscope_zfs_throttle_seconds", VOLUME), NAMED),
        ),
        table(
            "Datasets",
            "The properties of each dataset at its last commit. Commits of a dataset with sync=disabled are not durable; with "
            "logbias=throughput they bypass the log device.",
            "short",
            [("known", "short", q.by(f"{VOLUME}, dataset, sync, logbias", q.of("nfscope_zfs_dataset_info"), "max"))],
        ),
    ]


DASHBOARD = dashboard(
    "logs",
    "logs",
    "Journals and intent logs: how long threads wait for them, and how long they take themselves.",
    content=[
        ("jbd2: journal of ext4", log("ext4", "ext4", "commit")),
        ("xfs: log of XFS", log("xfs", "XFS", "iclog")),
        ("btrfs: tree log of btrfs", log("btrfs", "btrfs", "tree log")),
        ("zfs: intent log of ZFS", log("zfs", "ZFS", "log block")),
        ("zfs: figures of ZFS alone", of_zfs()),
    ],
)

"""The disks below the exported file systems."""

from . import queries as q
from .panels import dashboard, heatmap, histogram, table, timeseries, variable

CHOSEN = 'device=~"$device"'
DEVICE = "nfscope_block_device_seconds"
QUEUE = "nfscope_block_queue_seconds"
# The text formats have no buckets of queues.
NATIVE = "Needs native histograms."
NAMED = "{{instance}} {{device}} {{op}}"
EACH = "instance, device, op"

DASHBOARD = dashboard(
    "disks",
    "disks",
    "Block requests: how long they wait, how long the devices take, how much they move.",
    variables=[variable("device", histogram(DEVICE), where="")],
    content=[
        ("block: devices", [
            heatmap(
                "Device time",
                "From issue to completion, all chosen devices. A band that rises is a device that has become slow, or one that "
                "gets more requests than it can serve at a time.",
                "s", q.cells(DEVICE, CHOSEN),
            ),
            heatmap(
                "Queue time",
                "From a request's insertion into a scheduler or software queue to its issue. A rise is a device that takes no "
                f"more requests at a time. {NATIVE}",
                "s", q.native_cells(QUEUE, CHOSEN),
            ),
            timeseries(
                "Device p99",
                "99 of 100 requests are done in less. Where it rises without a higher rate, the device itself is slow: a rebuild, "
                "a full SSD, a failing disk.",
                "s", (q.quantile(0.99, DEVICE, EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Device mean", "Average time from issue to completion. Beside p99 it says whether all requests are slow or some.",
                "s", (q.mean(DEVICE, EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Queue p99",
                f"99 of 100 requests are issued in less. Where it rises, requests pile up in front of the device. {NATIVE}",
                "s", (q.native_quantile(0.99, QUEUE, EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Queue mean",
                "Average time in the queue. Where it rises with the device's mean, the device is slow; where it rises alone, it gets "
                "more requests than it takes at a time.",
                "s", (q.mean(QUEUE, EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Requests", "Completed block requests a second. Flushes that rise come from synchronous writes.",
                "iops", (q.count(DEVICE, EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Bytes", "Bytes of completed requests. A rise is more demand, or a smaller page cache.",
                "Bps", (q.rate("nfscope_block_bytes_total", EACH, CHOSEN), NAMED),
            ),
            timeseries(
                "Bytes of nfsd",
                "Bytes that nfsd threads had read from devices, read-ahead included, and bytes that they have changed in memory. Where "
                "the devices of exports read much more, another program of the server uses them.",
                "Bps", (q.rate("nfscope_thread_io_bytes_total", "instance, op"), "{{instance}} {{op}}"),
            ),
            timeseries(
                "Requests at a time",
                "Requests that the device has under way on average while it has any. Where it rises with the load and the "
                "device's mean stays, the device serves many at once: more threads get more from it.",
                "short",
                (
                    f'({q.total(DEVICE, "instance, device", CHOSEN)}) / '
                    f'({q.rate("nfscope_block_busy_seconds_total", "instance, device", CHOSEN)})',
                    "{{instance}} {{device}}",
                ),
            ),
            timeseries(
                "In flight", "Requests issued and not completed. Where it rises, the device completes fewer requests than it gets.",
                "short", (q.by("instance, device", q.of("nfscope_block_inflight", CHOSEN)), "{{instance}} {{device}}"),
            ),
            timeseries(
                "Busy",
                "Part of the time in which the device had requests in flight. A rise is more demand or a slower device; a device "
                "that serves many requests at once has room at 100 %, too.",
                "percentunit", (q.rate("nfscope_block_busy_seconds_total", "instance, device", CHOSEN), "{{instance}} {{device}}"),
            ),
            table(
                "Devices of exports",
                "The devices that each export lies on, through device mapper, RAID and partitions. A slow device that is not here "
                "keeps no client waiting. Empty where the devices of an export are unknown (ZFS).",
                "short",
                [("known", "short", q.by("instance, export, device", q.of("nfscope_export_device_info"), "max"))],
            ),
            timeseries(
                "FUA writes",
                "Writes a second that had to reach the medium by themselves (force unit access). They rise with synchronous "
                "writes on devices that offer it, instead of flushes.",
                "iops", (q.rate("nfscope_block_fua_total", "instance, device", CHOSEN), "{{instance}} {{device}}"),
            ),
        ]),
    ],
)

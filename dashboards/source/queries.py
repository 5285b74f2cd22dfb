"""PromQL as the dashboards ask it.

A server's histograms are stored as native ones, as classic ones, or as both, and servers of one fleet differ. Three rules keep
totals right whatever is stored, in engines that have no native histograms, too:

- Counts and sums are asked of recorded series, in which each server has the same name however its histograms are stored.
- Quantiles are made for each server. `native or classic` then drops nothing: the two arms have the labels of the server.
- Series of servers have the labels cluster and instance. What has the same name on two servers is never one line.

Queues of disks have no classic buckets: their quantiles and heat maps ask for native ones only.
"""

from . import recorded

INTERVAL = "$__rate_interval"
CHOSEN = 'cluster=~"$cluster",job=~"$job",instance=~"$instance"'


def of(metric: str, where: str = "") -> str:
    """The metric of the servers that are chosen at the top of the dashboard."""
    return f"{metric}{{{CHOSEN},{where}}}" if where else f"{metric}{{{CHOSEN}}}"


def by(labels: str, what: str, aggregate: str = "sum") -> str:
    """Aggregated by these labels, or as a whole where there are none. An instance is one of its cluster."""
    labels = labels.replace("instance", "cluster, instance")
    return f"{aggregate} by ({labels}) ({what})" if labels else f"{aggregate}({what})"


def rate(metric: str, labels: str = "", where: str = "") -> str:
    """What a counter grows by in a second."""
    return by(labels, f"rate({of(metric, where)}[{INTERVAL}])")


def share(metric: str, label: str, where: str = "") -> str:
    """What part of a counter's growth each value of a label has: they add up to 1."""
    return f"{rate(metric, label, where)} / scalar({rate(metric, '', where)})"


def coverage(what: str, labels: str) -> str:
    """What nfscope counted over what the kernel counted of ops, rpcs or io_bytes; nothing while there is nothing to count."""
    return f"{rate(f'nfscope_timed_{what}_total', labels)} / ({rate(f'nfscope_kernel_{what}_total', labels)} > 0)"


def busiest(n: int, what: str) -> str:
    """The n greatest, so that a dashboard with a hundred clients stays readable."""
    return f"topk({n}, {what})"


def count(metric: str, labels: str = "", where: str = "") -> str:
    """Events that a histogram counts in a second."""
    return by(labels, of(recorded.part(metric, "count"), where))


def total(metric: str, labels: str = "", where: str = "") -> str:
    """What a histogram's sum grows by in a second."""
    return by(labels, of(recorded.part(metric, "sum"), where))


def mean(metric: str, labels: str = "", where: str = "") -> str:
    """The average of what a histogram has seen."""
    return f"{total(metric, labels, where)} / {count(metric, labels, where)}"


def quantile(q: float, metric: str, labels: str, where: str = "") -> str:
    """The value that a share of q stays below, of each server."""
    assert "instance" in labels, f"{metric}: no quantile can be made of native and classic histograms together"
    classic = rate(metric + "_bucket", f"{labels}, le", where)
    return f"{native_quantile(q, metric, labels, where)} or histogram_quantile({q}, {classic})"


def worst_quantile(q: float, metric: str, labels: str = "", where: str = "") -> str:
    """The same of the server that has the greatest."""
    each = quantile(q, metric, f"instance, {labels}" if labels else "instance", where)
    return by(labels, each, "max")


def native_quantile(q: float, metric: str, labels: str, where: str = "") -> str:
    """The same of a family that has no classic buckets."""
    assert "instance" in labels, f"{metric}: disks of the same name of two servers would be one"
    return f"histogram_quantile({q}, {rate(metric, labels, where)})"


def native_cells(metric: str, where: str = "") -> tuple[str]:
    """A heat map's only query, of a family that has no classic buckets."""
    return (rate(metric, "", where),)


def cells(metric: str, where: str = "") -> tuple[str, str]:
    """A heat map's two queries: from the native histogram, and from the classic buckets."""
    return rate(metric, "", where), rate(metric + "_bucket", "le", where)

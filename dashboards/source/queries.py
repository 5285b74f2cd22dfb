"""PromQL as the dashboards ask it.

A Prometheus stores nfscope's histograms as native ones, as classic ones, or as both. Queries ask for the native one `or`
the classic one, so that the same dashboard shows whatever is there. Both arms carry the same labels, so that nothing is
shown twice where both are stored. Disks have no classic buckets: their quantiles and heat maps ask for native ones only.
"""

INTERVAL = "$__rate_interval"


def of(metric: str, where: str = "") -> str:
    """The metric of the servers that are chosen at the top of the dashboard."""
    labels = 'job=~"$job",instance=~"$instance"'
    return f"{metric}{{{labels},{where}}}" if where else f"{metric}{{{labels}}}"


def by(labels: str, what: str, aggregate: str = "sum") -> str:
    """Aggregated by these labels, or as a whole where there are none."""
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
    native = by(labels, f"histogram_count(rate({of(metric, where)}[{INTERVAL}]))")
    return f"{native} or {rate(metric + '_count', labels, where)}"


def total(metric: str, labels: str = "", where: str = "") -> str:
    """What a histogram's sum grows by in a second."""
    native = by(labels, f"histogram_sum(rate({of(metric, where)}[{INTERVAL}]))")
    return f"{native} or {rate(metric + '_sum', labels, where)}"


def mean(metric: str, labels: str = "", where: str = "") -> str:
    """The average of what a histogram has seen."""
    native = rate(metric, labels, where)
    classic = f"{rate(metric + '_sum', labels, where)} / {rate(metric + '_count', labels, where)}"
    return f"histogram_sum({native}) / histogram_count({native}) or {classic}"


def quantile(q: float, metric: str, labels: str = "", where: str = "") -> str:
    """The value that a share of q stays below."""
    with_le = f"{labels}, le" if labels else "le"
    return f"{native_quantile(q, metric, labels, where)} or histogram_quantile({q}, {rate(metric + '_bucket', with_le, where)})"


def native_quantile(q: float, metric: str, labels: str = "", where: str = "") -> str:
    """The same of a family that has no classic buckets."""
    return f"histogram_quantile({q}, {rate(metric, labels, where)})"


def native_cells(metric: str, where: str = "") -> tuple[str]:
    """A heat map's only query, of a family that has no classic buckets."""
    return (rate(metric, "", where),)


def cells(metric: str, where: str = "") -> tuple[str, str]:
    """A heat map's two queries: from the native histogram, and from the classic buckets."""
    return rate(metric, "", where), rate(metric + "_bucket", "le", where)

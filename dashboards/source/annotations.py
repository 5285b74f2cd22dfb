"""Marks in the panels of every dashboard: findings, restarts and changes."""

from grafana_foundation_sdk.models import dashboard as d

from .queries import by, of

SOURCE = d.DataSourceRef(type_val="prometheus", uid="${datasource}")
# Time before each point in which a change counts: Grafana asks for a point a minute, and a change must not fall between two.
WITHIN = "2m"


class Annotation(d.AnnotationQuery):
    """A mark while the expression has a series. The library lacks the formats of Prometheus annotations."""

    def __init__(self, name: str, colour: str, expr: str, title: str, text: str, tags: str = "") -> None:
        super().__init__(name=name, datasource=SOURCE, enable=True, icon_color=colour, expr=expr)
        self.formats = {"titleFormat": title, "textFormat": text, "tagKeys": tags, "step": "60s"}

    def build(self) -> "Annotation":
        return self

    def to_json(self) -> dict[str, object]:
        return super().to_json() | self.formats


def changed(metric: str, aggregate: str = "max") -> str:
    """Servers on which a value has changed."""
    return f"{by('instance', f'changes({of(metric)}[{WITHIN}])', aggregate)} > 0"


def called(what: str, expr: str) -> str:
    """The same with a label that says what has changed."""
    return f'label_replace({expr}, "what", "{what}", "", "")'


RELEASES = by("instance, version", of("nfscope_build_info"), "max")
# An agent that was away for less than an hour is no change.
EARLIER = by("instance, version", f"last_over_time({of('nfscope_build_info')}[1h] offset {WITHIN})", "max")
# The kernel resizes pools with a limit by itself.
BY_HAND = f"({changed('nfscope_threads', 'sum')}) unless on (cluster, instance) {of('nfscope_threads_limit')}"

ALL = [
    Annotation(
        "Findings", "red", of("nfscope_finding_info"),
        "{{cluster}} {{instance}}: {{kind}} ({{severity}})", "{{text}}. First action: {{action}}", "kind,severity",
    ),
    Annotation(
        "Restarts", "blue",
        " or ".join([
            called("the agent restarted", changed("process_start_time_seconds")),
            called("the NFS server starts, stops or changes its threads", f"{by('instance', of('nfscope_server_change_seconds'), 'max')} > 0"),
        ]),
        "{{cluster}} {{instance}}", "{{what}}",
    ),
    Annotation(
        "Changes", "purple",
        " or ".join([
            called("number of nfsd threads changed", BY_HAND),
            called("number of CPUs changed", changed("nfscope_cpus")),
            called("another release of nfscope", f"{RELEASES} unless {EARLIER}"),
        ]),
        "{{cluster}} {{instance}}", "{{what}}",
    ),
]

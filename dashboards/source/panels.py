"""Panels, variables and dashboards in Grafana's terms, as all dashboards of nfscope build them.

Every panel has a title, a description that says what it shows and what it means, and a unit: the functions here ask for
all three.
"""

import itertools

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as dashboard_builders
from grafana_foundation_sdk.builders import heatmap as heatmap_builders
from grafana_foundation_sdk.builders import stat as stat_builders
from grafana_foundation_sdk.builders import statetimeline as statetimeline_builders
from grafana_foundation_sdk.builders import table as table_builders
from grafana_foundation_sdk.builders import timeseries as timeseries_builders
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from . import annotations
from .queries import CHOSEN

SOURCE = d.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "nfscope"

# A query, and the legend of its series.
Query = tuple[str, str]


def _query(n: int, expr: str, legend: str = "") -> Dataquery:
    # Names of instances are unique only within a cluster.
    legend = legend.replace("{{instance}}", "{{cluster}} {{instance}}")
    query = Dataquery().expr(expr).ref_id(chr(ord("A") + n)).datasource(SOURCE)
    return query.legend_format(legend) if legend else query


def _described(panel, title: str, description: str, unit: str, width: int, height: int):
    return panel.title(title).description(description).unit(unit).datasource(SOURCE).span(width).height(height)


def timeseries(title: str, description: str, unit: str, *queries: Query, stacked: bool = False, top: float | None = None, width: int = 12):
    """Lines over time; stacked where they are parts of a whole."""
    panel = _described(timeseries_builders.Panel(), title, description, unit, width, 8)
    panel = panel.min(0).line_width(1).show_points(c.VisibilityMode.NEVER).fill_opacity(60 if stacked else 8)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(c.StackingMode.NORMAL).group("A"))
    if top is not None:
        panel = panel.max(top)
    legend = common.VizLegendOptions().display_mode(c.LegendDisplayMode.TABLE).placement(c.LegendPlacement.RIGHT)
    panel = panel.legend(legend.show_legend(True).calcs(["mean", "max"]))
    panel = panel.tooltip(common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING))
    for n, (expr, name) in enumerate(queries):
        panel = panel.with_target(_query(n, expr, name).range())
    return panel


def stat(title: str, description: str, unit: str, expr: str, limits: tuple[float, float] | None = None, rising: bool = True):
    """One number now, over its recent course. Limits colour it: amber and red as it rises, or as it falls."""
    panel = _described(stat_builders.Panel(), title, description, unit, 4, 4)
    panel = panel.graph_mode(c.BigValueGraphMode.AREA).color_mode(c.BigValueColorMode.VALUE)
    steps = [d.Threshold(value=None, color="green")]
    if limits:
        amber, red = limits
        colours = ["green", "orange", "red"] if rising else ["red", "orange", "green"]
        bounds = [None, amber, red] if rising else [None, red, amber]
        steps = [d.Threshold(value=v, color=colour) for v, colour in zip(bounds, colours)]
    panel = panel.thresholds(dashboard_builders.ThresholdsConfig().mode(d.ThresholdsMode.ABSOLUTE).steps(steps))
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.with_target(_query(0, expr).range())


def heatmap(title: str, description: str, unit: str, queries: tuple[str, ...], width: int = 12):
    """How values spread, over time. Grafana draws the native histogram if the server has one, else the classic buckets, if any.

    It does so because of the two formats: a native histogram comes as cells, and the panel takes cells first.
    """
    native, *classic = queries
    if classic:
        description += " Of servers of which some store native histograms and some classic ones, it shows the native ones alone."
    panel = _described(heatmap_builders.Panel(), title, description, unit, width, 8)
    colour = heatmap_builders.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64)
    panel = panel.color(colour.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5).fill("dark-orange"))
    panel = panel.calculate(False).y_axis(heatmap_builders.YAxisConfig().unit(unit)).cell_gap(0)
    panel = panel.filter_values(heatmap_builders.FilterValueRange().le(1e-9))
    panel = panel.with_target(_query(0, native).range().format(PromQueryFormat.TIME_SERIES))
    for query in classic:
        panel = panel.with_target(_query(1, query, "{{le}}").range().format(PromQueryFormat.HEATMAP))
    return panel


def state_timeline(title: str, description: str, query: Query, off: str, on: str, width: int = 24):
    """A bar for each series that says when it was 1."""
    panel = _described(statetimeline_builders.Panel(), title, description, "short", width, 8)
    results = {
        "0": d.ValueMappingResult(text=off, color="green", index=0),
        "1": d.ValueMappingResult(text=on, color="red", index=1),
    }
    panel = panel.mappings([d.ValueMap(options=results)]).show_value(c.VisibilityMode.NEVER).fill_opacity(80)
    panel = panel.merge_values(True).legend(common.VizLegendOptions().show_legend(True))
    return panel.with_target(_query(0, *query).range())


# Link from a server's name in a table to its own pages.
OF_SERVER = "/d/nfscope-overview?var-datasource=${datasource}&var-cluster=${__data.fields.cluster}&var-instance=${__value.text}&${__url_time_range}"


def table(title: str, description: str, unit: str, columns: list[tuple[str, str, str]], width: int = 24,
          servers: bool = False, required: str = ""):
    """A table of what is now: a column for each name, unit and expression, beside the labels that they share.

    Names of servers lead to their pages where that is asked for. Rows without a value in the required column are left out.
    """
    panel = _described(table_builders.Panel(), title, description, unit, width, 9)
    names = {}
    for n, (name, column_unit, expr) in enumerate(columns):
        query = _query(n, expr).instant().format(PromQueryFormat.TABLE)
        panel = panel.with_target(query)
        names["Value" if len(columns) == 1 else f"Value #{chr(ord('A') + n)}"] = name
        panel = panel.override_by_name(name, [d.DynamicConfigValue(id_val="unit", value=column_unit)])
    panel = panel.with_transformation(d.DataTransformerConfig(id_val="merge", options={}))
    hidden = {name: True for name in ("Time", "__name__")}
    organize = {"excludeByName": hidden, "renameByName": names, "indexByName": {}}
    panel = panel.with_transformation(d.DataTransformerConfig(id_val="organize", options=organize))
    if required:
        there = {"filters": [{"fieldName": required, "config": {"id": "isNotNull", "options": {}}}], "type": "include", "match": "all"}
        panel = panel.with_transformation(d.DataTransformerConfig(id_val="filterByValue", options=there))
    if servers:
        link = {"title": "overview of this server", "url": OF_SERVER}
        panel = panel.override_by_name("instance", [d.DynamicConfigValue(id_val="links", value=[link])])
    return panel.sort_by([common.TableSortByFieldState().display_name(columns[0][0]).desc(True)])


def variable(name: str, metric: str, label: str = "", where: str = CHOSEN, everything: str = ".+"):
    """A variable with the values that a label of that metric has; several may be chosen, or all."""
    label = label or name
    selector = f"{metric}{{{where}}}" if where else metric
    current = d.VariableOption(selected=True, text="All", value="$__all")
    query = {"query": f"label_values({selector}, {label})", "refId": name}
    built = dashboard_builders.QueryVariable(name).label(name.capitalize()).query(query).datasource(SOURCE).current(current)
    built = built.refresh(d.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(d.VariableSort.NATURAL_ASC)
    return built.multi(True).include_all(True).all_value(everything)


def histogram(metric: str) -> str:
    """For the variables: a selector of the metric's series, however the server stores histograms."""
    return f'{{__name__=~"{metric}(_count)?",{CHOSEN}}}'


def dashboard(word: str, title: str, description: str, variables=(), content=()):
    """What builds a dashboard of rows, each with its title and its panels, and of further rows that it is called with.

    A row's title begins with the words of its probes.
    """

    def build(further=()):
        return _dashboard(word, title, description, variables, [*content, *further])

    return build


def _dashboard(word: str, title: str, description: str, variables, content):
    built = dashboard_builders.Dashboard(f"nfscope: {title}").uid(f"nfscope-{word}").description(description).tags([TAG])
    built = built.time("now-1h", "now").refresh("30s").timezone("browser").readonly()
    built = built.tooltip(d.DashboardCursorSync.CROSSHAIR)
    links = dashboard_builders.DashboardLink("nfscope").type(d.DashboardLinkType.DASHBOARDS).tags([TAG])
    built = built.link(links.as_dropdown(False).include_vars(True).keep_time(True))
    built = built.with_variable(dashboard_builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    # A single Prometheus has no label cluster: its servers are the series without one.
    built = built.with_variable(variable("cluster", "nfscope_build_info", where="", everything=".*"))
    built = built.with_variable(variable("job", "nfscope_build_info", where='cluster=~"$cluster"'))
    built = built.with_variable(variable("instance", "nfscope_build_info", where='cluster=~"$cluster",job=~"$job"'))
    for extra in variables:
        built = built.with_variable(extra)
    for annotation in annotations.ALL:
        built = built.annotation(annotation)
    number_of = itertools.count(1)
    for name, panels in content:
        built = built.with_row(dashboard_builders.Row(name).id(next(number_of)))
        for panel in panels:
            built = built.with_panel(panel.id(next(number_of)))
    return built.build()

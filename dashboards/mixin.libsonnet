// Dashboards, recording rules, objectives and alerts of nfscope as a monitoring mixin. generate.py makes what is imported here, and
// what is rendered with the settings below is what grafana/ and rules/ have.
local dashboards = {
  'fleet.json': import 'grafana/fleet.json',
  'overview.json': import 'grafana/overview.json',
  'operations.json': import 'grafana/operations.json',
  'phases.json': import 'grafana/phases.json',
  'threads.json': import 'grafana/threads.json',
  'logs.json': import 'grafana/logs.json',
  'disks.json': import 'grafana/disks.json',
  'clients.json': import 'grafana/clients.json',
  'agent.json': import 'grafana/agent.json',
};
// The files of rules/ as JSON.
local rules = import 'rules/mixin.json';
local shipped = import 'config.json';

// The values of an object or a list that are texts, changed.
local texts(change, value) =
  if std.isString(value) then change(value)
  else if std.isArray(value) then [texts(change, v) for v in value]
  else if std.isObject(value) then { [name]: texts(change, value[name]) for name in std.objectFields(value) }
  else value;

{
  _config+:: {
    // Stands in front of docs/findings.md#... in each alert.
    runbooks: shipped.runbooks,
    // The label that tells servers of several Prometheus apart.
    clusterLabel: 'cluster',
    // The job of the scrape configuration.
    job: 'nfscope',
    // What evaluates the rules: prometheus (Thanos, Mimir), or victoriametrics.
    engine: 'prometheus',
    // Of the dashboards.
    tags: ['nfscope'],
  },

  local config = $._config,
  local replaced(text, pairs) = std.foldl(function(t, pair) std.strReplace(t, pair[0], pair[1]), pairs, text),
  local cluster = [
    [before + 'cluster' + after, before + config.clusterLabel + after]
    for before in ['(', '{', ',', ', ']
    for after in [',', '=', '}', ')']
  ] + [[before + 'cluster', before + config.clusterLabel] for before in ['$labels.', '__data.fields.']],
  local localized(text) = replaced(text, cluster + [
    ['job="nfscope"', 'job="' + config.job + '"'],
  ]),
  local runbook(text) =
    if std.startsWith(text, shipped.runbooks + 'docs/findings.md#')
    then config.runbooks + std.substr(text, std.length(shipped.runbooks), std.length(text))
    else text,

  grafanaDashboards+:: {
    [name]: texts(localized, dashboards[name]) { tags: config.tags }
    for name in std.objectFields(dashboards)
  },
  prometheusRules+:: {
    groups+: texts(function(t) runbook(localized(t)), rules[config.engine]),
  },
  prometheusAlerts+:: {
    groups+: texts(function(t) runbook(localized(t)), rules.alerts),
  },
}

{
  const data = JSON.parse(document.getElementById("data").textContent);
  const { windows: all, ...greeting } = data.windows;
  const end = all.length ? all[all.length - 1].at : 0;
  const some = (windows) => ({ ...greeting, since: "all", more: false, windows });
  // The windows of the last quarter of an hour answer as from an agent's memory, older ones as from its disk.
  const windows = (q) => {
    if (q.has("since")) return some([]);
    if (!q.has("from")) return some(all.filter((w) => w.at > end - 900));
    return some(all.filter((w) => w.at > Number(q.get("from")) && w.at - w.seconds < Number(q.get("to"))));
  };
  const answers = { "/windows": windows, "/findings": () => data.findings, "/probes": () => data.probes, "/healthz": () => ({}) };
  window.fetch = async (path) => {
    const [name, query] = path.split("?");
    const body = answers[name]?.(new URLSearchParams(query));
    return body ? new Response(JSON.stringify(body)) : new Response("This is a report: nothing is measured now.", { status: 404 });
  };
  if (!location.hash) history.replaceState(null, "", data.hash);
}

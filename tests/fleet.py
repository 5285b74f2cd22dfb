#!/usr/bin/python3
"""A fleet of simulated agents, kept by engines that exist: tests/fleet.py [ENGINE...]; `make fleet` builds what it needs first.

ENGINE is prometheus-native, prometheus-classic, victoriametrics or thanos; without one, the first three. Of each: every
query of the fleet page is asked and must be answered, totals must be those of the agents, and cardinality, bytes, memory and
CPU time are printed as a row of a Markdown table. FLEET_AGENTS (200), FLEET_SECONDS (270) and FLEET_SIZE (large) change the fleet.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("NFSCOPE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nfscope") / "lab"
AGENTS = int(os.environ.get("FLEET_AGENTS", "200"))
SECONDS = int(os.environ.get("FLEET_SECONDS", "270"))
SIZE = os.environ.get("FLEET_SIZE", "")
PROMETHEUS = CACHE / "prometheus/3.5/prometheus"
VICTORIA = CACHE / "victoriametrics/1.79"
THANOS = CACHE / "thanos/thanos"
RULES = HERE / "dashboards/rules"
INTERVAL = 10
TICKS = os.sysconf("SC_CLK_TCK")


def port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url: str, data: bytes | None = None, within: int = 60) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=within) as answer:
        return answer.read()


class Process:
    """A program with a log of its own, which ends with this one."""

    def __init__(self, dir: Path, name: str, *command, **options):
        self.log = open(dir / f"{name}.log", "wb")
        out = options.pop("stdout", self.log)
        self.name = name
        self.child = subprocess.Popen([str(c) for c in command], stdout=out, stderr=self.log, cwd=dir, **options)

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        lines = Path(f"/proc/{self.child.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Engine:
    """What is started for one measurement, and where its API is."""

    def __init__(self, dir: Path, targets: list[str]):
        self.dir, self.targets = dir, targets
        self.processes: list[Process] = []
        self.api = ""

    def start(self, name: str, *command) -> Process:
        process = Process(self.dir, name, *command)
        self.processes.append(process)
        return process

    def configuration(self, native: int, extra: str) -> Path:
        """The example's scrape job for all targets; the first so many are stored as native histograms."""
        text = (HERE / "deploy/monitoring/prometheus.yml").read_text().split("rule_files:")[0] + extra + "\nscrape_configs:\n"
        for job, protocols, targets in (
            ("native", "[PrometheusProto]", self.targets[:native]),
            ("classic", "[PrometheusText0.0.4]", self.targets[native:]),
        ):
            if targets:
                text += f"  - job_name: {job}\n    scrape_protocols: {protocols}\n    static_configs: [{{targets: {json.dumps(targets)}}}]\n"
                text += "    relabel_configs: [{target_label: job, replacement: nfscope}]\n"
        path = self.dir / "prometheus.yml"
        path.write_text(text)
        return path

    def ask(self, query: str) -> list:
        parameters = urllib.parse.urlencode({"query": query})
        try:
            return json.loads(get(f"{self.api}/api/v1/query?{parameters}"))["data"]["result"]
        except urllib.error.HTTPError as e:
            raise SystemExit(f"{type(self).__name__}: {query}: {e.read().decode(errors='replace')[:500]}") from e

    def number(self, query: str) -> float:
        found = self.ask(query)
        return float(found[0]["value"][1]) if found else float("nan")

    def series(self) -> float:
        return self.number('count({__name__=~".+"})')

    def bytes_on_disk(self) -> float:
        """Of the samples that were counted when this is called, once they lie as they will stay."""
        raise NotImplementedError

    def samples(self) -> float:
        raise NotImplementedError


def size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


class Prometheus(Engine):
    native = 0

    def begin(self):
        at = port()
        self.api = f"http://127.0.0.1:{at}"
        rules = f"rule_files: [{json.dumps(str(RULES / '*.yml'))}]\n"
        self.start(
            "prometheus", PROMETHEUS, f"--config.file={self.configuration(len(self.targets) * self.native, rules)}",
            f"--storage.tsdb.path={self.dir}/data", f"--web.listen-address=127.0.0.1:{at}", "--web.enable-admin-api",
            "--enable-feature=native-histograms",
        )

    def samples(self) -> float:
        metrics = get(f"{self.api}/metrics").decode().splitlines()
        return sum(float(m.rsplit(" ", 1)[1]) for m in metrics if m.startswith("prometheus_tsdb_head_samples_appended_total"))

    def bytes_on_disk(self) -> float:
        get(f"{self.api}/api/v1/admin/tsdb/snapshot", b"")
        return size(self.dir / "data/snapshots")


class PrometheusClassic(Prometheus):
    native = 0


class PrometheusNative(Prometheus):
    native = 1


class Agent(Engine):
    """Prometheus in agent mode in front."""

    native = 0.0

    def agent(self, write: str):
        remote = f"remote_write:\n  - url: {write}\n    send_native_histograms: {'true' if self.native else 'false'}\n"
        configuration = self.configuration(int(len(self.targets) * self.native), remote)
        # No rules are evaluated here.
        text = configuration.read_text().replace("  evaluation_interval: 10s\n", "")
        configuration.write_text(text)
        self.start(
            "prometheus-agent", PROMETHEUS, "--agent", f"--config.file={configuration}",
            f"--storage.agent.path={self.dir}/agent", f"--web.listen-address=127.0.0.1:{port()}", "--enable-feature=native-histograms",
        )


class VictoriaMetrics(Agent):
    def begin(self):
        at = port()
        self.api = f"http://127.0.0.1:{at}"
        self.start("victoria-metrics", VICTORIA / "victoria-metrics", f"-storageDataPath={self.dir}/data", f"-httpListenAddr=127.0.0.1:{at}")
        wait(f"{self.api}/health")
        self.agent(f"{self.api}/api/v1/write")
        self.start(
            "vmalert", VICTORIA / "vmalert", f"-rule={RULES}/victoriametrics/*.yml", f"-datasource.url={self.api}",
            f"-remoteWrite.url={self.api}", f"-remoteRead.url={self.api}", "-notifier.url=http://127.0.0.1:9", "-evaluationInterval=10s",
            f"-httpListenAddr=127.0.0.1:{port()}",
        )

    def samples(self) -> float:
        metrics = get(f"{self.api}/metrics").decode().splitlines()
        return sum(float(m.rsplit(" ", 1)[1]) for m in metrics if m.startswith("vm_rows_inserted_total"))

    def bytes_on_disk(self) -> float:
        get(f"{self.api}/internal/force_flush")
        get(f"{self.api}/internal/force_merge")
        time.sleep(20)
        return size(self.dir / "data")


class Thanos(Agent):
    """All servers are stored as native histograms."""

    native = 1.0

    def begin(self):
        receive, write, grpc, query, query_grpc = (port() for _ in range(5))
        self.receive = f"http://127.0.0.1:{receive}"
        self.api = f"http://127.0.0.1:{query}"
        self.start(
            "thanos-receive", THANOS, "receive", f"--tsdb.path={self.dir}/data", '--label=replica="a"',
            f"--http-address=127.0.0.1:{receive}", f"--remote-write.address=127.0.0.1:{write}", f"--grpc-address=127.0.0.1:{grpc}",
            f"--receive.local-endpoint=127.0.0.1:{grpc}",
        )
        self.start(
            "thanos-query", THANOS, "query", f"--http-address=127.0.0.1:{query}", f"--grpc-address=127.0.0.1:{query_grpc}",
            f"--endpoint=127.0.0.1:{grpc}", "--query.replica-label=replica", "--query.replica-label=tenant_id",
        )
        wait(f"{self.receive}/-/ready")
        wait(f"{self.api}/-/ready")
        url = f"http://127.0.0.1:{write}/api/v1/receive"
        self.agent(url)
        (self.dir / "write.yml").write_text(f"remote_write:\n  - url: {url}\n    send_native_histograms: true\n")
        self.start(
            "thanos-rule", THANOS, "rule", f"--data-dir={self.dir}/rule", f"--rule-file={RULES}/*.yml", f"--query={self.api}",
            f"--remote-write.config-file={self.dir}/write.yml", "--eval-interval=10s", '--label=ruler="a"', "--alert.label-drop=ruler",
            f"--http-address=127.0.0.1:{port()}", f"--grpc-address=127.0.0.1:{port()}",
        )

    def samples(self) -> float:
        metrics = get(f"{self.receive}/metrics").decode().splitlines()
        return sum(float(m.rsplit(" ", 1)[1]) for m in metrics if m.startswith("prometheus_tsdb_head_samples_appended_total"))

    def bytes_on_disk(self) -> float:
        # It writes its blocks when it ends.
        next(p for p in self.processes if p.name == "thanos-receive").stop()
        blocks = [f.parent for f in (self.dir / "data").rglob("meta.json")]
        return sum(size(b) for b in blocks) if blocks else float("nan")


def wait(url: str):
    for _ in range(600):
        try:
            return get(url)
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def page_queries() -> list[tuple[str, str]]:
    page = json.loads((HERE / "dashboards/grafana/fleet.json").read_text())
    everything = {"$cluster": ".*", "$job": ".+", "$instance": ".+", "$__rate_interval": "1m"}
    out = []
    for panel in page["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for name, value in everything.items():
                query = query.replace(name, value)
            out.append((panel["title"], query))
    return out


def check(engine: Engine, operations: float) -> str:
    """Every query of the page answers, and totals are right: within two minutes, because a busy host makes scrapes and rules late."""
    empty = page_queries()
    for _ in range(24):
        # There is no last week: its queries are asked and may be empty.
        empty = [(title, query) for title, query in empty if not engine.ask(query) and " offset 1w" not in query]
        if not empty:
            break
        time.sleep(5)
    if empty:
        raise SystemExit(f"{type(engine).__name__}: without an answer:\n" + "\n".join(f"{t}: {q}" for t, q in empty))
    # A server whose scrape failed is missing until the next, and a rate whose last samples have not come is too small.
    for _ in range(24):
        servers = engine.number('count(max by (cluster, instance) (nfscope_build_info))')
        counted = engine.number('sum(instance:nfscope_operations:rate5m)')
        if servers == len(engine.targets) and abs(counted / operations - 1) <= 0.01:
            break
        time.sleep(5)
    if servers != len(engine.targets) or abs(counted / operations - 1) > 0.01:
        raise SystemExit(f"{type(engine).__name__}: {servers:.0f} servers, {counted:.0f} operations a second; truth: {len(engine.targets)}, {operations:.0f}")
    return f"{counted:,.0f} of {operations:,.0f}"


ENGINES = {
    "prometheus-native": (PrometheusNative, PROMETHEUS),
    "prometheus-classic": (PrometheusClassic, PROMETHEUS),
    "victoriametrics": (VictoriaMetrics, VICTORIA / "vmalert"),
    "thanos": (Thanos, THANOS),
}


def measure(name: str, fleet: dict, dir: Path) -> str:
    engine = ENGINES[name][0](dir, fleet["targets"])
    try:
        engine.begin()
        # With the rest, more than the 5 minutes that recorded rates look back: before, they are too small.
        time.sleep(75)
        before = {p.name: p.cpu() for p in engine.processes}
        samples, began = engine.samples(), time.monotonic()
        time.sleep(SECONDS)
        cpu = {p.name: p.cpu() - before[p.name] for p in engine.processes}
        rate = (engine.samples() - samples) / (time.monotonic() - began)
        elapsed = time.monotonic() - began
        totals = check(engine, sum(fleet["operations"]))
        scraped = engine.number('avg(scrape_samples_post_metric_relabeling{job="nfscope"})')
        series = engine.series()
        memory = {p.name: p.memory() for p in engine.processes}
        total = engine.samples()
        disk = engine.bytes_on_disk()
        each = ", ".join(f"{p} {1e6 * s / (rate * elapsed):.1f}" for p, s in cpu.items())
        held = ", ".join(f"{p} {m:.0f}" for p, m in memory.items())
        return (
            f"| {name} | {len(fleet['targets'])} | {scraped:.0f} | {series:,.0f} | {rate:,.0f} | {disk / total:.2f} | {held} | {each} "
            f"| {totals} |"
        )
    finally:
        for process in reversed(engine.processes):
            if process.child.poll() is None:
                process.stop()


def main():
    names = sys.argv[1:] or ["prometheus-native", "prometheus-classic", "victoriametrics"]
    for name in names:
        if name not in ENGINES or not ENGINES[name][1].is_file():
            sys.exit(f"error: no engine {name}, or its program is missing\n  fix: tests/setup/setup.sh monitoring fleet")
    for name in ENGINES:
        if name not in names:
            print(f"{name}: left out", file=sys.stderr)
    program = HERE / "target/debug/examples/fleet"
    if not program.is_file():
        sys.exit(f"error: {program} is missing\n  fix: cargo build -p nfscope --example fleet")
    print("| engine | agents | samples a scrape | series | samples a second | bytes a sample | MiB at the peak | CPU µs a sample | operations a second |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | --- | --- |", flush=True)
    for name in names:
        dir = Path(tempfile.mkdtemp(prefix="nfscope-fleet-"))
        agents = Process(dir, "agents", program, "serve", AGENTS, *([SIZE] if SIZE else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            fleet = json.loads(agents.child.stdout.readline())
            print(measure(name, fleet, dir), flush=True)
        except SystemExit:
            print(f"logs are kept in {dir}", file=sys.stderr)
            raise
        finally:
            agents.child.stdin.close()
            agents.child.wait()
        shutil.rmtree(dir)


main()

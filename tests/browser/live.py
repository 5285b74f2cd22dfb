"""Looks at the page of an agent with a real server in Chromium, while clients call it, and ends with an error at the first wrong number.

live.py URL SLOW [FOLDER]    SLOW is the address of the slow client; FOLDER takes a screenshot

It writes `ready` once the page is open and the server is quiet, and reads a line once the clients have called.
"""

import sys
from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

import watch

URL, SLOW = sys.argv[1:3]
FOLDER = Path(sys.argv[3]) if len(sys.argv) > 3 else None
until = partial(watch.until, seconds=600, pause=0.3)

# Buckets of all operations: of a snapshot, and of windows that ended after a time.
COUNTERS = """async () => { const all = {}; const s = await (await fetch('/snapshot')).json();
    for (const o of s.families.nfscope_op_duration_seconds ?? []) o.sample.histogram.counts.forEach((n, i) => { if (n) all[`${o.labels.join(' ')} ${i}`] = n });
    return all }"""
WINDOWS = """async after => { const all = {}; let last = 0; let quiet = 0;
    for (let since = ''; ;) { const r = await (await fetch('/windows' + since)).json();
        for (const w of r.windows) { last = w.at; quiet = w.ops.length ? 0 : quiet + 1; if (w.at <= after) continue;
            for (const o of w.ops) for (const [i, n] of o.times.buckets) { const k = `${o.version} ${o.op} ${i}`; all[k] = (all[k] ?? 0) + n } }
        since = '?since=' + r.since; if (!r.more) return { all, last, quiet } } }"""


def rows(page, inside):
    return page.evaluate(
        """q => [...document.querySelectorAll(`${q} tbody tr`)].map(r => [...r.cells].map(c => c.title && c.className !== 'name' ? c.title : c.innerText))""", inside
    )


def main():
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
        said = []
        page.on("pageerror", lambda e: said.append(str(e)))
        page.goto(URL)
        until("the page is not live", lambda: page.get_by_role("status").inner_text() == "live")
        page.locator("#down-run").click()
        until("no break-down", lambda: "of CPU time a second" in page.locator("#down-note").inner_text())
        quiet = lambda: (w := page.evaluate(WINDOWS, 1e12))["quiet"] >= 2 and w
        begun = until("the server is not quiet", quiet)["last"]
        before = page.evaluate(COUNTERS)
        print("ready", flush=True)
        sys.stdin.readline()
        # Windows come late on a busy machine.
        seen = {}

        def agree():
            if not (now := quiet()):
                return None
            after = page.evaluate(COUNTERS)
            seen["gained"] = {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}
            seen["windows"] = page.evaluate(WINDOWS, begun)["all"]
            return seen["gained"] and seen["windows"] == seen["gained"] and now["last"]

        try:
            ended = until("the counters' operations are not those of the windows", agree)
        except AssertionError as e:
            raise AssertionError(seen) from e
        gained, windows = seen["gained"], seen["windows"]
        total = sum(gained.values())
        # The page shows these windows, and its break-down on demand has all of their operations.
        shown = lambda: sum(int(r[1].split()[0]) for r in rows(page, "#down"))
        until(f"{total} operations, {shown()} broken down", lambda: shown() == total)
        first = lambda page, table: [r[0] for r in rows(page, table)][:1]
        until(f"{SLOW} is not on top: {rows(page, '#down')}", lambda: first(page, "#down") == [SLOW])
        assert len(rows(page, "#down")) >= 3, rows(page, "#down")
        # This address chooses the time of the same windows: operations before it are outside.
        chosen = page.context.new_page()
        chosen.on("pageerror", lambda e: said.append(str(e)))
        chosen.goto(f"{URL}#by=client&range=900&from={begun + 0.01:.2f}&to={ended:.2f}")
        until(f"{SLOW} is not on top: {rows(chosen, '#by')}", lambda: first(chosen, "#by") == [SLOW])
        if FOLDER:
            page.screenshot(path=FOLDER / "live.png", full_page=True)
        assert said == [], said
        print(f"{total} operations in {len(windows)} buckets: the page has those of the counters")
        browser.close()


main()

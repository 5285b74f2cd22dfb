"""Looks at the page of an agent in Chromium, as a person would, and ends with an error at the first thing that is wrong.

page.py URL PROGRAM STORE [FOLDER]    FOLDER takes screenshots

The agent is that of agent/nfscope/tests/page/main.rs, whose numbers are known: every window of a second has 100 WRITEs of 1 ms and 20 of
40 ms, and 300 GETATTRs of 20 us. PROGRAM is nfscope, and STORE has the recordings `before`, `after` and `ticking`.
"""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

from watch import shots, until

URL = sys.argv[1]
PROGRAM, STORE = sys.argv[2:4]
shot = shots(Path(sys.argv[4]) if len(sys.argv) > 4 else None)
KNOWN = 420


def contrast(a, b):
    """By WCAG 2.1, section 1.4.3."""

    def luminance(color):
        parts = [c / 255 for c in color]
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def drawn(page):
    """Waits for what is due: the page writes its address at once, and draws with the next frame of the screen."""
    page.evaluate("""() => new Promise((drawn, late) => { requestAnimationFrame(drawn); setTimeout(() => late("no frame in 20 s"), 20_000) })""")


def lit(page, canvas):
    """Pixels of a canvas that are not empty."""
    drawn(page)
    return page.evaluate(
        """id => { const c = document.getElementById(id); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n += 1; return n }""",
        canvas,
    )


def rows(page, inside):
    """Cells of a table, at one moment: the page draws it anew every second."""
    drawn(page)
    return page.evaluate(
        """q => [...document.querySelectorAll(`${q} tbody tr`)].map(r => [...r.cells].map(c => c.innerText))""", inside
    )


def count(page):
    drawn(page)
    return int(page.evaluate("document.getElementById('summary').dataset.count ?? 0"))


def every_panel_has_data(page):
    until("no operations", lambda: count(page) >= 3 * KNOWN)
    for canvas in ["heat", "phases", "requests"]:
        assert lit(page, canvas) > 500, canvas
    for figures, names in [("#log-charts", ["ext4 vda"]), ("#disk-charts", ["vda write"]), ("#pool-charts", ["0"])]:
        assert page.locator(f"{figures} figcaption").all_inner_texts() == names, figures
        assert page.evaluate("""q => { const c = document.querySelector(q + ' canvas');
            return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v) }""", figures), figures
    for table in ["#phase-table", "#request-table", "#by", "#logs", "#disks", "#pools"]:
        assert rows(page, table), table
    assert page.locator("#findings .card, #findings p").count() > 0
    until("not live", lambda: page.get_by_role("status").inner_text() == "live")


def numbers_are_those_of_the_agent(page):
    page.get_by_role("button", name="Pause").click()
    until("not paused", lambda: "paused" in page.get_by_role("status").inner_text())
    # The page may have got one more window with the click.
    time.sleep(0.3)
    seconds, rest = divmod(count(page), KNOWN)
    assert rest == 0, count(page)
    page.locator("#op").select_option("4.2/write")
    until("not filtered", lambda: count(page) == seconds * 120)
    writes = count(page)
    page.locator("#latency summary").click()
    table = [(r[0], r[1], int(r[2])) for r in rows(page, "#latency details")]
    assert [n for *_, n in table] == [writes // 6, writes * 5 // 6], table
    # 1 ms is the edge of a bucket; 40 ms lies inside its own.
    assert table[1][1] == "1.00 ms", table
    page.locator("#op").select_option("all")


def two_latencies_are_two_bands(page):
    bands = page.evaluate(
        """async () => { const { merge } = await import('/page/model.js'); const r = await (await fetch('/windows')).json();
        const w = r.windows.map(x => x.ops.filter(o => o.op === 'write')).flat(); return merge(w.map(o => o.times)).buckets.size }"""
    )
    assert bands == 2, bands


def a_smooth_latency_is_a_smooth_column(page):
    """Log-normal latencies over every power of ten that divides a bucket. One second has many operations, and one so few that most such
    parts of a bucket have none. The colours of each scale are smooth."""
    for scheme, scale in [(scheme, scale) for scheme in ["light", "dark"] for scale in ["log", "linear", "quantile"]]:
        page.emulate_media(color_scheme=scheme)
        dips, broken, sums, total, edge = page.evaluate(
            """async colors => { const { HeatMap } = await import('/page/heatmap.js'); const { inRectangle } = await import('/page/model.js');
            const { edges } = await (await fetch('/windows')).json();
            const canvas = document.body.appendChild(document.createElement('canvas')); canvas.style.width = '400px';
            const some = (at, all) => { const times = { count: 0, sum: 0, buckets: new Map() };
                for (let i = 1; i < edges.length; i += 1) { const [a, b] = [Math.log(edges[i - 1]), Math.log(edges[i])];
                    const n = Math.round(all * (b - a) * Math.exp(-(((a + b) / 2 - Math.log(0.0031)) ** 2) / 8));
                    if (n) { times.buckets.set(i, n); times.count += n; } }
                return { at, seconds: 1, ops: [{ version: '3', op: 'write', times }] } };
            const { ramp } = await import('/page/color.js'); const ground = [0.3, 0.6, 0.1].reduce((sum, f, c) => sum + f * ramp(0)[c], 0);
            const result = [];
            const windows = [some(1, 1e6), some(2, 20)];
            const heat = new HeatMap(canvas);
            const scale = heat.prepare(windows, w => [w.ops[0].times], edges);
            for (const height of [60, 150, 300, 480]) {
                canvas.style.height = `${height}px`;
                heat.draw({ from: 0, to: 2, gaps: [], label: String, origin: 0, selection: null, scale: colors }, scale);
                const s = devicePixelRatio || 1; const h = canvas.height - 18 * s;
                for (const part of [0.25, 0.75]) {
                    const d = canvas.getContext('2d').getImageData((64 + part * 334) * s, 0, 1, h).data;
                    const column = [...Array(h).keys()].map(y => [d[4 * y + 3], 0.3 * d[4 * y] + 0.6 * d[4 * y + 1] + 0.1 * d[4 * y + 2]]);
                    const painted = column.map(([alpha], y) => [alpha, y]).filter(([alpha]) => alpha).map(([, y]) => y);
                    // How far a pixel is nearer to the ground than pixels on both sides of it.
                    const ink = painted.slice(1, -1).map(y => Math.abs(column[y][1] - ground));
                    const dip = (v, i) => Math.min(Math.max(...ink.slice(0, i + 1)), Math.max(...ink.slice(i))) - v;
                    result.push([part < 0.5 ? Math.round(Math.max(...ink.map(dip))) : 0, painted.length - 1 - (painted.at(-1) - painted[0])]); } }
            // Counts below the pointer, and those of a selection there, are what was counted: row by row, and in all.
            const sums = windows.map((w, k) => { const column = heat.columns[k]; let [sum, next, wrong] = [0, 0, 0];
                for (let row = 0; row <= heat.rowOf.at(-1); row += 1) {
                    const { low, high } = heat.buckets(row, row); const n = column.rows[0].buckets.get(row) ?? 0;
                    const selected = inRectangle([w], 'all', low, high).reduce((all, r) => all + r.inside, 0);
                    if (low !== next || n !== selected) wrong += 1;
                    next = high + 1; sum += n; }
                return wrong ? -1 : sum - w.ops[0].times.count + (next - edges.length - 1) });
            // A press on the row of 1 ms selects both parts, and says where they begin and end.
            const y = heat.y(0.001); const cell = heat.cell(100, y); const s = heat.rectangle([100, y], [100, y]);
            canvas.remove();
            return [result.map(r => r[0]), result.map(r => r[1]), sums, cell.counts[0] - inRectangle(windows.slice(0, 1), 'all', s.low, s.high)[0].inside,
                [cell.above < 0.001, cell.upTo > 0.001, s.high - s.low, edges[s.low], Math.log2(cell.upTo / cell.above).toFixed(6)]] }""",
            scale,
        )
        # Dips are in levels of 255. A row between two stronger rows may be weaker only by a canvas's rounding. No row between rows is
        # empty.
        assert max(dips) <= 3, (scheme, scale, dips)
        assert broken == [0] * 8, (scheme, scale, broken)
        assert sums == [0, 0] and total == 0, (sums, total)
        assert edge == [True, True, 1, 0.001, "0.250000"], edge
    page.emulate_media(color_scheme="light")


def colours_have_a_legend_in_each_scale(page):
    """Rates of the legend rise to that of the strongest cell. The address has the scale."""
    assert "paused" in page.get_by_role("status").inner_text()
    rates = lambda: [float(r.removesuffix("/s")) for r in page.locator("#key > span").all_inner_texts()]
    near = lambda rate, expected, apart: abs(rate / expected - 1) < apart
    for scale, fits in [
        ("linear", lambda least, _, half, __, most: near(half, most / 2, 0.1)),
        # A third of the cells each have 20, 100 and 300 operations. A column at an end has windows for a part of its time, or two of them,
        # which moves the other parts.
        ("quantile", lambda _, quarter, half, three, __: quarter < half < three and near(half, 100, 0.3)),
        ("log", lambda least, _, half, __, most: near(half, (least * most) ** 0.5, 0.1)),
    ]:
        page.locator("#scale").select_option(scale)
        drawn(page)
        assert rates() == sorted(rates()) and fits(*rates()), (scale, rates())
        assert ("scale=" in page.url) == (scale != "log"), page.url
    page.get_by_role("button", name="Go on").click()


def the_first_screen_answers(page):
    """Headline figures, the finding, the heat map, and the top clients and exports are there without scrolling."""
    figures = lambda: dict(zip(page.locator("#figures dt").all_inner_texts(), page.locator("#figures dd").all_inner_texts()))
    until(f"not the figures: {figures()}", lambda: 300 < float(figures()["Operations/s"].split()[0]) < 450)
    assert figures()["p99"].split()[1] == "ms" and " of 8 " in figures()["Threads busy"], figures()
    # Bytes that are not counted are no zero.
    assert figures()["Written"].startswith("-"), figures()
    assert rows(page, "#top")[0][0] == "192.0.2.2" and len(rows(page, "#top")) == 4, rows(page, "#top")
    page.evaluate("scrollTo(0, 0)")
    drawn(page)
    # At one moment: the page draws tables anew every second.
    places = page.evaluate(
        """() => [...document.querySelectorAll('#figures, #findings, #heat, #key, #top .table')].map(e => { const r = e.getBoundingClientRect(); return [r.top, r.bottom] })"""
    )
    assert len(places) == 6 and all(0 <= top < bottom <= 900 for top, bottom in places), places
    shot(page, "first-screen")


def a_strip_shares_the_time_axis_of_the_heat_map(page):
    """The left edge of the plot and the scale of its time are those of the heat map, pixel by pixel."""
    until("no finding", lambda: page.locator("#strip canvas").count() > 0)
    strip, heat = page.locator("#strip canvas").first.bounding_box(), page.locator("#heat").bounding_box()
    assert (strip["x"], strip["width"]) == (heat["x"], heat["width"]), (strip, heat)
    # The finding was active in the latest window: the strip ends where the heat map ends, and nothing is left of the plot.
    edges = page.evaluate(
        """() => { const c = document.querySelector('#strip canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const xs = [...Array(c.width * c.height).keys()].filter(i => d[4 * i + 3] === 255).map(i => i % c.width);
        return [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b)) - c.width] }"""
    )
    assert edges[0] >= 64 and -4 <= edges[1] <= 0, edges


def a_table_is_sorted_by_a_click(page):
    tab(page, "client")
    first = lambda: [r[0] for r in rows(page, "#by")]
    until("no clients", lambda: len(first()) == 3)
    head = page.locator("#by th button")
    order = lambda: page.locator("#by th[aria-sort]").evaluate_all("all => all.map(e => e.ariaSort)")
    head.filter(has_text="Mean").click()
    until("not by the mean", lambda: [r[2] for r in rows(page, "#by")] == ["40.0 ms", "280 µs", "250 µs"] and order() == ["descending"])
    # The next second keeps the order, and the keyboard's place.
    time.sleep(1.5)
    assert first()[0] == "192.0.2.2" and page.evaluate("document.activeElement.innerText") == "Mean"
    page.keyboard.press("Enter")
    until("not reversed", lambda: first()[2] == "192.0.2.2" and order() == ["ascending"])
    head.filter(has_text="Client").click()
    until("names do not rise", lambda: order() == ["ascending"] and [name[:9] for name in first()] == ["<img src=", "192.0.2.1", "192.0.2.2"])
    head.filter(has_text="Share of time").click()
    until("not by the share of time", lambda: first()[0] == "192.0.2.2" and order() == ["descending"])
    # All rows of a long table are one click away.
    texts = page.evaluate(
        """async () => { const { table } = await import('/page/dom.js'); const t = document.body.appendChild(table(['A', 'B'], [...Array(30).keys()].map(i => [`10.0.0.${i}`, i ? `${i} ms` : '-'])));
        const click = text => [...t.querySelectorAll('button')].find(b => b.textContent === text).click(); const all = () => [...t.querySelectorAll('tbody tr')].map(r => r.cells[1].textContent);
        const result = [all().length]; click('B'); result.push(all()[0]); click('All 30'); result.push(all().length, all()[29]); click('B'); result.push(all()[0], all()[29]); click('Fewer'); result.push(all().length); t.remove(); return result }"""
    )
    assert texts == [10, "29 ms", 30, "-", "1 ms", "-", 10], texts
    tab(page, "operation")


def back_goes_to_the_view_before(page):
    page.locator("#op").select_option("4.2/write")
    until("not filtered", lambda: "op=4.2%2Fwrite" in page.url)
    tab(page, "export")
    until("not by export", lambda: "by=export" in page.url)
    page.go_back()
    until("not back by operation", lambda: "by=export" not in page.url and rows(page, "#by")[0][0] == "4.2/write")
    assert page.locator("#op").input_value() == "4.2/write"
    page.go_back()
    until("not back to all", lambda: page.locator("#op").input_value() == "all")
    page.go_forward()
    until("not forward", lambda: page.locator("#op").input_value() == "4.2/write")
    page.go_back()
    until("not back again", lambda: page.locator("#op").input_value() == "all")


def a_band_is_selected_by_dragging(page):
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#heat").bounding_box()
    y = box["y"]
    # Only slow WRITEs lie in the upper third.
    page.mouse.move(box["x"] + 70, y + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, y + box["height"] / 4, steps=5)
    page.mouse.up()
    until("nothing selected", lambda: rows(page, "#inside"))
    [row] = rows(page, "#inside")
    assert row[0] == "4.2/write" and int(row[1]) % 20 == 0, row
    assert row[2] == "17 %", row
    assert "low=" in page.url and "from=" in page.url, page.url
    shot(page, "selected")
    # A second tab with the same address shows the same view.
    other = page.context.new_page()
    other.goto(page.url)
    until("the selection is not in the address", lambda: rows(other, "#inside") == [row])
    other.close()
    page.keyboard.press("Escape")
    until("still selected", lambda: not rows(page, "#inside"))


def tab(page, name):
    page.get_by_role("group", name="Table by").first.get_by_role("button", name=name).click()


def the_slow_client_is_found(page):
    tab(page, "client")
    until("no clients", lambda: rows(page, "#by")[0][0] == "192.0.2.2")
    first = rows(page, "#by")[0]
    assert first[2] == "40.0 ms" and first[6].strip() == "88 %", first
    # The known name of a client is shown as text, whatever characters it has.
    named = [r[0] for r in rows(page, "#by") if r[0].startswith("192.0.2.1 ")]
    assert len(named) == 1 and "<img" in named[0], named
    tab(page, "operation")


def operations_are_filters(page):
    page.locator("#by").get_by_role("button", name="3/getattr").click()
    until("not filtered", lambda: page.locator("#op").input_value() == "3/getattr")
    until("other operations", lambda: count(page) > 0 and count(page) % 300 == 0)
    page.locator("#op").select_option("all")


def everything_is_done_with_keys(page):
    page.locator("#heat").focus()
    page.keyboard.press("]")
    until("no other operation", lambda: page.locator("#op").input_value() != "all")
    page.keyboard.press("[")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    until("no column", lambda: "from=" in page.url)
    assert count(page) in (KNOWN, 0) or count(page) % KNOWN == 0, count(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Go on").click()
    # Every control has a name and can be reached.
    names = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input, canvas:not([aria-hidden]), summary')].filter(e => e.offsetParent)
        .map(e => [e.tagName, (e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent).trim(), e.tabIndex])"""
    )
    for tag, name, index in names:
        assert name, (tag, names)
        assert index >= 0 or tag == "CANVAS", (tag, name)


def hostile_names_stay_text(page):
    for by in ["client", "export"]:
        tab(page, by)
        until("no rows", lambda: any("<img" in r[0] for r in rows(page, "#by")))
        name = next(r[0] for r in rows(page, "#by") if "<img" in r[0])
        assert "\\u202e" in name and "\\u001b" in name and "\x1b" not in name, repr(name)
    tab(page, "operation")
    page.locator("#probes summary").click()
    until("no probes", lambda: rows(page, "#probe-table"))
    page.locator("#probes summary").click()
    assert page.locator("img").count() == 0


def raw_breakdown(by, where):
    """One second of the break-down, as everybody can read it: count, mean and the key of each row."""
    query = urlencode([("by", by), *(("where", f"{d}:{v}") for d, v in where)])
    with urlopen(f"{URL}breakdown?{query}") as lines:
        assert "header" in json.loads(lines.readline())
        second = json.loads(lines.readline())
    key = lambda r, d: " ".join(filter(None, [r[d], r.get(f"{d}_name")]))
    return [([key(r, d) for d in by.split(",")], r["count"], r["sum_seconds"] / r["count"]) for r in second["rows"]]


def shown_breakdown(page):
    """The rows of the panel: names, counts, and the mean as it is written."""
    drawn(page)
    return page.evaluate(
        """() => [...document.querySelectorAll('#down tbody tr')].map(r => { const names = [...r.cells].filter(c => c.className === 'name');
        return [names.map(c => c.innerText), parseInt(r.cells[names.length].title), r.cells[names.length + 1].innerText] })"""
    )


def seconds_of(shown, raw):
    """How many seconds of the raw break-down the panel shows; 0 where it shows something else."""
    names = lambda all: sorted("\0".join(r[0]) for r in all)
    if not shown or names(shown) != names([([n.replace("\u202e", "\\u202e").replace("\x1b", "\\u001b") for n in k], *_) for k, *_ in raw]):
        return 0
    counts = {"\0".join(k).replace("\u202e", "\\u202e").replace("\x1b", "\\u001b"): n for k, n, _ in raw}
    ratios = {n / counts["\0".join(k)] for k, n, _ in shown}
    return ratios.pop() if len(ratios) == 1 else 0


def the_slow_client_of_three_is_found_by_two_clicks(page):
    assert not rows(page, "#down")
    panel = page.locator("#down")
    # The first click starts counting, by client: the slow client is on top.
    page.locator("#down-run").click()
    until("no break-down", lambda: shown_breakdown(page) and shown_breakdown(page)[0][0] == ["192.0.2.2"])
    assert len(shown_breakdown(page)) == 3 and shown_breakdown(page)[0][2] == "40.0 ms", shown_breakdown(page)
    # A click on the client shows its operations.
    panel.get_by_role("button", name="192.0.2.2").click()
    until("not filtered", lambda: [r[0] for r in shown_breakdown(page)] == [["write"]])
    assert page.locator("#down-where").inner_text().startswith("client 192.0.2.2"), page.locator("#down-where").inner_text()
    assert "where=client%3A192.0.2.2" in page.url and "down=op" in page.url, page.url
    note = page.locator("#down-note").inner_text()
    assert "of CPU time a second" in note and "9.96 MB" in note, note
    shot(page, "who-and-what")


def every_drill_down_has_the_numbers_of_the_raw_breakdown(page):
    group = page.get_by_role("group", name="Break down by")
    for press, by, where in [
        ([], "op", [("client", "192.0.2.2")]),
        (["file"], "op,file", [("client", "192.0.2.2")]),
        (["op", "user"], "file,user", [("client", "192.0.2.2")]),
        (["file", "export", "version"], "user,export,version", [("client", "192.0.2.2")]),
        (["Without the filter client 192.0.2.2"], "user,export,version", []),
        (["client", "user", "version"], "export,client", []),
    ]:
        for name in press:
            (page if name.startswith("Without") else group).get_by_role("button", name=name).click()
        raw = raw_breakdown(by, where)
        assert raw, (by, where)
        until(f"not the numbers of {by} {where}: {raw}, {shown_breakdown(page)}", lambda: seconds_of(shown_breakdown(page), raw) >= 1)
    # A name that the agent does not accept as a filter is refused with a message, and stays text.
    page.locator("#down").get_by_role("button", name="<img").first.click()
    until("not refused", lambda: "is no value" in page.locator("#down-note").inner_text())
    assert "\\u202e" in page.locator("#down-note").inner_text() and page.locator("img").count() == 0
    page.get_by_role("button", name="Without the filter export").click()
    # Stopping leaves the agent without a listener: the kernel counts nothing.
    page.keyboard.press("b")
    until("not going on", lambda: len(shown_breakdown(page)) >= 1 and page.locator("#down-run").inner_text() == "Stop")
    page.keyboard.press("b")
    until("not stopped", lambda: page.locator("#down-run").inner_text() == "Start")
    until("a count goes on", lambda: "counts nothing" in page.locator("#down-note").inner_text())


def totals_are_those_of_the_snapshot(page):
    """What the counters have and the windows of the page have not is what was counted before the first one: one reading."""
    rest = """async () => { const all = new Map(); const add = (key, n) => { all.set(key, (all.get(key) ?? 0) + n); if (!all.get(key)) all.delete(key) };
        for (let since = ''; ;) { const r = await (await fetch('/windows' + since)).json();
            for (const w of r.windows) for (const o of w.ops) for (const [i, n] of o.times.buckets) add(`${o.version} ${o.op} ${i}`, -n);
            since = '?since=' + r.since; if (!r.more) break }
        for (const s of (await (await fetch('/snapshot')).json()).families.nfscope_op_duration_seconds)
            s.sample.histogram.counts.forEach((n, i) => n && add(`${s.labels.join(' ')} ${i}`, n));
        return [...all].map(([key, n]) => [key.replace(/ \\d+$/, ''), n]).sort((a, b) => a[1] - b[1]) }"""
    until(f"not the totals: {page.evaluate(rest)}", lambda: page.evaluate(rest) == [["4.2 write", 20], ["4.2 write", 100], ["3 getattr", 300]])


def files_have_names_when_asked(page):
    """A name is text, whatever it is; a file without one keeps its number, and the page says why."""
    page.goto(f"{URL}#down=file")
    page.locator("#down-run").click()
    files = lambda: {r[0]: r[2] for r in page.evaluate(
        """() => [...document.querySelectorAll('#down tbody tr')].map(r => [r.cells[0].innerText, 0, r.cells[0].title])""")}
    until("no files", lambda: "/b:5" in files() and "/b:/" in files())
    page.get_by_role("button", name="paths").click()
    escaped = "/b/<img src=x onerror=alert(1)>\\u202eevil\\u001b[2J"
    until(f"no names: {files()}", lambda: escaped in files() and "/b" in files())
    assert files()[escaped] == f"/b:5: {escaped}", files()
    gone = next(f for f in files() if f.endswith(":12"))
    assert files()[gone].endswith(": it is gone"), files()
    said = page.locator("#down p").all_inner_texts()
    assert "1 without a path: it is gone." in said and any("looked up first" in s for s in said), said
    assert "paths=" in page.url and page.locator("img").count() == 0, page.url
    shot(page, "names")
    # A click on a name filters by the file, not by its name.
    page.locator("#down").get_by_role("button", name="/b/<img").click()
    until("not filtered", lambda: page.locator("#down-where").inner_text().startswith("file /b:5") and rows(page, "#down"))
    assert [r[0] for r in rows(page, "#down")] == ["write"], rows(page, "#down")
    page.locator("#down-run").click()
    page.goto(URL + "#")


def four_operations_have_a_colour_each(page):
    page.locator("#op").select_option("4.2/write")
    until("no other can be chosen", lambda: page.locator("#also").is_enabled())
    page.locator("#also").select_option("3/getattr")
    legend = lambda: page.locator("#legend button").all_inner_texts()
    until("no legend", lambda: legend() == ["4.2/write \u00d7", "3/getattr \u00d7"])
    until("not both", lambda: count(page) > 0 and count(page) % KNOWN == 0)
    page.get_by_role("button", name="Pause").click()
    until("not paused", lambda: "paused" in page.get_by_role("status").inner_text())
    time.sleep(0.3)
    seconds = count(page) // KNOWN
    # The table has the numbers that the colours show.
    head = page.locator("#latency details th").all_inner_texts()
    assert head == ["Longer than", "Up to", "Operations", "Share", "4.2/write", "3/getattr"], head
    table = [[int(n) for n in (r[2], r[4], r[5])] for r in rows(page, "#latency details")]
    assert table == [[n * seconds for n in row] for row in [(20, 20, 0), (100, 100, 0), (300, 0, 300)]], table
    bands = """() => { const c = document.getElementById('heat'); const h = c.height - 18 * (devicePixelRatio || 1);
        const d = c.getContext('2d').getImageData(0, 0, c.width, h).data; const all = { blue: [], orange: [] };
        for (let i = 0; i < d.length; i += 4) { const y = Math.floor(i / 4 / c.width) / h; if (d[i + 3] < 255) continue;
            if (d[i + 2] > d[i] + 60) all.blue.push(y); else if (d[i] > d[i + 2] + 60) all.orange.push(y); }
        return [Math.max(...all.blue), Math.min(...all.orange), all.blue.length, all.orange.length] }"""
    lowest, highest, *found = page.evaluate(bands)
    assert min(found) > 100 and lowest < highest, (lowest, highest, found)
    box = page.locator("#heat").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] - 30)
    tip = page.locator("#tip").inner_text()
    assert "4.2/write " in tip and "3/getattr " in tip, tip
    # The address has the operations, and no more than four.
    link = page.context.new_page()
    link.goto(page.url)
    until("the operations are not in the address", lambda: link.locator("#legend button").all_inner_texts() == legend())
    link.goto(f"{URL}#op=4.2/write,3/getattr,4.1,4.0,3")
    link.reload()
    until("not four", lambda: link.locator("#legend button").count() == 4)
    until("a fifth can be chosen", lambda: not link.locator("#also").is_enabled())
    link.close()
    shot(page, "two-operations")
    page.get_by_role("button", name="Without 4.2/write").click()
    until("not alone", lambda: legend() == [] and count(page) == 300 * seconds and page.locator("#op").input_value() == "3/getattr")
    page.locator("#op").select_option("all")
    page.get_by_role("button", name="Go on").click()


def slow_operations_are_shown_while_watched(page):
    page.get_by_role("button", name="Watch").click()
    until("no slow operation", lambda: rows(page, "#slow") and len(rows(page, "#slow")[0]) > 4)
    first = rows(page, "#slow")[0]
    assert first[1] == "192.0.2.2" and first[4] == "40.0 ms" and first[7] == "131073", first
    until("no dots", lambda: lit(page, "slow-plot") > 20)
    # A link to this address watches the same operations.
    page.locator("#slow-over").select_option("1ms")
    until("not in the address", lambda: "over=1ms" in page.url and "watch=" in page.url)
    link = page.context.new_page()
    link.goto(page.url)
    until("the link does not watch", lambda: rows(link, "#slow") and link.locator("#slow-over").input_value() == "1ms")
    link.close()
    page.locator("#slow-over").select_option("10ms")
    page.get_by_role("button", name="Stop").click()
    until("still in the address", lambda: "watch" not in page.url and "over" not in page.url)


def what_happened_before_is_on_the_disk(page):
    page.locator("#range").select_option("86400")
    until("no past", lambda: "4.1/read" in [r[0] for r in rows(page, "#by")])
    # The windows of now are stored by now, too.
    page.locator("#op").select_option("4.1/read")
    until("not all of the past", lambda: count(page) == 120)
    page.locator("#op").select_option("all")
    # The stored minutes of three hours ago, in the middle of a range of five minutes.
    page.locator("#range").select_option("300")
    there = page.evaluate("""async () => { const now = Date.now() / 1e3;
        const r = await (await fetch(`/windows?from=${now - 4 * 3600}&to=${now - 2 * 3600}&columns=300`)).json();
        const at = r.windows.map(w => w.at); const d = new Date(500 * (Math.min(...at) + Math.max(...at)));
        return new Date(d - d.getTimezoneOffset() * 60e3).toISOString().slice(0, 19) }""")
    page.locator("#goto").fill(there)
    page.locator("#goto").dispatch_event("change")
    until("not gone back", lambda: count(page) == 120 and "paused" in page.get_by_role("status").inner_text())
    # No window is known between the two minutes.
    assert page.locator("#slow").inner_text() == "None in this time.", page.locator("#slow").inner_text()
    gaps = page.evaluate("""async () => { const { gaps } = await import('/page/model.js');
        const at = Number(new URLSearchParams(location.hash.slice(1)).get('at'));
        const r = await (await fetch(`/windows?from=${at - 300}&to=${at}&columns=300`)).json(); return gaps(r.windows).length }""")
    assert gaps == 1, gaps
    shot(page, "past")
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Earlier").click()
    until("no word of an empty time", lambda: "nothing of this time" in page.get_by_role("note").inner_text())
    page.get_by_role("button", name="Go on").click()
    until("not back", lambda: page.get_by_role("status").inner_text() == "live" and count(page) % KNOWN == 0)


def clock_steps_are_gaps_or_begin_anew(page):
    """What the page keeps of windows whose clock was set ahead by an hour, and then back by two."""
    kept, hatched = page.evaluate(
        """async () => { const { take, gaps } = await import('/page/model.js'); const all = [];
        const some = from => [1, 2, 3].map(i => ({ at: from + i, seconds: 1 }));
        take(all, some(10000), 86400); take(all, some(13600), 86400); const hatched = gaps(all);
        take(all, some(6400), 86400); return [all.map(w => w.at), hatched] }"""
    )
    assert hatched == [[10003, 13600]], hatched
    assert kept == [6401, 6402, 6403], kept


def a_recording_opens_in_the_same_page(page):
    page.locator("#show").select_option("before")
    until("no recording", lambda: count(page) == 600)
    until("not named a recording", lambda: page.get_by_role("status").inner_text() == "a recording")
    until("not in the address", lambda: "show=before" in page.url)
    # The page does not ask for current windows while it shows a recording.
    until("the present is watched", lambda: not page.locator("#slow-watch").is_visible() and not page.locator("#down-run").is_visible())
    title = page.locator("#pane-title").inner_text()
    assert "before" in title and "0:01:00 long" in title and "\\u202e" in title, title
    shot(page, "recording")


def two_recordings_stand_side_by_side(page):
    page.locator("#beside").select_option("after")
    other = lambda: int(page.evaluate("document.getElementById('summary-2')?.dataset.count ?? 0"))
    until("no second one", lambda: (count(page), other()) == (600, 200))
    # Both plots begin at the left and have the same scales: a second is as wide, and a latency as high, in either.
    left, right = (page.locator(q).bounding_box() for q in ["#heat", "#heat-2"])
    assert left["y"] == right["y"] and abs(left["width"] - right["width"]) < 1, (left, right)
    width = left["width"] - 66
    # Heights of the painted cells at a part of the time: from 0 at the top to 1, below which the times are written.
    painted = lambda q, part: page.evaluate("""([q, x]) => { const c = document.getElementById(q); const s = devicePixelRatio || 1;
        const h = c.height - 18 * s; const d = c.getContext('2d').getImageData(x * s, 0, 1, h).data;
        return [...Array(h).keys()].filter(y => d[4 * y + 3] === 255).map(y => y / h) }""", [q, 64 + part * width])
    # 40 ms lies above 1 ms in both. The second recording ends after half of the time, and has a gap before.
    assert max(painted("heat", 0.08)) < 0.2 and max(painted("heat", 0.92)) < 0.2, painted("heat", 0.08)
    assert min(painted("heat-2", 0.08)) > 0.8 and min(painted("heat-2", 0.42)) > 0.8, painted("heat-2", 0.08)
    assert not painted("heat-2", 0.25) and not painted("heat-2", 0.92)
    # A selection in one plot selects the same time and latency in both.
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#heat-2").bounding_box()
    page.mouse.move(box["x"] + 66, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 64 + width / 2, box["y"] + box["height"] - 20, steps=4)
    page.mouse.up()
    until("not both selected", lambda: (count(page), other()) == (300, 200))
    shot(page, "side-by-side")
    page.locator("#zoom").click()
    until("not zoomed", lambda: (count(page), other()) == (300, 200) and "zoom=" in page.url)
    # A second tab with the same address shows the same recordings.
    link = page.context.new_page()
    link.goto(page.url)
    until("the recordings are not in the address", lambda: rows(link, "#by-2") and count(link) == 300)
    link.close()
    page.locator("#unzoom").click()
    page.locator("#show").select_option("")
    until("not back", lambda: page.get_by_role("status").inner_text() == "live" and count(page) % KNOWN == 0 and count(page) > 0)
    until("the second pane stays", lambda: page.locator("#pane-2").count() == 0)


def colors_can_be_told_apart(page):
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        ramps = page.evaluate(
            """async s => { const { ramp } = await import('/page/color.js'); return [null, 0, 1, 2, 3].map(hue => [...Array(11).keys()].map(i => ramp(i / 10, hue, s))) }""", scheme
        )

        ground = page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor.match(/\\d+/g).map(Number)")
        for ramp in ramps:
            from_ground = [contrast(c, ground) for c in ramp]
            assert from_ground == sorted(from_ground), (scheme, from_ground)
            assert from_ground[-1] >= 7, (scheme, from_ground)
        # The weaker cells of operations side by side differ, too.
        for part in (5, 10):
            for i, a in enumerate(ramps[1:]):
                for b in ramps[2 + i:]:
                    assert sum((x - y) ** 2 for x, y in zip(a[part], b[part])) ** 0.5 > 45, (scheme, part, a[part], b[part])
        for what in ["body", ".soft", "a", "td"]:
            text = page.evaluate("q => getComputedStyle(document.querySelector(q)).color.match(/\\d+/g).map(Number)", what)
            for back in (ground, page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")):
                assert contrast(text, back) >= 4.5, (scheme, what, contrast(text, back))
        phases = page.evaluate(
            """async s => { const { PHASES } = await import('/page/color.js');
            return PHASES[s].map(h => [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16))) }""",
            scheme,
        )
        for color in phases:
            assert contrast(color, ground) >= 3, (scheme, color, contrast(color, ground))
        time.sleep(0.3)
        shot(page, scheme)
    page.emulate_media(color_scheme="light")


def it_fits_every_screen(page):
    for width, height in [(320, 640), (390, 844), (768, 1024), (1440, 900), (3840, 2160)]:
        page.set_viewport_size({"width": width, "height": height})
        time.sleep(0.3)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, (width, over)
        shot(page, f"width-{width}")
        page.emulate_media(color_scheme="dark")
        shot(page, f"width-{width}-dark")
        page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})


def a_finding_stays_open_and_tells_who_is_behind_it(page):
    until("no finding", lambda: page.locator("#findings summary").count() > 0)
    page.locator("#findings summary", has_text="Evidence").first.click()
    # Cards are drawn anew every few seconds: the marked one must be replaced.
    page.evaluate("document.querySelector('#findings article').dataset.old = 1")
    until("the same card", lambda: page.locator("#findings article[data-old]").count() == 0)
    until("the card is closed", lambda: page.locator("#findings li").first.is_visible())
    shot(page, "finding")
    page.evaluate("scrollTo(0, 0)")
    page.locator("#findings").get_by_role("button", name="Show top clients, files and operations").first.click()
    # The finding has the first rows: totals of the clients, then what they did. The page stays where it is.
    until("no rows at the finding", lambda: [r[0] for r in rows(page, "#findings .brief > :nth-child(2)")][:1] == ["192.0.2.2"])
    assert [[r[0], r[2]] for r in rows(page, "#findings .brief > :nth-child(3)")][:1] == [["192.0.2.2", "write"]]
    assert page.evaluate("scrollY") == 0 and page.evaluate("document.activeElement.innerText") == "Stop counting"
    shot(page, "finding-counted")
    # The rows of the break-down before stay until the page draws the next one.
    until("not who is behind it", lambda: [[r[0], r[2]] for r in rows(page, "#down")][:1] == [["192.0.2.2", "write"]])
    assert "down=client%2Cexport%2Cop" in page.url, page.url
    # Clients of several rows are added up.
    assert [r[0] for r in rows(page, "#down-totals")][:1] == ["192.0.2.2"] and len(rows(page, "#down-totals")) == 3, rows(page, "#down-totals")
    page.locator("#findings").get_by_role("button", name="Stop counting").click()
    until("a count goes on", lambda: "counts nothing" in page.locator("#down-note").inner_text())


def findings_of_the_time_that_is_looked_at(page):
    """An agent's report in which one finding has cleared, and another is active."""
    report = json.loads(page.evaluate("async () => (await fetch('/findings')).text()"))
    now = page.evaluate("Date.now() / 1000")
    seen = {**report["active"][0], "began": now - 20, "ended": now - 10, "worst_share": 0.4321}
    seen = {**seen, "finding": {**seen["finding"], "kind": "slow_disk", "summary": "the disk was slow", "advice": ["another disk"]}}
    page.route("**/findings", lambda route: route.fulfill(json={**report, "history": [seen]}))
    cards = page.locator("#findings article")
    past = cards.filter(has_text="slow disk")
    until("no card of the past", lambda: past.count() == 1)
    text = past.inner_text()
    assert "up to 43 %" in text and " to " in text and "the disk was slow" in text, text
    assert cards.first.inner_text() != text and past.get_by_role("button").count() == 0, "the active one comes first, and alone can be counted"
    past.locator("summary", has_text="What would change it").click()
    assert past.get_by_text("another disk", exact=True).is_visible()
    shot(page, "past-finding")
    # Five minutes that ended before the finding began.
    page.goto(f"{URL}#at={now - 25}")
    until("a finding of another time", lambda: past.count() == 0 and page.get_by_role("status").inner_text().startswith("paused"))
    page.goto(f"{URL}#at={now - 15}")
    until("not the finding of that time", lambda: past.count() == 1)
    page.unroute("**/findings")
    # A finding that the strip has and the agent no longer has.
    page.route("**/findings", lambda route: route.fulfill(json={**report, "active": [], "history": []}))
    page.goto(f"{URL}#at={now}")
    until("no word of what is lost", lambda: "the evidence of slow intent log" in page.locator("#findings").inner_text())
    page.unroute("**/findings")
    page.goto(URL + "#")
    until("still there", lambda: past.count() == 0)


def an_agent_that_is_gone_is_told(page):
    page.route("**/windows*", lambda route: route.abort())
    until("no word of the agent that is gone", lambda: page.get_by_role("status").inner_text() == "not connected")
    assert "cannot be reached" in page.get_by_role("alert").inner_text()
    shot(page, "gone")
    page.unroute("**/windows*")
    until("not back", lambda: page.get_by_role("status").inner_text() == "live")
    until("still an alert", lambda: not page.get_by_role("alert").is_visible())


def is_alive(page):
    """It takes windows that come now."""
    newest = "(async () => (await import('/page/address.js')).state.windows.at(-1)?.at ?? 0)()"
    before = page.evaluate(newest)
    until("the page stands still", lambda: page.evaluate(newest) > before)
    until("not live", lambda: page.get_by_role("status").inner_text() == "live")


def nine_pages_are_served_and_told(page):
    """A browser has six connections to the agent: pages that count leave one for everything else."""
    pages = [page, *(page.context.new_page() for _ in range(8))]
    for other in pages[1:]:
        other.goto(URL)
    for i, one in enumerate(pages):
        one.locator("#down-run").click()
        if i < 5:
            until(f"page {i} does not count", lambda: rows(one, "#down"))
        else:
            until(f"page {i} is not told", lambda: "at most 5 listeners" in one.locator("#down-note").inner_text())
    for one in pages:
        is_alive(one)
    page.locator("#down-run").click()
    for other in pages[1:]:
        other.close()


def the_ninth_listener_is_told(page):
    """Eight of other addresses count already. The ninth page cannot, says so, and does everything else."""
    host, port = urlsplit(URL).hostname, urlsplit(URL).port
    others = []
    for i in range(8):
        connection = HTTPConnection(host, port, source_address=(f"127.0.0.{2 + i // 4}", 0))
        connection.request("GET", "/breakdown?by=client")
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        others.append((connection, answer))
    page.locator("#down-run").click()
    until("not told", lambda: "at most 8 listeners" in page.locator("#down-note").inner_text())
    until("still pressed", lambda: page.locator("#down-run").get_attribute("aria-pressed") == "false")
    is_alive(page)
    shot(page, "ninth")
    for connection, answer in others:
        answer.close()
        connection.close()
    # The end of one stream makes room for another.
    until("no room", lambda: page.locator("#down-run").click() or time.sleep(1) or page.locator("#down-run").inner_text() == "Stop")
    page.locator("#down-run").click()


def one_listener_too_many_is_told(page):
    """One address has five streams; eight is the most of all."""
    streams = [urlopen(f"{URL}slow?min_latency=60s") for _ in range(5)]
    for button, note in [("#slow-watch", "#slow-note"), ("#down-run", "#down-note")]:
        page.locator(button).click()
        until("not told", lambda: "at most 5 listeners" in page.locator(note).inner_text())
        # The button changes with the page's next drawing.
        until("still pressed", lambda: page.locator(button).get_attribute("aria-pressed") == "false")
    for stream in streams:
        stream.close()


def an_agent_that_is_killed_is_told_and_the_page_goes_on(page):
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        file = f"{folder}/ticking.db"
        subprocess.run([PROGRAM, "baseline", "export", "ticking", file, "--store", STORE], check=True, capture_output=True)
        command = [PROGRAM, "agent", "--replay", file, "--web.listen-address", address]
        start = lambda: subprocess.Popen(command, stderr=subprocess.DEVNULL)
        agent = start()
        try:
            until("no agent", lambda: listens(address))
            page.goto(f"http://{address}/")
            until("no replay", lambda: page.get_by_role("status").inner_text() == "replay" and count(page) > 0)
            agent.kill()
            agent.wait()
            until("no word of the agent that is gone", lambda: page.get_by_role("status").inner_text() == "not connected")
            assert "cannot be reached" in page.get_by_role("alert").inner_text()
            before = count(page)
            agent = start()
            until("not back", lambda: page.get_by_role("status").inner_text() == "replay" and count(page) > before)
            # A recording has no operations that can be broken down, and the page offers no counting.
            assert not page.locator("#down-run").is_visible() and not page.locator("#slow-watch").is_visible()
            page.keyboard.press("b")
            time.sleep(0.5)
            assert page.locator("#down-run").get_attribute("aria-pressed") == "false"
        finally:
            agent.kill()
            agent.wait()


def listens(address):
    with socket.socket() as s:
        return s.connect_ex((address.split(":")[0], int(address.split(":")[1]))) == 0


def a_command_opens_two_baselines(page):
    opened = subprocess.Popen([PROGRAM, "baseline", "open", "before", "after", "--store", STORE], stdout=subprocess.PIPE, text=True)
    try:
        url = opened.stdout.readline().strip()
        assert url.endswith("#show=before&beside=after"), url
        page.goto(url)
        until("no recordings", lambda: count(page) == 600 and rows(page, "#by-2"))
        assert page.get_by_role("status").inner_text() == "two recordings"
    finally:
        opened.send_signal(signal.SIGINT)
        assert opened.wait() == 0


def main():
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        # Frames come late, as on a busy computer: a check that does not wait for a drawing fails here more often than there.
        context.add_init_script("const raf = requestAnimationFrame; window.requestAnimationFrame = f => setTimeout(() => raf(f), 100)")
        page = context.new_page()
        said, asked = [], set()
        # The page reads no pixels; these tests do. Chromium logs each refused request; those of streams are expected.
        meant = lambda m: "willReadFrequently" in m.text or any(path in m.location.get("url", "") for path in ["/breakdown", "/slow"])
        page.on("console", lambda m: None if meant(m) else said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: asked.add(urlsplit(r.url).netloc) if not r.url.startswith("data:") else None)
        page.goto(URL)
        for check in [
            every_panel_has_data,
            numbers_are_those_of_the_agent,
            totals_are_those_of_the_snapshot,
            two_latencies_are_two_bands,
            a_smooth_latency_is_a_smooth_column,
            colours_have_a_legend_in_each_scale,
            the_first_screen_answers,
            a_table_is_sorted_by_a_click,
            back_goes_to_the_view_before,
            a_band_is_selected_by_dragging,
            the_slow_client_is_found,
            operations_are_filters,
            everything_is_done_with_keys,
            hostile_names_stay_text,
            the_slow_client_of_three_is_found_by_two_clicks,
            every_drill_down_has_the_numbers_of_the_raw_breakdown,
            files_have_names_when_asked,
            four_operations_have_a_colour_each,
            slow_operations_are_shown_while_watched,
            what_happened_before_is_on_the_disk,
            clock_steps_are_gaps_or_begin_anew,
            a_recording_opens_in_the_same_page,
            two_recordings_stand_side_by_side,
            one_listener_too_many_is_told,
            the_ninth_listener_is_told,
            nine_pages_are_served_and_told,
            colors_can_be_told_apart,
            it_fits_every_screen,
            a_strip_shares_the_time_axis_of_the_heat_map,
            a_finding_stays_open_and_tells_who_is_behind_it,
            findings_of_the_time_that_is_looked_at,
        ]:
            try:
                check(page)
            except AssertionError as e:
                lines = [f.lineno for f in traceback.extract_tb(e.__traceback__)]
                raise AssertionError(f"{check.__name__}, lines {lines}: {e}; the console says {said}") from e
            print("ok", check.__name__.replace("_", " "), flush=True)
        assert said == [], said
        assert asked == {urlsplit(URL).netloc}, asked
        for check in [an_agent_that_is_gone_is_told, an_agent_that_is_killed_is_told_and_the_page_goes_on, a_command_opens_two_baselines]:
            check(page)
            print("ok", check.__name__.replace("_", " "), flush=True)
        browser.close()


main()

"""Looks at the page of `nfscope demo`, and at reports of it that are opened from a disk. Ends with an error at the first thing that is wrong.

report.py URL REPORT ANONYMOUS [FOLDER]    FOLDER takes screenshots
"""

import re
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from watch import shots, until

URL, REPORT, ANONYMOUS = sys.argv[1:4]
shot = shots(Path(sys.argv[4]) if len(sys.argv) > 4 else None)


def lit_columns(page):
    """How many columns of the heat map have something."""
    return page.evaluate(
        """() => { const c = document.getElementById('heat'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height - 30).data;
        let n = 0; for (let x = 80; x < c.width; x += 1) for (let y = 0; y < c.height - 30; y += 1) if (d[4 * (y * c.width + x) + 3]) { n += 1; break; }
        return n / (c.width - 80) }"""
    )


def opened(browser, url, said, asked):
    page = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
    page.on("console", lambda m: None if "willReadFrequently" in m.text else said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.on("request", lambda r: asked.append(r.url) if not r.url.startswith("data:") else None)
    page.goto(url)
    until("no heat map", lambda: lit_columns(page) > 0.5)
    return page



def main():
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        said = []
        page = opened(browser, URL, said, [])
        # The demonstration's day has three incidents, and two recordings of each side to compare.
        kinds = ["thread starvation", "slow disk", "slow intent log"]
        until("an incident is missing", lambda: all(k in page.locator("#strip").inner_text() for k in kinds), 600)
        until("no recordings", lambda: page.locator("#show option").count() == 7)
        shot(page, "demo")
        assert said == [], said
        print("ok the demonstration shows a day with three incidents")
        for file in [REPORT, ANONYMOUS]:
            asked = []
            url = Path(file).resolve().as_uri()
            page = opened(browser, url, said, asked)
            until("no finding", lambda: "slow intent log" in page.locator("#strip").inner_text())
            until("no rows", lambda: page.locator("#by tbody tr").count() > 3)
            page.locator("#by-tabs button[data-by=client]").click()
            until("no clients", lambda: page.locator("#by tbody tr").count() >= 2)
            clients = page.locator("#by").inner_text()
            assert ("client-1" in clients) == (file == ANONYMOUS), clients
            words = page.locator(".report pre").inner_text()
            assert "Finding slow_intent_log" in words and "Operations measured since the agent began: NFSv3 100" in words, words
            # A drag selects, as on a page of an agent, and the selection has numbers.
            page.locator("#heat").scroll_into_view_if_needed()
            box = page.locator("#heat").bounding_box()
            page.mouse.move(box["x"] + 500, box["y"] + 5)
            page.mouse.down()
            page.mouse.move(box["x"] + 700, box["y"] + box["height"] / 2, steps=5)
            page.mouse.up()
            until("nothing selected", lambda: page.locator("#inside tbody tr").count() > 0)
            # The page asks for windows each second; no request leaves the file.
            time.sleep(2)
            assert {a.split("#")[0] for a in asked} == {url}, asked
            assert said == [], said
            shot(page, Path(file).stem)
            print("ok a report works from a disk and asks nobody")
        text = Path(ANONYMOUS).read_text(encoding="utf-8")
        left = set(re.findall(r"\b10\.\d+\.\d+\.\d+\b|/run/exp\w*", text))
        assert not left, left
        print("ok an anonymous report has no address and no path")
        browser.close()


main()

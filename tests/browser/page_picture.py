"""Takes the README's pictures of the page, from a report of `nfscope demo`, and looks at them: drawn, in columns, light and dark.

page_picture.py REPORT FOLDER    FOLDER gets page-light.png and page-dark.png
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from watch import until

REPORT, FOLDER = Path(sys.argv[1]).resolve().as_uri(), Path(sys.argv[2])
SIZE = {"width": 1200, "height": 800}

# The part of the heat map that has colours beside its ground.
LIT = """() => { const c = document.getElementById('heat'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return 4 * n / d.length }"""

# Tables whose cells do not stand below their headers, as [header, cell].
CROOKED = """() => [...document.querySelectorAll('table')].filter(t => t.offsetParent).flatMap(t => {
    const heads = [...t.querySelectorAll('thead th')]
    return [...t.querySelectorAll('tbody tr')].flatMap(row => [...row.cells].map((cell, i) => [heads[i], cell])
        .filter(([head, cell]) => head && Math.abs(head.getBoundingClientRect().left - cell.getBoundingClientRect().left) > 1)
        .map(([head, cell]) => [head.textContent, cell.textContent]))
})"""

GROUND = "() => getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 3"


def main():
    grounds = {}
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for scheme in ["light", "dark"]:
            context = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce", timezone_id="UTC")
            page = context.new_page()
            page.goto(REPORT)
            until("no heat map", lambda: page.evaluate(LIT) > 0.05)
            until("no tables", lambda: page.locator("table:visible tbody tr").count() > 3)
            crooked = page.evaluate(CROOKED)
            assert not crooked, f"{scheme}: cells beside their headers: {crooked[:5]}"
            wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{scheme}: {wide} pixels beside the screen"
            grounds[scheme] = page.evaluate(GROUND)
            # The text of the report stands above; the README has its own.
            top = page.evaluate("() => document.getElementById('figures').getBoundingClientRect().top + scrollY")
            clip = {"x": 0, "y": top - 12, **SIZE}
            page.screenshot(path=FOLDER / f"page-{scheme}.png", full_page=True, clip=clip)
            print("ok", scheme)
        browser.close()
    assert grounds["light"] > 200 and grounds["dark"] < 60, grounds


main()

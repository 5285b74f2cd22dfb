"""Prints pages to sign in Chromium, and ends with an error where the first page is more than one sheet of A4, or anything is cut off.

signed.py FOLDER FILE...    FOLDER takes the prints and pictures of the first pages; "-" takes none
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# Margin of the style sheet in millimetres, and CSS pixels of a millimetre.
MARGIN = 14
MM = 96 / 25.4

# The last element of the first page, the widest ones, and elements that have neither text nor drawing.
SEEN = """() => {
    const front = document.querySelector('.front')
    const box = front.getBoundingClientRect()
    const wide = [...front.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > box.right + 1)
    const hollow = [...front.querySelectorAll('h2, p, td, dd, li, figcaption')].filter(e => !e.textContent.trim())
        .filter(e => !e.closest('thead'))
    return {height: box.height, wide: wide.map(e => e.outerHTML.slice(0, 200)), hollow: hollow.map(e => e.outerHTML.slice(0, 200)),
        drawn: front.querySelector('.dots')?.getBoundingClientRect().width / box.width, alone: !front.querySelector('.dots + div'),
        after: getComputedStyle(front).breakAfter}
}"""


def main():
    folder = None if sys.argv[1] == "-" else Path(sys.argv[1])
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        width, height = (210 - 2 * MARGIN) * MM, (297 - 2 * MARGIN) * MM
        page = browser.new_page(viewport={"width": int(width), "height": int(height)})
        for file in map(Path, sys.argv[2:]):
            page.goto(file.absolute().as_uri())
            page.emulate_media(media="print")
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                page.pdf(path=folder / f"{file.stem}.pdf", format="A4", prefer_css_page_size=True)
                page.screenshot(path=folder / f"{file.stem}.png")
            seen = page.evaluate(SEEN)
            assert seen["height"] <= height, f"{file.name}: the first page is {seen['height']:.0f} px high, and a sheet has {height:.0f}"
            assert seen["height"] > height / 3, f"{file.name}: {seen['height']:.0f} px"
            assert not seen["wide"], f"{file.name}: cut off at the right: {seen['wide']}"
            assert not seen["hollow"], f"{file.name}: empty: {seen['hollow']}"
            assert not seen["alone"] or seen["drawn"] > 0.75, f"{file.name}: half of the sheet beside the drawing is empty: {seen['drawn']}"
            assert seen["after"] == "page", seen
            print("ok", file.name, f"{seen['height']:.0f} of {height:.0f} px")
        browser.close()


main()

"""Looks at pictures of terminals in Chromium, as a README shows them: each letter must stand in its own cell, and each space must be empty.

picture.py FILE...    SVGs of agent/nfscope/tests/main/picture.rs

An SVG that is well-formed can still lose its columns: a browser collapses runs of spaces, and stretches the rest over the given length.
"""

import base64
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# Cells of a picture that differ from its text, as [line, column, character]. The picture is drawn as an image, twice as large.
WRONG_CELLS = """async source => {
    const svg = new DOMParser().parseFromString(source, 'image/svg+xml').documentElement
    const image = new Image()
    image.src = 'data:image/svg+xml;base64,' + btoa(String.fromCharCode(...new TextEncoder().encode(source)))
    await image.decode()
    const canvas = Object.assign(document.createElement('canvas'), {width: 2 * image.width, height: 2 * image.height})
    const context = canvas.getContext('2d')
    context.drawImage(image, 0, 0, canvas.width, canvas.height)
    // A cell is empty where its middle has one colour.
    const empty = (x, y, width, height) => {
        const pixels = new Uint32Array(context.getImageData(2 * x, 2 * y, 2 * width, 2 * height).data.buffer)
        return pixels.every(p => p === pixels[0])
    }
    const wrong = []
    let cells = 0
    for (const text of svg.querySelectorAll('text')) {
        const [left, baseline, length] = ['x', 'y', 'textLength'].map(name => Number(text.getAttribute(name)))
        const letters = [...text.textContent]
        const width = length / letters.length
        letters.forEach((letter, i) => {
            cells += 1
            const x = left + i * width
            if (empty(x + 0.15 * width, baseline - 11, 0.7 * width, 13) !== (letter === ' ')) wrong.push([text.textContent, i, letter])
        })
    }
    return {cells, wrong}
}"""


def main():
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        for file in map(Path, sys.argv[1:]):
            seen = page.evaluate(WRONG_CELLS, file.read_text(encoding="utf-8"))
            assert seen["cells"] > 100, f"{file.name} has {seen['cells']} characters"
            assert not seen["wrong"], f"{file.name}: {len(seen['wrong'])} of {seen['cells']} cells are wrong: {seen['wrong'][:5]}"
            print("ok", file.name, seen["cells"], "cells")
        browser.close()


main()

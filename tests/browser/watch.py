"""Waiting and screenshots of the programs that look at pages."""

import time


def until(what, check, seconds=300, pause=0.1):
    """Waits until a check holds; pages draw when they can."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(pause)


def shots(folder):
    """A function that takes a screenshot of a whole page into this folder, if there is one."""

    def shot(page, name):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            # A scrolled page would have its sticky header in the middle of the picture.
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=folder / f"{name}.png", full_page=True)

    return shot

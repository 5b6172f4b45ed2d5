"""How far down a page is the remedy? Opens every issue of the base in a browser and counts those whose command, or
first step, is to be seen without scrolling: on the page, and where the server renders the issue without a script.

    python scripts/first_screen.py [--every 1]

It says in how many the first block of it begins on the first screen, and in how many it is there as a whole.

Needs the extras `serve` and `dev`, and a chromium (CHROMIUM names another one).
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import threading

import uvicorn
from playwright.sync_api import sync_playwright

from kb import KnowledgeBase
from kb.serve import create_app
from kb.serve.listen import configured

SCREENS = {"desktop": (1280, 760), "phone": (390, 760)}
PLACES = {"page": ("#/issue/", ".cure :is(.fence, p)"), "without a script": ("issue/", "#fix :is(li, p, pre)")}
SHOWN = "issue => document.querySelector('.whole > .links > code')?.textContent === issue"
LINE = 24  # pixels: so much of it is to be seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="open every n-th issue only")
    every = parser.parse_args().every
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with KnowledgeBase.open() as base, socket.create_server(("127.0.0.1", 0)) as place, sync_playwright() as playwright:
        server = uvicorn.Server(configured(create_app(base)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        home = f"http://127.0.0.1:{place.getsockname()[1]}/"
        issues = [records[0].issue for records in base.catalogue().issues.values()][::every]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (path, remedy) in PLACES.items():
            for screen, (width, height) in SCREENS.items():
                page = browser.new_page(viewport={"width": width, "height": height})
                begun = whole = 0
                for issue in issues:
                    slug, _, number = issue.rpartition("#")
                    page.goto(f"{home}{path}{slug}/{number}")
                    page.wait_for_function(SHOWN, arg=issue)
                    box = page.locator(remedy).first.bounding_box()
                    begun += box is not None and box["y"] + LINE <= height
                    whole += box is not None and box["y"] + box["height"] <= height
                shares = (f"{n} of {len(issues)} ({n / len(issues):.1%})" for n in (begun, whole))
                print(f"{name:<18} {screen:<8} {width:>4} x {height:<4}  begins: {next(shares)}, whole: {next(shares)}")
                page.close()
        browser.close()
        server.should_exit = True
        thread.join(10)


if __name__ == "__main__":
    main()

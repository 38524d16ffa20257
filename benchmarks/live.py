"""What a page costs that is made live.

    PYTHONPATH=.:book python -m benchmarks.live

Needs ``make book``. Bytes from the site and processor seconds of the browser until Python is ready,
the first time and after a reload.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

from benchmarks.browser import started

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"


def main() -> None:
    """Print both."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(HTML.parents[1] / "book" / "_tools"))
    from serve import Handler

    sent = [0]

    class Counts(Handler):
        def send_header(self, name: str, value: str) -> None:
            if name == "Content-Length" and "/live/" in self.path:
                sent[0] += int(value)
            super().send_header(name, value)

    handler = functools.partial(Counts, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()

        def ready(name: str, how: str) -> None:
            page.goto(f"http://127.0.0.1:{server.server_port}/{name}")
            page.wait_for_timeout(3000)  # formulas and pictures are not what is measured
            before, sent[0] = started(), 0
            page.click("[data-live]")
            page.wait_for_selector(".live-top[data-ready]", timeout=120_000)
            spent = started() - before
            print(f"{name}, {how}: {sent[0] / 1e6:.2f} MB, {spent:.1f} CPU s", flush=True)

        ready("book/bias/growth.html", "cold")
        ready("book/bias/growth.html", "warm")
        browser.close()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()

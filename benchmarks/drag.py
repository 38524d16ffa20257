"""Work per drag event on the token board, in headless Chromium: ``python -m benchmarks.drag``.

Handler and drawing with training live, after the engine has compiled the code. Needs ``make book``.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from pathlib import Path

import numpy as np

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"


def main() -> None:
    """Print median and 95th percentile for both parameterisations."""
    from playwright.sync_api import sync_playwright

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        for form in ("W", "KQ"):
            query = "?token_board=" + json.dumps({"form": form, "open": 2, "k": 200})
            page.goto(f"http://127.0.0.1:{server.server_port}/book/svm/tokens.html{query}")
            root = page.locator("[data-explorable=token_board]").first
            page.wait_for_selector("[data-ready]")
            handle = root.locator("[data-handle=x00]")
            handle.scroll_into_view_if_needed()
            box = handle.bounding_box()
            assert box is not None
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            page.mouse.move(x, y)
            page.mouse.down()
            work = []
            for k in range(300):
                page.mouse.move(x + 30 * np.sin(k / 9), y + 20 * np.cos(k / 7))
                page.wait_for_timeout(20)
                work.append(float(root.get_attribute("data-work") or "nan"))
            page.mouse.up()
            later = np.array(work[100:])
            print(
                f"{form}: median {np.median(later):.1f} ms, p95 {np.percentile(later, 95):.1f} ms"
            )
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()

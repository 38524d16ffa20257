"""Take the picture of README.md: the first explorable of the book, before its question is answered.

python book/pictures/first_run.py
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "_tools"))
os.environ["ATTNLAB_STATIC"] = "1"  # explorables as pages hold them, without a kernel
STATE = {"t": 60}  # the step at which the reader is asked
COLOURS = 64


def main() -> None:
    """Photograph the explorable down to its last answer, at twice the usual resolution."""
    import look

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        name = look.write(Path(folder), "FirstRun")
        server, root = look.serve(Path(folder))
        browser = look.chromium(playwright)
        address = f"{root}/{name}.html?{name}={quote(json.dumps(STATE))}"
        how = {"viewport": {"width": 800, "height": 800}, "device_scale_factor": 2}
        page, complaints = look.opened(browser, address, **how)
        page.wait_for_selector("[data-ready=true]")
        page.wait_for_timeout(700)  # fonts and formulas settle
        top = page.locator("[data-explorable]").bounding_box()
        last = page.locator("[data-explorable] label").last.bounding_box()
        clip = {"x": 0, "y": top["y"] + 4, "width": 800}
        clip["height"] = last["y"] + last["height"] + 16 - clip["y"]
        data = page.screenshot(clip=clip, full_page=True)
        browser.close()
        server.shutdown()
    if complaints:
        sys.exit("\n".join(complaints))
    picture = Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS)
    picture.save(HERE / "first_run.png", optimize=True)


if __name__ == "__main__":
    main()

"""The library in a browser against here, and what a page costs that is made live.

    PYTHONPATH=.:book python -m benchmarks.live

Needs ``make book``. Browser and native take turns in one run; ratios are of the least seconds.
Costs are bytes from the site and processor seconds of the browser until Python is ready, the first
time and after a reload.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
TURNS = 3
WORK = """
import json, time
import numpy as np
from attnlab import models, ntk, optim, problems, svm
tokens = problems.sphere(n=6, T=8, d=10, trials=20, rng=0)
hard = problems.sphere(n=5, T=5, d=10, trials=20, rng=1)
draw = np.random.default_rng(2).standard_normal((50, 5, 20))
sequences = problems.SequenceProblem(X=draw, y=np.sign(draw[:, 0, 0]))
encoder = models.Encoder(width=200)
start = encoder.init(sequences, rng=3)
work = {
    "gradients: 300 normalized steps, 20 trials, n=6, T=8, d=10":
        lambda: optim.train(models.Attention(), tokens, optim.NormalizedGD(0.1), 300, rng=4),
    "gradients: 20 of an encoder, n=50, T=5, d=20, width 200":
        lambda: [encoder.value_and_grad(start, sequences) for _ in range(20)],
    "margin: token margins, Frobenius, 20 problems, n=T=5, d=10":
        lambda: svm.attention_svm(hard),
    "SVM: nuclear norm, 20 problems, n=T=5, d=10":
        lambda: svm.attention_svm(hard, norm="nuc"),
    "ntk: an encoder's kernel, n=50, T=5, d=20, width 200":
        lambda: ntk.empirical(encoder, start, sequences),
}
found = {}
for name, call in work.items():
    call()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    found[name] = min(times)
print("SECONDS" + json.dumps(found))
"""
IDLE = "() => !document.querySelector('.cell:is([data-state=waits], [data-state=runs])')"


def seconds_of(text: str) -> dict[str, float]:
    """What the work printed."""
    return dict(json.loads(text.partition("SECONDS")[2].splitlines()[0]))


def native() -> dict[str, float]:
    """The work in a fresh process, on one thread."""
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True,
                          env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
    return seconds_of(done.stdout)


def processor(root: int) -> float:
    """Seconds of a process and of all that it started (Linux)."""
    parents: dict[int, list[int]] = {}
    spent = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            told = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(told[1]), []).append(int(place.name))
        spent[int(place.name)] = sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    total, todo = 0.0, [root]
    while todo:
        one = todo.pop()
        total += spent.get(one, 0.0)
        todo += parents.get(one, [])
    return total


def main() -> None:
    """Print both tables."""
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
            before, sent[0] = processor(os.getpid()), 0
            page.click("[data-live]")
            page.wait_for_selector(".live-top[data-ready]", timeout=120_000)
            spent = processor(os.getpid()) - before
            print(f"{name}, {how}: {sent[0] / 1e6:.2f} MB, {spent:.1f} CPU s", flush=True)

        ready("book/bias/growth.html", "cold")
        ready("book/bias/growth.html", "warm")
        ready("book/scratch.html", "warm")
        editor = page.locator(".al-scratch .cm-content").first
        editor.focus()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(WORK)
        best: dict[str, dict[str, float]] = {"here": {}, "browser": {}}

        def there() -> dict[str, float]:
            page.locator('.al-scratch [data-do="run"]').first.click()
            page.wait_for_timeout(200)
            page.wait_for_function(IDLE, timeout=300_000)
            return seconds_of(page.locator(".al-scratch .cell_output").first.inner_text())

        for _ in range(TURNS):
            turns: dict[str, Any] = {"here": native, "browser": there}
            for where, call in turns.items():
                for name, took in call().items():
                    best[where][name] = min(took, best[where].get(name, took))
        for name, took in best["here"].items():
            other = best["browser"][name]
            print(f"{name}: {other / took:.1f} times here's {1000 * took:.3g} ms")
        browser.close()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()

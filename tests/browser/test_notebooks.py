"""The same pages with a kernel: every download runs alone, and JupyterLab hosts explorables."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import numpy as np
import open_lab
import pytest
from nbclient import NotebookClient

from attnbook import widgets

TOOLS = Path(__file__).resolve().parents[2] / "book" / "_tools"
HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
DOWNLOADS = sorted((HTML / "downloads").rglob("*.ipynb")) if HTML.is_dir() else []
# two pages in `make test`, the others in `make test-all`: all of them ran with the book
FIRST = {HTML / "downloads" / f"{page}.ipynb" for page in ("encoder/assumptions", "bias/attention")}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the site offers, installed where nothing else of attnlab is."""
    (wheel,) = (HTML / "downloads").glob("attnlab-*.whl")
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True)
    return target


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.relative_to(HTML / "downloads").as_posix(),
            marks=() if path in FIRST else pytest.mark.long,
        )
        for path in DOWNLOADS
    ],
)
def test_a_download_runs(path: Path, installed: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed))
    notebook = nbformat.read(path, as_version=4)
    where = nbformat.v4.new_code_cell("import attnlab; print(attnlab.__file__)")
    notebook.cells.append(where)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    assert str(installed) in where.outputs[0]["text"], "the wheel ran, not the checkout"


@contextmanager
def serving(command: list[str], folder: Path, installed: Path) -> Iterator[str]:
    """The address of a JupyterLab that a command starts, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        *("--no-browser", f"--port={port}", "--ServerApp.token=", "--ServerApp.password="),
        "--ServerApp.disable_check_xsrf=True",
    ]
    environment = {**os.environ, "PYTHONPATH": str(installed), "JUPYTER_CONFIG_DIR": str(folder)}
    log = folder / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [*command, *options], env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        until = time.monotonic() + 300
        with socket.socket() as probe:
            while probe.connect_ex(("127.0.0.1", port)):
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # and whatever it runs pages with
        server.wait()


@pytest.fixture
def lab(tmp_path: Path, installed: Path) -> Iterator[str]:
    """A real JupyterLab over the token-board page, with one more cell that reads the board."""
    (page,) = [path for path in DOWNLOADS if path.parts[-2:] == ("svm", "tokens.ipynb")]
    notebook = nbformat.read(page, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and "board" in cell.source]
    read = nbformat.v4.new_code_cell('print("board:", board.problem.X[0, 0].tolist())')
    notebook.cells = [code[0], read]
    nbformat.write(notebook, tmp_path / "board.ipynb")
    command = [
        *(sys.executable, "-m", "jupyterlab", "--allow-root", "--LabApp.news_url=None"),
        f"--ServerApp.root_dir={tmp_path}",
    ]
    with serving(command, tmp_path, installed) as address:
        yield f"{address}/lab/tree/board.ipynb"


def test_a_double_click_opens_a_notebook(chromium, installed: Path, tmp_path: Path) -> None:
    """`make lab` shows pages and nothing else, readable, and keeps what somebody types."""
    folder = tmp_path / "lab"
    command = [sys.executable, str(TOOLS / "open_lab.py"), "--folder", str(folder)]
    with serving(command, tmp_path, installed) as address:
        context = chromium.new_context(viewport={"width": 1280, "height": 1400})
        page = context.new_page()
        page.goto(address, wait_until="domcontentloaded", timeout=90_000)
        listed = page.locator(".jp-DirListing-item")
        listed.first.wait_for(timeout=90_000)
        page.locator(".jp-MarkdownCell h1", has_text="Attention").wait_for(timeout=90_000)
        chapters = ["bias", "encoder", "multihead", "svm"]
        pages = ["index.ipynb", "one-picture.ipynb", "open.ipynb", "scratch.ipynb"]
        assert page.locator(".jp-DirListing-itemName").all_inner_texts() == chapters + pages
        assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0, "nothing is asked"

        listed.filter(has_text="encoder").dblclick()
        listed.filter(has_text="step.ipynb").dblclick()
        opened = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        opened.locator("h1", has_text="What step size 1 means").wait_for(timeout=90_000)
        opened.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Control+Home")
        page.keyboard.type("# mine\n")
        page.keyboard.press("Control+s")
        changed = folder / "encoder" / "step.ipynb"
        for _ in range(100):
            if "# mine" in changed.read_text("utf-8"):
                break
            page.wait_for_timeout(200)

        last = opened.locator("details", has_text="Solution").last
        for _ in range(100):  # cells are drawn as they come into view
            if last.count():
                break
            page.mouse.wheel(0, 1000)
            page.wait_for_timeout(200)
        assert last.get_attribute("open") is None
        assert not last.locator("mjx-container").first.is_visible()
        last.locator("summary").click()
        assert last.locator("mjx-container").first.is_visible(), "formulas are set in what opens"
        context.close()
    assert "# mine" in changed.read_text("utf-8")
    ours = nbformat.read(changed, as_version=4)
    again = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("A new version")])
    texts = {"encoder/step.ipynb": nbformat.writes(again)}
    assert open_lab.renew(folder, texts) == [folder / "encoder" / "step (2).ipynb"]
    assert nbformat.read(changed, as_version=4) == ours


def test_jupyterlab_drags_and_python_reads(chromium, lab: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 1400})
    page = context.new_page()
    page.goto(lab, wait_until="domcontentloaded", timeout=90_000)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    page.wait_for_timeout(2000)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    board = page.locator('[data-explorable="token_board"][data-ready]').first
    board.wait_for(timeout=90_000)
    board.locator("[data-show]").click()
    handle = board.locator('[data-handle="x00"]')
    handle.wait_for(timeout=30_000)
    page.wait_for_timeout(6000)  # the run that it starts
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 30, steps=8)
    page.mouse.up()
    handle.focus()
    page.keyboard.press("ArrowUp")  # an arrow key stays with the handle
    page.wait_for_timeout(1500)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").nth(1).click()
    page.keyboard.press("Shift+Enter")
    output = page.locator(".jp-RenderedText", has_text="board:")
    output.wait_for(timeout=60_000)
    found = [float(word) for word in re.findall(r"-?\d+\.\d+", output.inner_text())]
    start = widgets.token_board.DEFAULT["X"][0][0]
    assert np.abs(np.array(found) - start).min() > 0.05, "Python sees where the token was dragged"
    shown = handle.get_attribute("aria-label")
    told = [float(word) for word in re.findall(r"-?\d+\.\d+", shown)]
    assert told == pytest.approx(found, abs=0.011)
    context.close()

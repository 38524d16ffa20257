"""The same pages with a kernel: every download runs alone, and JupyterLab hosts explorables."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from attnbook import widgets

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


@pytest.fixture
def lab(tmp_path: Path, installed: Path):
    """A real JupyterLab over the token-board page, with one more cell that reads the board."""
    (page,) = [path for path in DOWNLOADS if path.parts[-2:] == ("svm", "tokens.ipynb")]
    notebook = nbformat.read(page, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and "board" in cell.source]
    read = nbformat.v4.new_code_cell('print("board:", board.problem.X[0, 0].tolist())')
    notebook.cells = [code[0], read]
    nbformat.write(notebook, tmp_path / "board.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root"),
        *("--ServerApp.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True"),
        *(f"--ServerApp.root_dir={tmp_path}", "--LabApp.news_url=None"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(installed), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    log = (tmp_path / "lab.log").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    yield f"{address}/lab/tree/board.ipynb"
    server.terminate()
    server.wait()
    log.close()


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

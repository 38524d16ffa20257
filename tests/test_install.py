"""Install lines come from one setting, and missing extras are named before anything is computed."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnbook
import attnlab
from attnbook import install

ROOT = Path(__file__).resolve().parents[1]
WHEEL = f"attnlab-{attnlab.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from with attnlab and the packages that it always needs, and no other."""
    place = tmp_path_factory.mktemp("bare")
    for package in (attnlab, attnbook):
        folder = Path(str(package.__file__)).parent
        (place / folder.name).symlink_to(folder)
    for name in ("numpy", "scipy", "tqdm"):
        package = importlib.metadata.distribution(name)
        for top in {path.parts[0] for path in package.files or ()} - {"..", "__pycache__"}:
            (place / top).symlink_to(package.locate_file(top))
    return place


def attnlab_command(bare: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command there; -S leaves out all packages that are installed."""
    environment = {
        name: one for name, one in os.environ.items() if name != "COVERAGE_PROCESS_START"
    }
    return subprocess.run(
        [sys.executable, "-S", "-B", "-m", "attnbook", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(bare)},
    )


DRAWN = "matplotlib, joblib, threadpoolctl"
PROBE = ["probe", "minilm", "--layer", "1", "--head", "8", "--text", "texts.txt"]


@pytest.mark.parametrize(
    ("arguments", "purpose", "packages", "extras"),
    [
        (
            ["figure", "svm.5"],
            "Computing and drawing svm.5 needs",
            "matplotlib, joblib and threadpoolctl",
            "figures",
        ),
        (
            ["figure", "svm.5", "svm.3", "--workers", "1"],
            "Computing and drawing 2 figures needs",
            "matplotlib, joblib and threadpoolctl",
            "figures",
        ),
        (
            ["figure", "bias.10"],
            "Computing and drawing bias.10 needs",
            f"{DRAWN} and scikit-learn",
            "figures,real",
        ),
        (
            ["figure", "encoder.4"],
            "Computing and drawing encoder.4 needs",
            f"{DRAWN} and PyTorch",
            "figures,real-train",
        ),
        (
            ["figure", "svm.5", "--backend", "dask", "--scheduler", "tcp://127.0.0.1:9"],
            "Computing and drawing svm.5 needs",
            f"{DRAWN} and Dask",
            "figures,dask",
        ),
        (PROBE, "Measuring a head needs", "matplotlib and threadpoolctl", "figures"),
        (
            ["course", "new", "fall27", "--seed", "1"],
            "The step 'new' needs",
            "jupytext",
            "instructor",
        ),
        (
            ["course", "similar", "fall27"],
            "The step 'similar' needs",
            "jupytext",
            "instructor",
        ),
        (
            ["course", "verify", "set.md"],
            "The step 'verify' needs",
            "jupytext",
            "instructor",
        ),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_computed(
    bare: Path, tmp_path: Path, arguments: list[str], purpose: str, packages: str, extras: str
) -> None:
    done = attnlab_command(bare, tmp_path, *arguments)
    verb = "are" if " and " in packages else "is"
    start = f"attnlab {arguments[0]}: {purpose} {packages}, which {verb} not installed: "
    assert done.stderr.startswith(start)
    assert done.stderr.endswith(f'pip install "{WHEEL}[{extras}]"\n')
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == [], "nothing was begun"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["figures"],
        ["check", "svm.theorem-1", "--instances", "3", "--workers", "1"],
        ["course", "template", "set.md"],
    ],
)
def test_what_needs_no_extra_runs_without(bare: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = attnlab_command(bare, tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_bad_input_is_named_before_a_missing_extra(bare: Path, tmp_path: Path) -> None:
    done = attnlab_command(bare, tmp_path, "figure", "svm.55")
    assert done.stderr.startswith("attnlab figure: id: expected a figure, such as")


# -- install lines ---------------------------------------------------------------------------------
def test_one_setting_changes_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not install.RELEASED, "change the lines in the documents, and this test, with it"
    assert install.install_line() == 'pip install "."'
    assert install.install_line("figures") == 'pip install ".[figures]"'
    assert install.install_line("book", "wheel") == f'pip install "{WHEEL}[book]"'
    monkeypatch.setattr(install, "RELEASED", True)
    for source in install.SOURCES:
        assert install.install_line("figures", source) == 'pip install "attnlab[figures]"'
    assert install.local_requirement("figures") == '"attnlab[figures]"'
    with pytest.raises(
        ValueError, match="source: expected one of 'checkout', 'wheel', got 'conda'"
    ):
        install.requirement("figures", "conda")


def test_documents_and_code_print_lines_of_the_setting() -> None:
    names = ["", *importlib.metadata.metadata("attnlab").get_all("Provides-Extra")]
    lines = {install.install_line(name, source) for name in names for source in install.SOURCES}
    seen = 0
    pages = [path for path in (ROOT / "book").rglob("*.md") if "_build" not in path.parts]
    code = [path for place in ("book/attnbook", "attnlab") for path in (ROOT / place).rglob("*.py")]
    for path in pages + code:
        text = path.read_text("utf-8").replace("VERSION", attnlab.__version__)
        for found in re.findall(r"""pip install ["'](?:attnlab|\.)[^"']*["']""", text):
            if " @ " not in found:  # an address of one's own
                assert found in lines, f"{path}: {found}"
                seen += 1
    assert seen > 4


@pytest.mark.parametrize("kind", ["editable", "folder", "wheel", "moved wheel", "address", "index"])
def test_the_line_of_this_machine_names_where_attnlab_came_from(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "with space" / WHEEL
    wheel.parent.mkdir()
    if kind == "wheel":
        wheel.touch()
    about, expected = {
        "editable": (
            {"url": tmp_path.as_uri(), "dir_info": {"editable": True}},
            f'--editable "{tmp_path}[real]"',
        ),
        "folder": ({"url": tmp_path.as_uri(), "dir_info": {}}, f'"{tmp_path}[real]"'),
        "wheel": ({"url": wheel.as_uri(), "archive_info": {}}, f'"{wheel}[real]"'),
        "moved wheel": ({"url": wheel.as_uri(), "archive_info": {}}, f'"{WHEEL}[real]"'),
        "address": (
            {"url": f"https://book.example/{WHEEL}"},
            f'"attnlab[real] @ https://book.example/{WHEEL}"',
        ),
        "index": (None, f'"{WHEEL}[real]"'),
    }[kind]

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(about) if about else None

    monkeypatch.setattr(install.metadata, "distribution", lambda _: Installed())
    assert install.local_requirement("real") == expected
    monkeypatch.chdir(tmp_path)
    if kind == "editable":
        assert install.local_requirement("real") == '--editable ".[real]"'


def test_the_line_of_this_machine_uses_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, pip = tmp_path / "python", tmp_path / "pip"
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(install.shutil, "which", lambda _: "/usr/bin/pip")
    assert install.local_install_line("real").startswith(f"{python} -m pip install ")
    monkeypatch.setattr(install.shutil, "which", lambda _: str(pip))
    assert install.local_install_line("real").startswith("pip install ")

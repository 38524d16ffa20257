"""The house: imports point down, and importing attnlab is light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import attnbook
import attnlab

LIBRARY, BOOK = (Path(package.__file__).parent for package in (attnlab, attnbook))
# From the ground up; a room may import from itself and from rooms below it.
FLOORS = [
    "attnlab._blas",
    "attnlab.checks",
    "attnlab.problems",
    "attnlab.models",
    "attnlab.curvature",
    "attnlab.optim",
    "attnlab.svm",
    "attnlab.ntk",
    "attnbook.install",
    "attnbook.files",
    "attnbook.theory",
    "attnbook.claims",
    "attnbook.real",
    "attnbook.figures",
    "attnbook.widgets",
    "attnbook.course",
    "attnbook.cli",
    "attnbook.__main__",
]
HEIGHT = {room: level for level, room in enumerate(FLOORS)}
LIGHT = {"numpy"}
HUB = {"nbgrader", "nbconvert"}  # a class of theirs, for hubs; nothing else imports course/hub.py
WIDGETS = {"anywidget", "traitlets"}  # its classes derive from theirs; attnlab does not import it


def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules that a file imports, and whether at the top (not inside a function)."""
    tree = ast.parse(path.read_text())
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        top = id(node) not in inner
        if isinstance(node, ast.Import):
            found += [(alias.name, top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            if node.module in ("attnlab", "attnbook"):
                found += [(f"{node.module}.{alias.name}", top) for alias in node.names]
            else:
                found.append((node.module, top))
    return found


def files() -> list[Path]:
    return [path for home in (LIBRARY, BOOK) for path in sorted(home.rglob("*.py"))]


def room_of(path: Path) -> str:
    home = LIBRARY if path.is_relative_to(LIBRARY) else BOOK
    return f"{home.name}.{path.relative_to(home).parts[0].removesuffix('.py')}"


def test_imports_point_down_through_public_names() -> None:
    seen = set()
    for path in files():
        room = room_of(path)
        if room.endswith("__init__"):
            continue
        assert room in HEIGHT, f"{path}: a room that FLOORS does not know"
        for module, _ in imports(path):
            parts = module.split(".")
            if parts[0] not in ("attnlab", "attnbook") or len(parts) == 1:
                continue  # others, and the package itself (for its version)
            below = ".".join(parts[:2])
            seen.add((room, below))
            assert HEIGHT[below] <= HEIGHT[room], f"{path} imports {module}, which is above it"
            private = [part for part in parts[2:] if part.startswith("_")]
            assert below == room or not private, f"{path} imports {module}, private to its room"
    assert ("attnlab.optim", "attnlab.models") in seen  # the walk saw something
    assert ("attnbook.claims", "attnlab.svm") in seen


def test_only_numpy_is_imported_at_the_top() -> None:
    standard = set(sys.stdlib_module_names)
    for path in files():
        for module, top in imports(path):
            root = module.split(".")[0]
            if top and root not in standard | {"attnlab", "attnbook", "__future__"}:
                known = LIGHT | (WIDGETS if room_of(path) == "attnbook.widgets" else set())
                known |= HUB if path.name == "hub.py" else set()
                assert root in known, f"{path} imports {module} at the top"


def test_import_is_light() -> None:
    rooms = ", ".join(attnlab.__all__)
    code = f"import sys; from attnlab import {rooms}"
    code += "; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY.parent)}
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert "numpy" in printed
    heavy = {"attnbook", "scipy", "cvxpy", "matplotlib", "anywidget", "tqdm", "torch"}
    assert not heavy & set(printed)


def test_the_tests_see_the_built_wheel() -> None:
    """`make test` says where the wheel was unpacked; nothing may come from the checkout then."""
    under_test = os.environ.get("ATTNLAB_UNDER_TEST")
    if under_test:
        for home in (LIBRARY, BOOK):
            assert home.parent == Path(under_test).resolve()
            assert (home / "py.typed").exists()


def test_modules_can_be_read_in_one_sitting() -> None:
    lengths = {str(path): len(path.read_text().splitlines()) for path in files()}
    assert {path: length for path, length in lengths.items() if length > 350} == {}


def test_the_picture_of_the_house_is_drawn_from_it() -> None:
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, str(root / "book" / "_tools" / "house.py")]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"```\n{drawn}```" in (root / "CONTRIBUTING.md").read_text(encoding="utf-8")

"""The house: imports point down, and importing attnlab is light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import attnlab

HERE = Path(attnlab.__file__).parent
# From the ground up; a room may import from itself and from rooms below it.
FLOORS = [
    ["_checks"],
    ["problems"],
    ["models"],
    ["theory"],
    ["curvature"],
    ["optim"],
    ["svm"],
    ["ntk"],
    ["claims"],
    ["figures"],
    ["widgets"],
    ["course"],
    ["cli"],
    ["__main__"],
]
HEIGHT = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
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
            if node.module == "attnlab":
                found += [(f"attnlab.{alias.name}", top) for alias in node.names]
            else:
                found.append((node.module, top))
    return found


def room_of(path: Path) -> str:
    return path.relative_to(HERE).parts[0].removesuffix(".py")


def test_imports_point_down() -> None:
    seen = set()
    for path in sorted(HERE.rglob("*.py")):
        room = room_of(path)
        if room == "__init__":
            continue
        assert room in HEIGHT, f"{path}: a room that FLOORS does not know"
        for module, _ in imports(path):
            parts = module.split(".")
            if parts[0] != "attnlab" or len(parts) == 1:
                continue  # others, and the package itself (for its version)
            seen.add((room, parts[1]))
            assert HEIGHT[parts[1]] <= HEIGHT[room], f"{path} imports {module}, which is above it"
    assert ("optim", "models") in seen  # the walk saw something
    assert ("models", "problems") in seen


def test_only_numpy_is_imported_at_the_top() -> None:
    standard = set(sys.stdlib_module_names)
    for path in sorted(HERE.rglob("*.py")):
        for module, top in imports(path):
            root = module.split(".")[0]
            if top and root not in standard | {"attnlab", "__future__"}:
                known = LIGHT | (WIDGETS if room_of(path) == "widgets" else set())
                known |= HUB if path.name == "hub.py" else set()
                assert root in known, f"{path} imports {module} at the top"


def test_import_is_light() -> None:
    code = "import sys, attnlab; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert "numpy" in printed
    assert not {"scipy", "cvxpy", "matplotlib", "anywidget", "tqdm", "torch"} & set(printed)


def test_the_tests_see_the_built_wheel() -> None:
    """`make test` says where the wheel was unpacked; nothing may come from the checkout then."""
    under_test = os.environ.get("ATTNLAB_UNDER_TEST")
    if under_test:
        assert HERE.parent == Path(under_test).resolve()
        assert (HERE / "py.typed").exists()


def test_modules_can_be_read_in_one_sitting() -> None:
    lengths = {str(path): len(path.read_text().splitlines()) for path in HERE.rglob("*.py")}
    assert {path: length for path, length in lengths.items() if length > 350} == {}

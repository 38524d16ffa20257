"""The house in one picture, from the imports themselves.

python book/_tools/house.py            prints it
python book/_tools/house.py --write    renews it in CONTRIBUTING.md
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOMES = {"attnbook": ROOT / "book" / "attnbook", "attnlab": ROOT / "attnlab"}
WORDS = {
    "attnlab.checks": "errors that name the argument",
    "attnlab.problems": "what goes in",
    "attnlab.models": "what is trained",
    "attnlab.curvature": "how it bends",
    "attnlab.optim": "what happens",
    "attnlab.svm": "where it goes",
    "attnlab.ntk": "what it looks like from its start",
    "attnbook.install": "install lines, missing extras",
    "attnbook.files": "files and processes",
    "attnbook.theory": "what is promised",
    "attnbook.claims": "what survives",
    "attnbook.real": "what happens outside",
    "attnbook.figures": "what is reproduced",
    "attnbook.widgets": "what moves",
    "attnbook.course": "what is assigned",
    "attnbook.cli": "the command attnlab",
}
MARKS = ("<!-- the house: python book/_tools/house.py --write -->", "<!-- end of the house -->")


def imports(path: Path) -> set[str]:
    """Modules of ours that a file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in HOMES}


def rooms() -> dict[str, set[str]]:
    """Rooms, and the rooms that they stand on."""
    found: dict[str, set[str]] = {}
    for package, home in HOMES.items():
        for place in sorted(home.iterdir()):
            if place.name.startswith("_") or not (place.is_dir() or place.suffix == ".py"):
                continue
            room = f"{package}.{place.stem}"
            files = place.rglob("*.py") if place.is_dir() else [place]
            below = {".".join(name.split(".")[:2]) for path in files for name in imports(path)}
            found[room] = {name for name in below if "." in name} - {room}
    return {room: {name for name in below if name in found} for room, below in found.items()}


def height(room: str, graph: dict[str, set[str]]) -> int:
    """On which floor a room lies: one above the highest that it stands on."""
    return 1 + max((height(below, graph) for below in graph[room]), default=0)


def lines(room: str) -> int:
    """Lines of Python in a room."""
    package, name = room.split(".")
    place = HOMES[package] / name
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def picture() -> str:
    """Rooms from the roof to the ground, each with what it stands on."""
    graph = rooms()
    out = []
    for package in HOMES:
        inside = [room for room in graph if room.startswith(f"{package}.")]
        inside.sort(key=lambda room: (-height(room, graph), room))
        out.append(f"{package:9} {'':34} stands on")
        for room in inside:
            below = sorted(graph[room], key=lambda name: (-height(name, graph), name))
            own = [name.split(".")[1] for name in below if name.startswith(package)]
            other = [name.split(".")[1] for name in below if not name.startswith(package)]
            told = ", ".join(own) + (f" | {', '.join(other)}" if other else "")
            out.append(f"  {room.split('.')[1]:9} {WORDS[room]:33} {told}".rstrip())
        if package == "attnbook":
            out += ["", "=" * 20 + " nothing below knows anything above " + "=" * 20, ""]
    return "\n".join(out)


def main() -> int:
    """Print, or write."""
    place = ROOT / "CONTRIBUTING.md"
    if "--write" in sys.argv:
        text = place.read_text(encoding="utf-8")
        start, end = MARKS
        block = f"{start}\n```\n{picture()}\n```\n{end}"
        found = re.sub(
            re.escape(start) + r".*?" + re.escape(end), lambda _: block, text, flags=re.S
        )
        place.write_text(found, encoding="utf-8")
    else:
        print(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a page or a check depends on: files of attnlab and attnbook, by who imports whom.

Read from the source, not guessed from a run: every import counts, also inside functions. Rooms
that only hold other rooms (`HUBS`) count with what is taken from them: `theory.svm` does not
depend on `theory.bias`. What cannot be told apart counts as a whole.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOMES = {"attnlab": ROOT / "attnlab", "attnbook": ROOT / "book" / "attnbook"}
# Packages whose modules only define things: importing one changes nothing for the others.
# tests/test_sources.py reads them and fails on one that does more.
HUBS = {"attnlab", "attnbook", "attnbook.theory", "attnbook.widgets"}
# They import a paper when it is asked for: whoever imports one from outside gets all four, or of
# figures those whose ids are written. A paper itself does not ask (the same test sees to it).
REGISTRIES = ("attnbook.claims", "attnbook.figures")
PAPERS = ("multihead", "encoder", "bias", "svm")
LIBRARIES = ("attnbook.real.",)  # what they import by name is installed, none of it ours
LAZY_HUBS = ("attnlab.", "attnbook.")  # their rooms come through __getattr__
JS_IMPORT = re.compile(r"""^(?:import|export)\b[^"';]*?["'](\.{1,2}/[^"']+)["']""", re.M)
OPEN = re.compile(r"\b(?:exec|eval|compile|open|runpy|subprocess|system|read_text|read_bytes)\b")
WHOLE = "*"  # in place of a local name: nothing can be told apart
VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class Sources:
    """The two packages as they are on disk, now."""

    def __init__(self, homes: dict[str, Path] | None = None) -> None:
        self.modules: dict[str, Path] = {}
        self.data: dict[str, dict[str, Path]] = {}  # by package, then by path inside it
        for name, home in (homes or HOMES).items():
            self._walk(name, home)
        self._packages = {name for name, path in self.modules.items() if path.name == "__init__.py"}
        self._reads: dict[str, tuple[set[str], set[str]]] = {}
        self._given: dict[str, dict[str, str]] = {}
        self._owners: dict[str, dict[str, set[str]]] = {}

    def _walk(self, package: str, folder: Path, top: str = "") -> None:
        """Modules by their dotted names; other files belong to the package around them."""
        for path in sorted(folder.iterdir()):
            if path.name == "__pycache__" or path.name.startswith("."):
                continue
            inside = f"{top}{path.name}"
            if path.is_dir() and (path / "__init__.py").is_file():
                self._walk(f"{package}.{path.name}", path)
            elif path.is_dir():
                self._walk(package, path, f"{inside}/")
            elif path.suffix == ".py" and not top:
                stem = "" if path.stem == "__init__" else f".{path.stem}"
                self.modules[f"{package}{stem}"] = path
            elif path.suffix != ".md":  # what is written for people changes no result
                self.data.setdefault(package, {})[inside] = path

    # -- who imports whom ----------------------------------------------------------------------
    def of_code(self, code: str, module: str = "") -> tuple[set[str], set[str]]:
        """What Python code names: modules with all that they import, and modules alone."""
        tree = ast.parse(code)
        whole: set[str] = set()
        alone: set[str] = set()
        bound: dict[str, set[str]] = {}  # local names that are packages to look into
        for node in ast.walk(tree):
            for target, local in self._imported(node, module):
                if self._looked_into(target) and local != WHOLE:
                    alone.add(target)
                    bound.setdefault(local or target.split(".")[0], set()).add(target)
                else:
                    whole.add(target)
                alone |= set(self._ancestors(target))
        for target, names in used(tree, bound):
            self._resolve(target, names, whole, alone)
        registry = next((name for name in REGISTRIES if module.startswith(name)), "")
        for prefix in [] if registry or module.startswith(LIBRARIES) else dynamic(tree):
            if prefix not in LAZY_HUBS:  # the hub's own __getattr__: seen where it is used
                whole |= {name for name in self.modules if name.startswith(prefix)}
        for name in REGISTRIES:
            if name != registry and self._asks(name, whole):
                whole |= papers_of(name)
        if "attnbook.figures" in set().union(*bound.values()):
            whole.add("attnbook.figures")
        return whole, alone

    def _asks(self, registry: str, modules: set[str]) -> bool:
        """Whether one of the modules is a registry, or the part of it that imports papers."""
        mine = [name for name in modules & set(self.modules) if name.startswith(registry)]
        return any(
            name == registry or any(dynamic(ast.parse(self.modules[name].read_text("utf-8"))))
            for name in mine
        )

    def _looked_into(self, target: str) -> bool:
        return target in HUBS or target == "attnbook.figures"

    def _imported(self, node: ast.AST, module: str) -> Iterator[tuple[str, str]]:
        """Modules of ours that a statement imports, with the local name where it binds one."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in self.modules:
                    top = alias.name.split(".")[0]
                    yield alias.name, alias.asname or ""
                    if not alias.asname and top != alias.name:
                        yield top, top
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = module if module in self._packages else module.rpartition(".")[0]
                parts = around.split(".")[: len(around.split(".")) + 1 - node.level]
                base = ".".join([*parts, *([base] if base else [])])
            if base not in self.modules:
                return
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in self.modules:
                    yield full, alias.asname or alias.name
                elif base in HUBS and alias.name in self._exports(base):
                    yield self._exports(base)[alias.name], ""
                elif base in HUBS and not alias.name.startswith("__"):
                    yield from ((name, WHOLE) for name in self._below(base))
                else:
                    yield base, "__" if base in HUBS else WHOLE

    def _ancestors(self, target: str) -> Iterator[str]:
        """Packages around a module: Python runs them first."""
        while "." in target:
            target = target.rpartition(".")[0]
            yield target

    def _below(self, package: str) -> Iterator[str]:
        return (name for name in self.modules if name.startswith(f"{package}."))

    def _exports(self, package: str) -> dict[str, str]:
        """Where a hub's names come from."""
        if package not in self._given:
            found: dict[str, str] = {}
            for node in ast.parse(self.modules[package].read_text("utf-8")).body:
                if isinstance(node, ast.ImportFrom) and node.module in self.modules:
                    for alias in node.names:
                        full = f"{node.module}.{alias.name}"
                        place = full if full in self.modules else str(node.module)
                        found[alias.asname or alias.name] = place
            self._given[package] = found
        return self._given[package]

    def _resolve(self, target: str, names: list[str], whole: set[str], alone: set[str]) -> None:
        """``theory.svm.water_filling`` leads to one paper; a bare ``theory`` to all of it."""
        alone.add(target)
        if target == "attnbook.figures":
            paper = figure_paper(names)
            whole |= (
                papers_of(target) if paper is None else {f"{target}.{paper}"} if paper else set()
            )
            return
        if target not in HUBS:
            whole.add(target)
            return
        if not names:
            whole |= set(self._below(target))
        elif names[0].startswith("__"):
            return  # such as __version__, __file__
        elif f"{target}.{names[0]}" in self.modules:
            self._resolve(f"{target}.{names[0]}", names[1:], whole, alone)
        elif names[0] in self._exports(target):
            whole.add(self._exports(target)[names[0]])
        else:
            whole |= set(self._below(target))

    def _read(self, module: str) -> tuple[set[str], set[str]]:
        """What one module imports."""
        if module not in self._reads:
            whole, alone = self.of_code(self.modules[module].read_text("utf-8"), module)
            self._reads[module] = (whole, alone)
        return self._reads[module]

    # -- files ---------------------------------------------------------------------------------
    def files(self, whole: Iterable[str], alone: Iterable[str] = ()) -> set[Path]:
        """All files that these modules come to depend on, themselves included."""
        todo, seen, single = list(whole), set(), set(alone)
        while todo:
            module = todo.pop()
            if module in seen or module not in self.modules:
                continue
            seen.add(module)
            if module in HUBS:
                continue
            more, lone = self._read(module)
            todo += more
            single |= lone
            todo += [name for name in self._ancestors(module) if name not in HUBS]
            single |= set(self._ancestors(module)) & HUBS
        seen |= single & set(self.modules)
        found = {self.modules[module] for module in seen}
        for module in seen - HUBS:
            found |= self._data_of(module)
        return found

    def _data_of(self, module: str) -> set[Path]:
        """Files that a module names, what those import, and files of its package nobody names."""
        package = self._package(module)
        if package not in self.data:
            return set()
        if package not in self._owners:
            members = [name for name in self.modules if self._package(name) == package]
            named = {name: self._named(name, self.data[package]) for name in members}
            orphans = set(self.data[package]) - set().union(*named.values())
            self._owners[package] = {name: mine | orphans for name, mine in named.items()}
        return {self.data[package][name] for name in self._owners[package][module]}

    def _package(self, module: str) -> str:
        return module if module in self._packages else module.rpartition(".")[0]

    def _named(self, module: str, mine: dict[str, Path]) -> set[str]:
        words = strings(self.modules[module])
        todo = [name for name in mine if words & {name, Path(name).name, Path(name).stem}]
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in found or name not in mine:
                continue
            found.add(name)
            if name.endswith(".js"):
                folder = Path(name).parent
                for other in JS_IMPORT.findall(mine[name].read_text("utf-8")):
                    todo.append(Path(os.path.normpath(folder / other)).as_posix())
        return found

    # -- keys ----------------------------------------------------------------------------------
    def of_page(self, cells: list[str]) -> set[Path]:
        """Files that a page's cells depend on; of cells that are more than plain Python, all."""
        code = "\n".join(cells)
        try:
            whole, alone = self.of_code(code)
        except SyntaxError:
            return self.everything()
        return self.everything() if OPEN.search(code) else self.files(whole, alone)

    def of_claims(self, paper: str) -> set[Path]:
        """Files that the checks of a paper depend on."""
        return self.files([f"attnbook.claims.{paper}", "attnbook.claims"])

    def everything(self) -> set[Path]:
        """All files."""
        data = {path for files in self.data.values() for path in files.values()}
        return set(self.modules.values()) | data

    def digest(self, files: Iterable[Path], *more: str) -> str:
        """Of files by name and content, of more words, and of what computes."""
        homes = {top: path.parent for top, path in self.modules.items() if "." not in top}
        total = hashlib.sha256(json.dumps([surroundings(), *more]).encode())
        named = []
        for path in files:
            top = next(top for top, home in homes.items() if path.is_relative_to(home))
            named.append((f"{top}/{path.relative_to(homes[top]).as_posix()}", path))
        for name, path in sorted(named):
            total.update(f"\0{name}\0".encode() + content(path))
        return total.hexdigest()


def papers_of(registry: str) -> set[str]:
    """The rooms that a registry may import."""
    return {f"{registry}.{paper}" for paper in PAPERS}


# -- reading Python ----------------------------------------------------------------------------
def used(tree: ast.AST, bound: dict[str, set[str]]) -> Iterator[tuple[str, list[str]]]:
    """Chains of attributes that begin at a bound name; figures come with their literal id."""
    inner: set[int] = set()
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if id(node) in inner or not isinstance(node, ast.Attribute | ast.Name):
            continue
        names: list[str] = []
        at: ast.AST = node
        while isinstance(at, ast.Attribute):
            inner.add(id(at))
            names.insert(0, at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in bound:
            inner.add(id(at))
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                continue
            call = calls.get(id(node))
            first = call.args[0] if call and call.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names.append(f"({first.value}")
            for target in sorted(bound[at.id]):
                yield target, list(names)


def figure_paper(names: list[str]) -> str | None:
    """The paper of ``figures.get("svm.5")``; no paper for what computes none; None: any."""
    if names[:1] in (["get"], ["kept"]) and len(names) == 2:
        paper = names[1].removeprefix("(").split(".")[0]
        return paper if paper in PAPERS else None
    plain = ("show", "style", "colour", "write", "mapper", "Data", "Figure")
    return "" if names and names[0] in plain else None


def dynamic(tree: ast.AST) -> Iterator[str]:
    """What is imported by a name that is made up at run time, as far as it is written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in ("import_module", "__import__"):
            continue
        first = node.args[0]
        if isinstance(first, ast.JoinedStr):
            first = first.values[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            if first.value.split(".")[0] in HOMES:
                yield first.value
        else:
            yield from HOMES  # anything


@cache
def _strings(text: str) -> frozenset[str]:
    return frozenset(
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def strings(path: Path) -> frozenset[str]:
    """Every word in quotes."""
    return _strings(path.read_text("utf-8"))


def content(path: Path) -> bytes:
    """Digest of a file, read again where its time or size changed."""
    state = path.stat()
    return _content(path, state.st_mtime_ns, state.st_size)


@cache
def _content(path: Path, _time: int, _size: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def surroundings() -> list[str]:
    """What computes: Python, the packages of the book's lock as installed, the arithmetic."""
    lock = ROOT / "requirements" / "book.lock"
    names = re.findall(r"^([\w.-]+)==", lock.read_text("utf-8"), re.M)
    found = []
    for name in names:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue  # of another platform
    told = [f"{name}={os.environ.get(name, '')}" for name in VARIABLES]
    return [sys.version, platform.machine(), *told, *found]

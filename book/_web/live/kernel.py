"""Python of a live page: runs its cells in one namespace and tells the page what they show.

It runs in Pyodide, where neither IPython nor ipywidgets nor a compiled solver is: stand-ins say as
much as the book needs. A cell that needs what only a desk has keeps what the build printed; the
statements of it that need nothing such still run, so that later cells find their names.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import linecache
import os
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# threadpoolctl asks Pyodide in a way that Pyodide calls old; a reader's cell need not show it
warnings.filterwarnings("ignore", message="JsProxy.as_object_map", category=RuntimeWarning)

os.environ["ATTNLAB_STATIC"] = "1"  # explorables show themselves as the page's host expects them
os.environ["MPLBACKEND"] = "agg"
DESK = {
    "cvxpy": "cvxpy with a compiled solver",
    "ipywidgets": "controls that only a notebook has",
    "torch": "PyTorch",
    "jax": "JAX",
}
PRINTED = 200_000  # characters that one cell may print
SHOWN = 4_000_000  # characters of all outputs of one run; the page counts them again
TOLD = 20_000  # characters of an error
CALLS = 10  # of a traceback, at its begin and at its end
DEEPEST = 3_000  # calls within calls; far below where the browser's own stack ends
NO_INPUT = "a live page has no keyboard input: write the value into the cell, as in x = 3"
AT_ONCE = 200  # writes that are passed on singly, so that what stands before a loop is seen
PREFIX = "application/papermill.record/"  # what widgets.tell gives

say: Callable[[str], None] = lambda _: None  # noqa: E731 - the page's, once it is there
space: dict[str, Any] = {}
poisoned: set[str] = set()  # names that a desk would have bound
alive: dict[str, Any] = {}  # explorables on the page, by key
forms: dict[str, list[str]] = {}  # how the page's words write what cells tell, by name
last_value: Any = None


# -- stand-ins -----------------------------------------------------------------------------------
def stand_ins() -> None:
    """As much of anywidget and IPython as the book's library asks for."""
    import importlib.machinery

    def module(name: str, **contents: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        made.__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(made).update(contents)
        sys.modules[name] = made
        return made

    anywidget = module("anywidget")

    def widget(name: str) -> type:
        if name != "AnyWidget":
            raise AttributeError(name)
        import traitlets

        anywidget.AnyWidget = type("AnyWidget", (traitlets.HasTraits,), {})  # type: ignore[attr-defined]
        return anywidget.AnyWidget  # type: ignore[attr-defined,no-any-return]

    anywidget.__getattr__ = widget  # type: ignore[method-assign]

    class Markup:
        kind = "text/html"

        def __init__(self, data: str) -> None:
            self.data = data

        def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
            return {self.kind: self.data, "text/plain": f"<{type(self).__name__}>"}

    of = {
        name: type(name, (Markup,), {"kind": kind})
        for name, kind in {
            "HTML": "text/html",
            "SVG": "image/svg+xml",
            "Latex": "text/latex",
        }.items()
    }
    module("IPython", get_ipython=lambda: None, __path__=[], version_info=(9, 0, 0))
    module("IPython.core", __path__=[])
    module("IPython.core.getipython", get_ipython=lambda: space)
    module("IPython.display", display=display, publish_display_data=publish, **of)


class NoKeyboard(io.TextIOBase):
    """Standard input, where nobody can type."""

    def readable(self) -> bool:
        """It is opened for reading, as Python's is."""
        return True

    def read(self, size: int | None = -1, /) -> str:
        """Say that there is none."""
        raise EOFError(NO_INPUT)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Say that there is none."""
        raise EOFError(NO_INPUT)


def no_input(_prompt: object = "", /) -> str:
    """Stand in for `input`."""
    raise EOFError(NO_INPUT)


def limit_recursion(most: int = DEEPEST) -> None:
    """Let cells raise Python's recursion limit to ``most`` and no further."""
    real = sys.setrecursionlimit

    def setrecursionlimit(limit: int, /) -> None:
        """Set the maximum depth of the Python interpreter stack, as far as a page allows."""
        if isinstance(limit, int) and limit > most:
            warnings.warn(
                f"a live page allows {most:,} calls within calls, not {limit:,}",
                RuntimeWarning,
                stacklevel=2,
            )
            limit = most
        real(limit)

    sys.setrecursionlimit = setrecursionlimit


FAILS = {
    "solve": "Singular matrix",
    "inv": "Singular matrix",
    "cholesky": "Matrix is not positive definite",
    "eig": "Eigenvalues did not converge",
    "eigvals": "Eigenvalues did not converge",
    "eigh": "Eigenvalues did not converge",
    "eigvalsh": "Eigenvalues did not converge",
    "svd": "SVD did not converge",
}


def raise_linalg_errors() -> None:
    """Make NumPy's decompositions raise LinAlgError where they failed.

    NumPy learns of a failure by the processor's floating-point flags, which WebAssembly does not
    have; what remains of it there is a result that is NaN throughout, from finite matrices.
    """
    import numpy as np

    for name, words in FAILS.items():
        checked = raises_where_nan(getattr(np.linalg, name), words)
        for module in (np.linalg, sys.modules.get("numpy.linalg._linalg")):
            if module is not None:  # NumPy's own functions call the second
                setattr(module, name, checked)


def raises_where_nan(function: Callable[..., Any], words: str) -> Callable[..., Any]:
    """Let a decomposition raise LinAlgError where one of its matrices failed."""
    import functools

    import numpy as np

    @functools.wraps(function)
    def checked(a: Any, *given: Any, **how: Any) -> Any:
        result = function(a, *given, **how)
        arrays = result if isinstance(result, tuple) else (result,)
        first = np.asarray(arrays[0])
        if first.size and np.isnan(first).all(axis=-1).any():
            inputs = [np.asarray(each) for each in (a, *given[:1], *how.values())]
            numbers = [each for each in inputs if each.dtype.kind in "fciub"]
            if all(np.isfinite(each).all() for each in numbers):
                raise np.linalg.LinAlgError(words)
        return result

    return checked


class Late(BaseException):
    """A package that the site has but this page has not loaded yet."""


class OnDemand:
    """The last finder: a library imports, inside a function, what no cell names."""

    def __init__(self, owner: dict[str, str], load: Callable[[str], Any], suspends: bool) -> None:
        self.owner, self.load, self.suspends = owner, load, suspends

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Load the package, or say which one is missing."""
        package = self.owner.get(name)
        if package is None or path is not None:
            return None
        if self.suspends:
            import importlib
            from importlib.machinery import PathFinder

            from pyodide.ffi import can_run_sync, run_sync  # type: ignore[import-not-found]

            if can_run_sync():
                run_sync(self.load(package))
                importlib.invalidate_caches()
                return PathFinder.find_spec(name)
        raise Late(package)


# -- what cells say ------------------------------------------------------------------------------
class Stream:
    """Standard output, in batches: the page could not keep up with each word."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, text: str) -> int:
        """Keep it, and pass it on soon."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        told.write(self.name, text)
        return len(text)

    def flush(self) -> None:
        """Nothing waits for long."""

    def isatty(self) -> bool:
        """Never a terminal."""
        return False

    def writable(self) -> bool:
        """Always."""
        return True


class Told:
    """What was printed and is not on the page yet."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, silent: bool = False) -> None:
        """A cell starts."""
        self.pending: list[tuple[str, list[str]]] = []
        self.spoken = self.writes = self.shown = 0
        self.last, self.silent = time.monotonic(), silent

    def write(self, name: str, text: str) -> None:
        """One write."""
        if self.silent or not text:
            return
        before, self.spoken = self.spoken, self.spoken + len(text)
        if before > PRINTED:
            return
        if self.spoken > PRINTED:
            name, text = "stderr", "\n... more was printed than a page can show\n"
        if self.pending and self.pending[-1][0] == name:
            self.pending[-1][1].append(text)
        else:
            self.pending.append((name, [text]))
        self.writes += 1
        if self.writes < AT_ONCE or time.monotonic() - self.last > 0.05:
            self.flush()

    def flush(self) -> None:
        """To the page."""
        self.last = time.monotonic()
        ready, self.pending = self.pending, []
        for name, parts in ready:
            say(json.dumps({"kind": "stream", "name": name, "text": "".join(parts)}))


told = Told()


def emit(what: dict[str, Any]) -> None:
    """Something besides text, in its place."""
    if not told.silent:
        told.flush()
        say(json.dumps(what))


def publish(data: dict[str, str], metadata: dict[str, Any] | None = None, **_: Any) -> None:
    """What IPython calls display data; what a cell tells the words goes to the words."""
    mark = (metadata or {}).get("scrapbook")
    if mark:
        value = data.get(f"{PREFIX}text/plain", "")
        texts = {form: written(value, form) for form in forms.get(mark["name"], [])}
        say(json.dumps({"kind": "told", "name": mark["name"], "texts": texts}))
    elif not told.silent:
        emit({"kind": "display", "data": data})


def written(text: str, form: str) -> str:
    """A told value as the page's words write it, as myst_nb does."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if not form:
        return str(value)
    kind = {"s": str} | dict.fromkeys("bcdoxX", int) | dict.fromkeys("eEfFgGn%", float)
    return format(kind.get(form[-1], lambda x: x)(value), form)


def bundle(value: Any) -> dict[str, Any]:
    """What a value looks like, by kind."""
    if hasattr(value, "_repr_mimebundle_") and not isinstance(value, type):
        made = value._repr_mimebundle_()
        made = dict(made[0] if isinstance(made, tuple) else made or {})
        if made and hasattr(value, "initial") and hasattr(value, "state"):
            key = f"live-{len(alive)}"
            alive[key] = value
            made["key"] = key
        if made:
            return made
    drawn = sys.modules.get("matplotlib.figure")
    if drawn and isinstance(value, drawn.Figure):
        return picture(value)
    found: dict[str, Any] = {}
    if not isinstance(value, type):
        ways = {"text/html": "html", "image/svg+xml": "svg", "text/latex": "latex"}
        for mime, name in ways.items():
            make = getattr(value, f"_repr_{name}_", None)
            if callable(make) and (made := make()):
                found[mime] = made
    import pprint

    plain = isinstance(value, list | dict | tuple | set)
    found["text/plain"] = pprint.pformat(value, width=88) if plain else repr(value)
    return found


def picture(figure: Any) -> dict[str, str]:
    """A figure in the page's own colours where the book's library is loaded; else as it is."""
    import io

    words = figure.get_label() or "A figure that this cell drew"
    try:
        from attnbook import figures

        return dict(figures.show(figure, words)._repr_mimebundle_())
    except ImportError:
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = buffer.getvalue()
        return {"image/svg+xml": text[text.index("<svg") :], "text/plain": words}


def display(*values: Any, **_: Any) -> None:
    """Show values, as a notebook does."""
    if told.silent:
        return
    for value in values:
        data = bundle(value)
        size = sum(len(part) for part in data.values() if isinstance(part, str))
        if told.shown > SHOWN:
            return  # it was said
        told.shown += size
        if told.shown > SHOWN:
            text = f"An output of {size:,} characters is more than a page can show."
            data = {"text/plain": text}
        emit({"kind": "display", "data": data})


def pictures() -> None:
    """What pyplot drew and nobody showed."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt:
        for number in plt.get_fignums():
            display(plt.figure(number))
        plt.close("all")


def heard(key: str, state: str) -> None:
    """The reader moved something on an explorable: its Python side knows."""
    if key in alive:
        alive[key].state = json.loads(state)


# -- errors --------------------------------------------------------------------------------------
def trimmed(error: BaseException) -> str:
    """The traceback with the reader's own lines, short enough to read.

    What libraries did in between is one line, and so are the calls in the middle of a long
    recursion.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    kept: list[str] = []
    hidden = 0
    for place, frame in enumerate(frames):
        own = frame.filename.startswith("<cell ")
        if not own and place < len(frames) - 1:
            hidden += 1
            continue
        if hidden:
            kept.append(f"  ... {hidden} call{'s' * (hidden > 1)} inside libraries\n")
            hidden = 0
        name = frame.filename.split("site-packages/")[-1]
        entry = traceback.FrameSummary(name, frame.lineno, frame.name, line=frame.line)
        kept += traceback.format_list([entry])
    if len(kept) > 2 * CALLS + 1:
        left_out = len(kept) - 2 * CALLS
        kept[CALLS:-CALLS] = [f"  ... {left_out:,} more calls\n"]
    return short("".join(kept) + what_went_wrong(error))


def what_went_wrong(error: BaseException) -> str:
    """The last lines of a traceback: the error's name and message."""
    return "".join(traceback.format_exception_only(error))


def short(text: str) -> str:
    """Begin and end of a long text."""
    if len(text) <= TOLD:
        return text
    left_out = len(text) - TOLD
    return f"{text[: TOLD // 2]}\n... {left_out:,} more characters ...\n{text[-TOLD // 2 :]}"


def line_of(error: BaseException, name: str) -> int:
    """Where in this cell it went wrong; 0 if elsewhere."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno or 0
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
    return lines[-1] or 0 if lines else 0


# -- what only a desk has ------------------------------------------------------------------------
def names_of(node: ast.AST) -> tuple[set[str], set[str]]:
    """Names that a statement reads, and names that it binds."""
    reads: set[str] = set()
    binds: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (reads if isinstance(each.ctx, ast.Load) else binds).add(each.id)
        elif isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            binds.add(each.name)
        elif isinstance(each, ast.alias):
            binds.add(each.asname or each.name.split(".")[0])
    if isinstance(node, ast.AugAssign):
        reads |= binds
    return reads, binds


def desk_import(node: ast.stmt) -> str:
    """A module of a desk that a statement imports, anywhere in it."""
    for each in ast.walk(node):
        given = [alias.name for alias in each.names] if isinstance(each, ast.Import) else []
        if isinstance(each, ast.ImportFrom) and each.module and not each.level:
            given = [each.module]
        for name in given:
            if name.split(".")[0] in DESK:
                return name.split(".")[0]
    return ""


def touched(node: ast.stmt) -> set[str]:
    """Whatever a statement that did not run would have changed: `canvas` in `canvas.plot(x)`."""
    found = set()
    for each in ast.walk(node):
        root = each.func if isinstance(each, ast.Call) else None
        deep = False
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            deep = True
            root = root.func if isinstance(root, ast.Call) else root.value
        if deep and isinstance(root, ast.Name):
            held = space.get(root.id)
            if not isinstance(held, types.ModuleType | type) and held is not None:
                found.add(root.id)
    return found


def needs_desk(body: list[ast.stmt]) -> list[str]:
    """For each statement: why it cannot run here, or nothing. Looks at names, runs nothing."""
    bad, found = set(poisoned), []
    for node in body:
        reads, binds = names_of(node)
        module = desk_import(node)
        why = DESK.get(module, "") or ("what a desk computed" if reads & bad else "")
        found.append(why)
        bad = bad | binds | (touched(node) if isinstance(node, ast.Expr) else set()) if why \
            else bad - binds  # fmt: skip
    return found


def desk_error(error: BaseException) -> str:
    """Why a library gave up, where a desk's module is what it missed."""
    if not isinstance(error, ImportError):
        return ""
    text = f"{error.name or ''} {error}"
    return next((why for name, why in DESK.items() if name in text), "")


def partly(body: list[ast.stmt], name: str) -> None:
    """Of a cell that needs a desk, what needs none: silently, so that names are there."""
    told.silent = True
    for node in body:
        reads, binds = names_of(node)
        try:
            if desk_import(node) or reads & poisoned:
                raise ImportError("a desk")
            execute([node], name)
        except Exception:
            poisoned.update(binds)
            if isinstance(node, ast.Expr):
                poisoned.update(touched(node))
        else:
            poisoned.difference_update(binds)


# -- running -------------------------------------------------------------------------------------
def execute(body: list[ast.stmt], name: str) -> None:
    """Run statements in the page's namespace."""
    exec(compile(ast.Module(body, []), name, "exec"), space)


def run(code: str, number: int) -> str:
    """One cell: "ok", "error", "skipped: why", or "late: the package that is missing"."""
    name = f"<cell {number}>"
    told.begin()
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        try:
            body = ast.parse(code, name).body
        except Exception as error:  # frames would be Python's own; the error names the line
            text = short(what_went_wrong(error))
            emit({"kind": "error", "text": text, "line": line_of(error, name)})
            return "error"
        why = next((why for why in needs_desk(body) if why), "")
        if why:
            partly(body, name)
            return f"skipped: {why}"
        shown = bool(body) and isinstance(body[-1], ast.Expr) and not code.rstrip().endswith(";")
        try:
            execute(body[:-1] if shown else body, name)
            if shown:
                only = ast.Expression(body[-1].value)  # type: ignore[attr-defined]
                value = eval(compile(only, name, "eval"), space)
                if value is not None:
                    space["_"] = value
                    display(value)
            pictures()
        except ImportError as error:
            why = desk_error(error)
            if not why:
                raise
            partly(body, name)
            return f"skipped: {why}"
        for node in body:
            poisoned.difference_update(names_of(node)[1])
        return "ok"
    except Late as late:
        return f"late: {late}"
    except KeyboardInterrupt:
        emit({"kind": "error", "text": "KeyboardInterrupt: you stopped this cell\n", "line": 0})
    except BaseException as error:
        emit({"kind": "error", "text": trimmed(error), "line": line_of(error, name)})
    finally:
        told.flush()
    return "error"


def begin(owner: dict[str, str], load: Callable[[str], Any], suspends: bool) -> None:
    """A page comes alive: ``owner`` says which package of the site has a module."""
    stand_ins()
    limit_recursion()
    raise_linalg_errors()
    builtins.input = no_input
    sys.stdin = NoKeyboard()
    sys.meta_path.append(OnDemand(owner, load, suspends))  # type: ignore[arg-type]
    space.update({"__name__": "__main__", "__builtins__": builtins, "display": display})


def unpack(packed: Any, put: Callable[[bytes], Any]) -> None:
    """A package as this site has it, in parts: memory that Python once took it never gives back."""
    import lzma

    reader, data = lzma.LZMADecompressor(), packed.to_bytes()
    while not reader.eof:
        put(reader.decompress(data, 1 << 20))
        data = b""


def expect(given: str) -> None:
    """How the page's words write what cells tell: JSON, a list of forms by name."""
    forms.update(json.loads(given))


def names() -> Iterator[str]:
    """What the cells bound."""
    return (name for name in space if not name.startswith("_"))

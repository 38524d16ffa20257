"""Who computes the pieces: this process, several on this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from attnbook import install
from attnbook.figures._plan import Task
from attnbook.figures._record import Arrays, Done, Figure
from attnbook.figures._store import Store
from attnbook.files import end_with_parent
from attnlab import checks as check

BACKENDS = ("processes", "dask")
PATIENCE = 5.0  # seconds until a scheduler that does not answer counts as unreachable
Each = Callable[[Figure, list[Task]], Iterable[Done]]


def mapper(
    *,
    workers: int = 1,
    backend: str = "processes",
    scheduler: str | None = None,
    store: str | Path | None = None,
    say: Callable[[str], None] = print,
    seen: Callable[[int, int], None] | None = None,
) -> Each:
    r"""How the pieces of a figure are computed; give it to ``run`` as ``each``.

    Pieces go through joblib. With a store, finished pieces are kept in a folder and found again:
    a run that was killed goes on where it was.

    Args:
        workers: processes on this machine; 1 computes in this one.
        backend: ``"processes"``, or ``"dask"`` for an existing cluster.
        scheduler: address of the Dask scheduler.
        store: folder for finished pieces; None keeps none.
        say: told about files that were set aside.
        seen: called with how many pieces are done, and how many there are.

    Returns:
        A function ``(figure, tasks) -> iterator of (index, arrays)``.

    Examples:
        >>> from attnbook import figures
        >>> data = figures.get("svm.3").run(each=figures.mapper(workers=1))
        >>> data.figure
        'svm.3'
    """
    check.count("workers", workers)
    check.choice("backend", backend, BACKENDS)
    if backend == "dask" and scheduler is None:
        raise check.fail("scheduler", "the address of a Dask scheduler", "none")
    if backend != "dask" and scheduler is not None:
        raise check.fail("backend", "'dask' where a scheduler is given", repr(backend))

    def each(figure: Figure, tasks: list[Task]) -> Iterator[Done]:
        kept = None if store is None else Store(Path(store), say)
        left = {task.index: task for task in tasks}
        if seen:
            seen(0, len(tasks))
        for task, arrays in kept.finished(tasks) if kept else ():
            del left[task.index]
            yield task.index, arrays
            if seen:
                seen(len(tasks) - len(left), len(tasks))
        for index, arrays in _compute(figure, list(left.values()), workers, backend, scheduler):
            if kept:
                kept.save(left[index], arrays)
            del left[index]
            yield index, arrays
            if seen:
                seen(len(tasks) - len(left), len(tasks))

    return each


def needed(backend: str) -> dict[str, tuple[str, ...]]:
    """The modules that several processes need, by extra."""
    return {"dask": ("joblib", "distributed")} if backend == "dask" else {"figures": ("joblib",)}


def _compute(
    figure: Figure, tasks: list[Task], workers: int, backend: str, scheduler: str | None
) -> Iterator[Done]:
    if backend == "processes" and (workers == 1 or len(tasks) < 2):
        for task in tasks:
            yield task.index, figure.work(task)
        return
    install.require(f"Computing {figure.id} in several processes", needed(backend))
    from joblib import Parallel, delayed, parallel_config

    with contextlib.ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(_cluster(str(scheduler)))
            options: dict[str, Any] = {"backend": "dask"}
        else:
            options = {
                "backend": "loky",
                "n_jobs": workers,
                "inner_max_num_threads": 1,
                "initializer": end_with_parent,
                "initargs": (os.getpid(),),
            }
        stack.enter_context(parallel_config(**options))
        pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
        yield from pool(delayed(_work)(figure.id, task) for task in tasks)


def _work(name: str, task: Task) -> tuple[int, Arrays]:
    """One piece, in a worker: the figure is found there by its name."""
    from attnbook.figures._registry import get

    return task.index, get(name).work(task)


@contextlib.contextmanager
def _cluster(scheduler: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client: Any = Client(scheduler, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise check.fail("scheduler", "one that answers", f"{scheduler} ({reason})") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise check.fail("scheduler", "one with workers", f"{scheduler} (no workers)")
        yield client

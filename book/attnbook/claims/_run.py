"""Many checks at once, in as many processes as asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from attnbook.claims._ledger import get
from attnbook.claims._measure import Measurement
from attnbook.claims._records import Claim
from attnbook.files import end_with_parent
from attnlab import checks as check

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Outcome:
    r"""One row of the table that ``attnlab check`` prints.

    Args:
        id: of the claim.
        agrees: whether the evidence agrees with the recorded status.
        evidence: the deciding measurements in a line, or the error that stopped the check.
        seconds: how long it took.
        rows: every row of the evidence; none where the check broke or there is nothing to measure.

    Returns:
        A frozen record.

    Examples:
        >>> from attnbook import claims
        >>> [outcome.agrees for outcome in claims.run(["svm.theorem-1"], rng=0)]
        [True]
    """

    id: str
    agrees: bool
    evidence: str
    seconds: float
    rows: tuple[Measurement, ...] = ()


def run(
    ids: Sequence[str | Claim],
    rng: int,
    *,
    instances: int | None = None,
    workers: int = 1,
) -> Iterator[Outcome]:
    r"""Check claims one after the other, or several at a time; results come in the order asked.

    A check that raises is an outcome that does not agree: one broken check never hides the rest.

    Args:
        ids: claims, or their ids.
        rng: one int seed; every claim starts from it afresh, so the number of workers and the
            company of other claims change nothing.
        instances: how many instances each check draws; each claim's own number unless told.
        workers: processes.

    Returns:
        An iterator of `Outcome`.

    Examples:
        >>> from attnbook import claims
        >>> [outcome.id for outcome in claims.run(["svm.theorem-1"], rng=0)]
        ['svm.theorem-1']
    """
    names = [entry.id if isinstance(entry, Claim) else get(entry).id for entry in ids]
    seed = check.count("rng", rng, least=0)
    many = None if instances is None else check.count("instances", instances)
    if check.count("workers", workers) == 1 or len(names) < 2:
        return (_one(name, seed, many) for name in names)
    return _pool(names, seed, many, workers)


def _pool(names: list[str], seed: int, many: int | None, workers: int) -> Iterator[Outcome]:
    for variable in THREADS:  # two processes on two cores: one thread each
        os.environ.setdefault(variable, "1")
    with ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    ) as pool:
        futures = [pool.submit(_one, name, seed, many) for name in names]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _one(name: str, seed: int, many: int | None) -> Outcome:
    start, claim = time.perf_counter(), get(name)
    if not claim.has_check:
        told = f"see {claim.same_as}" if claim.same_as else "nothing to measure"
        return Outcome(name, True, told, 0.0)
    try:
        evidence = claim.check(seed, instances=many)
    except Exception as error:  # the table must show which check broke, and go on
        text = f"DISAGREES: {type(error).__name__}: {error}"
        return Outcome(name, False, text, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return Outcome(name, evidence.agrees, evidence.summary, seconds, evidence.measurements)

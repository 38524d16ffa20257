"""How long `import attnlab` takes against NumPy's own import: ``python -m benchmarks.imports``.

Rooms are imported when they are first asked for, so all of them together stand beside it. They
take turns in fresh processes of one run; ratios are of medians of processor seconds.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

TURNS = 15
ROOMS = "from attnlab import curvature, models, ntk, optim, problems, svm"
WORK = {
    "Python": "pass",
    "NumPy": "import numpy",
    "attnlab": "import numpy, attnlab",
    "all rooms": f"import numpy; {ROOMS}",
}


def seconds(code: str) -> float:
    """Processor seconds of a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians, and the ratio."""
    found: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(TURNS):
        for name, code in WORK.items():
            found[name].append(seconds(code))
    middle = {name: statistics.median(times) for name, times in found.items()}
    for name, time in middle.items():
        print(f"{name:10} {1000 * time:4.0f} ms, {time / middle['NumPy']:.2f} times NumPy's")


if __name__ == "__main__":
    main()

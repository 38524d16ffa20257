"""Run all comparisons, print one table, write it beside this file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def main() -> None:
    """Print the table and, where nothing was left out, write it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # JAX has threads of its own
    from benchmarks import browser, growth, ntk, svm, timing, training

    sections = {
        "Training one head": training.one_head,
        "Training K and Q": training.factors,
        "Training many heads": training.many_heads,
        "Attention SVM, Frobenius norm": svm.frobenius,
        "Attention SVM, nuclear norm": svm.nuclear,
        "Figure 2 of svm": svm.figure_2,
        "Tangent kernels of the encoder": ntk.kernels,
    }
    wanted = sys.argv[1:]
    text, rows = [f"Measured side by side in one run on: {timing.machine()}.", ""], []
    for title, measure in sections.items():
        if wanted and not any(word.lower() in title.lower() for word in wanted):
            continue
        print(f"{title} ...", flush=True)
        found = measure()
        rows += found
        text += [f"## {title}", "", timing.table(found), ""]
        print(timing.table(found), flush=True)
    title = "The same in the browser"
    if not wanted or any(word.lower() in title.lower() for word in wanted):
        print(f"{title} ...", flush=True)
        text += [f"## {title}", "", browser.section(), ""]
        print(text[-2], flush=True)
    if not wanted:
        head = "# Speed, as ratios\n\nRenewed by `make bench`; every row is one interleaved run.\n"
        path = Path(__file__).with_name("RESULTS.md")
        path.write_text(head + "\n" + "\n".join(text))
        print(f"written to {path.name}")
        growth.main()
    print(f"{sum(row.reached for row in rows)} of {len(rows)} ratios reached")


if __name__ == "__main__":
    main()

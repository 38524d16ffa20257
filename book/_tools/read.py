"""Build the book and serve it; finish what a reader need not wait for meanwhile.

    python book/_tools/read.py [port]

The book is served as soon as its pages are there. Then Python for live pages is fetched, and the
ledger's checks run. Where one of them fails, a sentence says why, and the book goes on being
served until it is interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import recovery
import runtime
from build import HTML, WEB, archive, build, refresh_evidence, say
from serve import serve


def main() -> int:
    """Until interrupted: 0 then, 1 where there is no book to serve."""
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has us ignore one
        signal.signal(number, interrupt)
    try:
        with recovery.guard(say):
            if not build(checks=False, live=False):
                return 1
            server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
            say(f"the book is at http://localhost:{server.server_port}/ (stop with Ctrl-C)")
            done = [attempt("live pages", bring_live_pages), attempt("the ledger", bring_evidence)]
        say("everything is up to date" if all(done) else "the book is served without the rest")
        threading.Event().wait()
    except KeyboardInterrupt:
        print("\nbook: stopped", flush=True)
    return 0


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as an interrupt from the keyboard does."""
    raise KeyboardInterrupt


def attempt(part: str, work: Callable[[], bool]) -> bool:
    """Whether some of the work behind the served book succeeded; an error is said, and no more."""
    try:
        return work()
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        say(f"{part}: not finished ({reason}). The book is served all the same.")
        return False


def bring_live_pages() -> bool:
    """Python beside the pages, in the archive too; pages offer it from their next load on."""
    if not runtime.bring([WEB, HTML], say):
        return False
    archive(HTML)
    return True


def bring_evidence() -> bool:
    """What the ledger's checks find today, on the pages that show it."""
    agree = refresh_evidence()
    say("the ledger shows what its checks found" if agree else
        "the ledger: a check disagrees with its status, see above")  # fmt: skip
    return agree


if __name__ == "__main__":
    sys.exit(main())

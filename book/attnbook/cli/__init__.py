"""The command line: it reads arguments, calls the packages below, and prints what they return."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import attnlab
from attnbook import install
from attnbook.cli import _check, _course, _figures, _probe

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``attnlab``; gives the exit code: 0, 1 where something disagrees, 2 on bad input."""
    parser = argparse.ArgumentParser(
        prog="attnlab", description="Theorems and figures of four papers on attention, checked."
    )
    parser.add_argument("--version", action="version", version=f"attnlab {attnlab.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for room in (_check, _figures, _probe, _course):
        room.add(commands)
    given = parser.parse_args(arguments)
    try:
        if modules := getattr(given, "needs", None):
            install.require(f"The step {given.step!r}", modules)
        return int(given.run(given))
    except ValueError as error:
        print(f"attnlab {given.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nattnlab {given.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

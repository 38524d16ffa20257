"""Locks name versions and hashes, no index and no machine; readers get what developers test."""

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).resolve().parents[1] / "requirements"
PIN = re.compile(r"^([\w.\[\]-]+)==(\S+)", re.M)


@pytest.mark.parametrize("name", ["book", "dev"])
def test_a_lock_names_no_place(name: str) -> None:
    text = (LOCKS / f"{name}.lock").read_text()
    assert "--hash=sha256:" in text
    for line in text.splitlines():
        assert re.match(
            r"^[\w.\[\]-]+==\S+( ; [^/]*)? \\$|^ +--hash=sha256:[0-9a-f]{64}( \\)?$", line
        )


def test_readers_get_what_developers_test() -> None:
    book, dev = (
        dict(PIN.findall((LOCKS / f"{name}.lock").read_text())) for name in ("book", "dev")
    )
    assert len(book) > 100
    assert set(book.items()) <= set(dev.items())
    assert {"pytest", "mypy", "ruff", "playwright", "hypothesis"} & set(book) == set()
    assert {"pytest", "mypy", "ruff", "playwright", "hypothesis"} <= set(dev)

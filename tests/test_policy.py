"""The policy of a page: which inline scripts it names, and where it stands."""

from __future__ import annotations

from pathlib import Path

import policy
import pytest

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8" /><title>a</title>
<script>let a = "<b>" && 1;</script>
<script type="application/json">{"no": "script"}</script>
<script type="text/x-thebe-config">{ data: true }</script>
<script src="x.js"></script>
<script type="module">import "./y.js";</script></head><body>&amp;</body></html>"""


def test_inline_scripts_are_those_that_a_browser_runs() -> None:
    assert policy.inline(PAGE) == ['let a = "<b>" && 1;', 'import "./y.js";']
    assert policy.inline("<script>a\r\nb</script>") == ["a\nb"]
    # of an empty script and of one from the standard's examples
    assert policy.digest("") == "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    assert policy.digest("alert('Hello, world.');") == (
        "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    )


def test_a_policy_stands_first_and_once() -> None:
    made = policy.secured(PAGE, ["frame"])
    assert made.index(policy.META) < made.index("<script")
    for script in ('let a = "<b>" && 1;', 'import "./y.js";', "frame"):
        assert policy.digest(script) in made
    assert policy.digest(policy.FRAMED.read_text("utf-8")) in made
    assert policy.secured(made, ["frame"]) == made
    assert policy.META not in policy.unsecured(made)


def test_a_site_gets_policies_and_templates_do_not(tmp_path: Path) -> None:
    for name in ("index.html", "book/a.html", "_static/template.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PAGE)
    policy.secure(tmp_path)
    assert policy.META in (tmp_path / "index.html").read_text()
    assert policy.META in (tmp_path / "book" / "a.html").read_text()
    assert policy.META not in (tmp_path / "_static" / "template.html").read_text()
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "python.js").write_text("const FRAME = 1;")
    with pytest.raises(ValueError, match="expected the frame's script"):
        policy.secure(tmp_path)

"""What a page may say of derivations and linked words, and what its notebook says then."""

from __future__ import annotations

import re
from pathlib import Path

import look
import notebooks
import pytest
from sphinx.errors import SphinxWarning

BLOCKS = Path(__file__).resolve().parent / "browser" / "derivations"
PAGE = """::::{{derivation}} {name}
```{{{kind}}} {key}
{body}
```
::::
"""


@pytest.mark.parametrize("path", sorted(BLOCKS.glob("*.md")), ids=lambda path: path.stem)
def test_a_derivation_is_a_numbered_list(path: Path) -> None:
    html = look.fragment(path.read_text("utf-8"))
    steps = re.findall(r'<li data-key="([a-z0-9-]+)"><div class="al-line">', html)
    module = (look.ROOT / "book/attnbook/widgets/derivations" / f"{path.stem}.js").read_text(
        "utf-8"
    )
    told = module[module.index("\n  steps: {") :]
    known = re.findall(r"(?m)^    (\w+)(?:\(s\) \{|: \(s\) =>)", told)
    assert steps == known  # all of them, in one order
    assert f'<ol class="al-derivation" data-derivation="{path.stem}">' in html
    assert f'id="derivation-{path.stem}"' in html
    assert len(re.findall(r'data-hypothesis="\w+" data-told="[^"]+"', html)) == html.count(
        "<li data-hyp"
    )


@pytest.mark.parametrize(
    ("name", "kind", "key", "body", "says"),
    [
        (
            "svm-theorem-99",
            "step",
            "a",
            "$$x$$\n\nwhy",
            "there is no widgets/derivations/svm-theorem-99",
        ),
        ("svm-lemma-6", "step", "nowhere", "$$x$$\n\nwhy", "the module does not know nowhere"),
        ("svm-lemma-6", "step", "Most", "$$x$$\n\nwhy", "a key is a-z"),
        ("svm-lemma-6", "step", "most", "why", "does not begin with a formula"),
        ("svm-lemma-6", "step", "most", "", "says nothing"),
        ("svm-lemma-6", "hypothesis", "lower", "given", "no step"),
    ],
)
def test_mistakes_stop_the_build(name: str, kind: str, key: str, body: str, says: str) -> None:
    with pytest.raises(SphinxWarning, match=says):
        look.fragment(PAGE.format(name=name, kind=kind, key=key, body=body))


def test_a_word_is_linked() -> None:
    html = look.fragment("The {mark}`winner $x_b$ <best>` and the {mark}`rival`.")
    assert '<span class="al-term" data-link="best">winner <span class="math' in html
    assert '<span class="al-term" data-link="rival">rival</span>' in html
    with pytest.raises(SphinxWarning, match="a key is a-z"):
        look.fragment("{mark}`Winner`")


def test_a_notebook_has_the_proof_in_plain_words() -> None:
    text = notebooks.plain((BLOCKS / "svm-lemma-6.md").read_text("utf-8"))
    assert re.findall(r"\*\*Step (\d)\.\*\*", text) == list("1234567")
    assert "**Why a concave head keeps at least two tokens, and at most $\\tau$.**" in text
    assert r"{\frac{1-S_1^2}{\tau}}$$" in text
    assert not re.search(r"\\class|\{mark\}|\{step\}|:::|`", text)

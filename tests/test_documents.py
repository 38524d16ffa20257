"""What README, CITATION.cff and how-to state is what the project's settings say."""

from __future__ import annotations

import re
from pathlib import Path

import addresses
import pytest
import yaml
from pybtex.database import parse_file

import attnlab
from attnbook import install

ROOT = Path(__file__).resolve().parents[1]
SITE, REPOSITORY = "https://example.org/attnlab/", "https://example.org/owner/attnlab"
PAPERS = {
    "multihead": "deora2024optimization",
    "encoder": "wu2023convergence",
    "bias": "vasudeva2024implicit",
    "svm": "tarzanagh2023transformers",
}


def documents() -> dict[str, str]:
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in addresses.DOCUMENTS}


def written(**settings: str) -> dict[str, str]:
    """The documents as these settings make them."""
    found = addresses.parts(**settings)
    return {name: addresses.renewed(text, found) for name, text in documents().items()}


def test_documents_state_todays_settings() -> None:
    """If this fails: python book/_tools/addresses.py --write."""
    assert written(**addresses.addresses(), date=addresses.release_date()) == documents()


def test_every_part_has_a_place_and_every_place_a_part() -> None:
    places = [
        part["name"] for text in documents().values() for part in addresses.PART.finditer(text)
    ]
    assert sorted(places) == sorted(addresses.parts("", ""))
    marks = sum(len(re.findall("^(?:<!--|#) (?:generated:|end of )", text, re.M))
                for text in documents().values())  # fmt: skip
    assert marks == 2 * len(places)


def test_without_addresses_none_is_mentioned() -> None:
    found = written(site="", repository="")
    assert "git clone ADDRESS attnlab" in found["README.md"]
    assert "Read it online" not in found["README.md"]
    citation = yaml.safe_load(found["CITATION.cff"])
    assert not {"url", "repository-code", "date-released"} & set(citation)
    assert citation["version"] == attnlab.__version__


def test_with_addresses_all_are_mentioned() -> None:
    found = written(site=SITE, repository=REPOSITORY, date="2027-01-02")
    assert f"git clone {REPOSITORY} attnlab\n" in found["README.md"]
    assert f"<{SITE}>" in found["README.md"]
    citation = yaml.safe_load(found["CITATION.cff"])
    assert citation["url"] == SITE
    assert citation["repository-code"] == REPOSITORY
    assert str(citation["date-released"]) == "2027-01-02"


def test_pages_say_where_they_are_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sphinx writes the canonical address of a page from ``html_baseurl``."""
    import jupyter_book.sphinx
    import sphinx_site

    told: dict[str, object] = {}
    monkeypatch.setattr(
        jupyter_book.sphinx,
        "build_sphinx",
        lambda *_, **how: told.update(how["confoverrides"]) or 0,
    )
    assert sphinx_site.make(tmp_path, tmp_path) == 0
    assert told["html_baseurl"] == addresses.addresses()["site"]


def test_install_lines_of_readme_are_generated() -> None:
    lines = [line for line in documents()["README.md"].splitlines() if line.startswith("pip ")]
    assert lines == [install.install_line("figures")]


def test_install_lines_change_with_the_first_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "RELEASED", True)
    found = written(site="", repository="")
    assert 'pip install "attnlab[figures]"' in found["README.md"]
    assert 'pip install "attnlab[book]"' in found["book/how-to.md"]


@pytest.mark.parametrize("paper", PAPERS)
def test_readme_cites_each_paper_as_the_bibliography_does(paper: str) -> None:
    entry = parse_file(ROOT / "book" / "references.bib").entries[PAPERS[paper]]
    item = re.search(rf"^\d\. \*\*{paper}\*\*: (.*?)\.$", documents()["README.md"], re.M | re.S)
    assert item is not None
    text = " ".join(item[1].split())
    names = [" ".join(one.first_names + one.middle_names + one.last_names)
             for one in entry.persons["author"]]  # fmt: skip
    authors = f"{', '.join(names[:-1])} and {names[-1]}"
    assert (
        text
        == f"{authors} ({entry.fields['year']}), [{entry.fields['title']}]({entry.fields['url']})"
    )

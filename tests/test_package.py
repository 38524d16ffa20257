"""The wheel, the source archive, and what an index shows of the project."""

from __future__ import annotations

import email
import email.message
import importlib.util
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from addresses import addresses
from archives import build, unpack
from markdown_it import MarkdownIt

import attnlab

ROOT = Path(__file__).resolve().parents[1]
SITE, REPOSITORY = "https://example.org/attnlab/", "https://example.org/owner/attnlab"


def metadata(wheel: Path) -> email.message.Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="module")
def configured(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> email.message.Message:
    """Metadata of a wheel that was built with both addresses."""
    folder = unpack(sdist, tmp_path_factory.mktemp("configured"))
    settings = folder / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    for name, value in (("site", SITE), ("repository", REPOSITORY)):
        text, count = re.subn(rf'^{name} = ".*?"', f'{name} = "{value}"', text, flags=re.M)
        assert count == 1
    settings.write_text(text, encoding="utf-8")
    (folder / "PKG-INFO").unlink()  # else it is taken from there: it was generated from both
    return metadata(build(folder, tmp_path_factory.mktemp("built"), "wheel"))


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(text: str) -> Iterator[tuple[str, str]]:
    """Links and pictures of a README as an index renders it: the kind and the address."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield child.type, str(child.attrs.get("href", child.attrs.get("src")))


def test_the_wheel_says_whose_it_is_and_under_which_licences(wheel: Path) -> None:
    found = metadata(wheel)
    assert found["Version"] == attnlab.__version__
    assert found["Author"] == "The attnlab authors"
    assert found["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0"
    assert found.get_all("License-File") == ["LICENSE", "LICENSE-TEXT"]
    classifiers = found.get_all("Classifier") or []
    # an index refuses classifiers of licences beside an expression
    assert [line for line in classifiers if line.startswith("License ::")] == []


def test_addresses_are_those_of_the_settings(wheel: Path, hook: ModuleType) -> None:
    told = dict(line.split(", ", 1) for line in metadata(wheel).get_all("Project-URL") or [])
    assert told == hook.project_urls(**addresses())


def test_with_addresses_everything_is_linked(configured: email.message.Message) -> None:
    assert configured.get_all("Project-URL") == [
        f"Documentation, {SITE}",
        f"Repository, {REPOSITORY}",
        f"Changelog, {REPOSITORY}/blob/HEAD/CHANGELOG.md",
    ]
    found = list(targets(str(configured.get_payload())))
    assert ("image", f"{REPOSITORY}/raw/HEAD/book/pictures/first_run.png") in found
    assert ("link_open", f"{REPOSITORY}/blob/HEAD/book/teaching.md") in found
    assert [target for _, target in found if not target.startswith("https://")] == []


def test_on_an_index_readme_has_no_link_that_leads_nowhere(wheel: Path) -> None:
    found = metadata(wheel)
    assert found["Description-Content-Type"] == "text/markdown"
    text = str(found.get_payload())
    assert [target for _, target in targets(text) if not target.startswith("https://")] == []
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert "](" not in rendered
    assert len(re.findall("<h[12]>", rendered)) == len(re.findall("^##? ", text, re.M))


def test_links_of_readme_lead_to_files() -> None:
    found = dict.fromkeys(target for _, target in targets((ROOT / "README.md").read_text("utf-8")))
    relative = [target for target in found if "://" not in target]
    assert len(relative) >= 5
    assert [target for target in relative if not (ROOT / target).is_file()] == []


def test_links_are_rewritten_in_prose_only(hook: ModuleType) -> None:
    text = (
        "Start.\n\n![a\npicture](x/y.png)\n\n*Its caption.*\n\n"
        "See [one\nfile](a.md), [here](#start) and [there](https://example.org/).\n\n```\n[code](a.md)\n```\n"
    )
    assert hook.readme_for_index(text, "") == (
        "Start.\n\nSee one\nfile, [here](#start) and [there](https://example.org/).\n\n"
        "```\n[code](a.md)\n```\n"
    )
    linked = hook.readme_for_index(text, f"{REPOSITORY}/")
    assert f"![a\npicture]({REPOSITORY}/raw/HEAD/x/y.png)\n\n*Its caption.*\n" in linked
    assert f"[one\nfile]({REPOSITORY}/blob/HEAD/a.md), [here](#start)" in linked
    assert "\n[code](a.md)\n" in linked


def test_the_source_archive_gives_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    again = build(unpack(sdist, tmp_path), tmp_path / "again", "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert {e.filename: e.CRC for e in one.infolist()} == {
            e.filename: e.CRC for e in other.infolist()
        }


def test_the_source_archive_has_what_builds_the_book(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    config = {"_config.yml", "_toc.yml", "pyproject.toml", "hatch_build.py", "Makefile"}
    assert config <= names
    assert {".ci/environment", "requirements/book.lock", "requirements/live.json"} <= names
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "book").rglob("*.md")}
    assert {page for page in pages if not page.startswith("book/coursework/")} <= names


# -- solutions ---------------------------------------------------------------------------------
SETS = [*ROOT.glob("book/coursework/*.md"), *ROOT.glob("tests/coursework/*.md")]
SECRET = re.compile(
    r"^```\{code-cell\}[^\n]*\n:tags: \[(?:solution|judge|wrong)[^\]]*\]\n(.*?)^```$", re.M | re.S
)
RUN = 4  # consecutive lines of code that no other file has by chance


def lines_of_code(text: str) -> list[str]:
    """Lines without indentation, comments and empty lines."""
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if len(line) > 3 and not line.startswith("#")]


def runs(text: str) -> set[tuple[str, ...]]:
    """All sequences of some consecutive lines."""
    lines = lines_of_code(text)
    return {tuple(lines[k : k + RUN]) for k in range(len(lines) - RUN + 1)}


def texts(archive: Path) -> Iterator[tuple[str, str]]:
    """Files of a wheel or a source archive, as far as they are text."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            found = [(name, opened.read(name)) for name in opened.namelist()]
    else:
        with tarfile.open(archive) as packed:
            files = [member for member in packed.getmembers() if member.isfile()]
            found = [(one.name, packed.extractfile(one).read()) for one in files]  # type: ignore[union-attr]
    for name, data in found:
        try:
            yield name, data.decode()
        except UnicodeDecodeError:
            continue


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_no_solution_is_shipped(kind: str, request: pytest.FixtureRequest) -> None:
    archive = request.getfixturevalue(kind)
    secret = set().union(
        *(runs(cell) for path in SETS for cell in SECRET.findall(path.read_text()))
    )
    assert len(secret) > 2000
    shipped = {name: runs(text) & secret for name, text in texts(archive)}
    assert {name: found for name, found in shipped.items() if found} == {}
    assert [name for name in shipped if "coursework" in name] == []


def test_a_shipped_solution_would_be_noticed() -> None:
    """The same look at a problem set itself."""
    text = SETS[0].read_text(encoding="utf-8")
    assert all(runs(cell) <= runs(text) for cell in SECRET.findall(text))
    assert sum(bool(runs(cell)) for cell in SECRET.findall(text)) > 5


def test_pictures_are_small() -> None:
    pictures = [*(ROOT / "book" / "pictures").glob("*.png")]
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > 100_000] == []

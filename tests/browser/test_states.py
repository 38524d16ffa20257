"""A state in an address that is none of the experiment's: it is left out, with a sentence."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from live_pages import HTML, Visit

NAMES = sorted(json.loads((HTML / "explorables" / "names.json").read_text("utf-8")))
FEW = {"pick_token", "lemma_four", "attention_row", "phase_plane"}  # each kind of state
FIRST = "attention_row"
WRONG = {
    "words": "three",
    "an object": {"a": 1},
    "a list": [["x"], {}],
    "numbers in lists": [[[[1]]]],
    "true": True,
}
HOMES = {
    name: path.relative_to(HTML).as_posix()
    for path in sorted((HTML / "book").rglob("*.html"))
    for name in NAMES
    if f'data-explorable="{name}"' in path.read_text("utf-8")
}
STATE = "(name) => document.querySelector(`[data-explorable='${name}']`).alState"


def like(value: object, usual: object) -> bool:
    """Whether a value is words where words are usual: it is of the right kind."""
    return isinstance(value, str) and isinstance(usual, str)


def start(open_page: Visit, name: str, state: object) -> tuple[dict[str, object], str]:
    """The state that an explorable has, and what it says of the address."""
    query = f"?{name}={quote(json.dumps(state))}" if state is not None else ""
    page = open_page(HOMES[name] + query, typeset=False, only=name)
    page.wait_for_selector(f'[data-explorable="{name}"][data-ready]', timeout=60_000)
    said = page.locator(".al-refused").all_inner_texts()
    found = page.evaluate(STATE, name)
    page.context.close()
    return dict(found), " ".join(said)


@pytest.mark.parametrize(
    "name",
    [one if one == FIRST else pytest.param(one, marks=pytest.mark.long) for one in sorted(HOMES)],
)
def test_a_state_of_another_kind_is_left_out(open_page: Visit, name: str) -> None:
    """The fixture fails where the page errs."""
    usual, said = start(open_page, name, None)
    assert said == ""
    given = [key for key, value in usual.items() if value is not None]
    kinds = [
        {
            key: value
            for key in given
            if type(usual[key]) is not type(value) or isinstance(value, list)
        }
        for value in WRONG.values()
    ]
    mixed = {key: kinds[k % len(kinds)].get(key, {}) for k, key in enumerate(given)}
    for given_wrong in kinds if name in FEW else [mixed]:
        wrong = {key: value for key, value in given_wrong.items() if not like(value, usual[key])}
        found, said = start(open_page, name, wrong)
        assert {key: found[key] for key in given} == {key: usual[key] for key in given}, wrong
        assert "cannot use" in said, wrong


@pytest.mark.parametrize("mangled", [7, "words", [1, 2], {"nobody": 1, "__proto__": {"open": 5}}])
def test_a_mangled_state_is_left_out(open_page: Visit, mangled: object) -> None:
    usual, _ = start(open_page, "water_filling", None)
    found, said = start(open_page, "water_filling", mangled)
    assert found == usual
    assert "cannot use" in said


def test_the_good_part_of_a_state_is_used(open_page: Visit) -> None:
    found, said = start(open_page, "water_filling", {"tau": 3, "gamma": "wrong"})
    assert found["tau"] == 3
    assert "gamma of another kind" in said

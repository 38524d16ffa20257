"""Heads on real sentences: what the explorables show is the run that the book keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import figures


def test_more_heads_show_the_kept_run(explorable) -> None:
    data = figures.kept("multihead.6")
    for shown, rate, H in (("train", 1, 32), ("test", 3, 8), ("accuracy", 0, 1)):
        page, root = explorable("more_heads", {"shown": shown, "rate": rate, "H": H})
        page.wait_for_function(
            "document.querySelector('[data-explorable=more_heads]').dataset.ends !== undefined"
        )
        found = json.loads(root.get_attribute("data-ends"))
        means = data[shown][..., -1].mean(axis=0)[:, rate]
        place = list(data["heads"]).index(H)
        assert found == pytest.approx([means[0, 0], *means[:, place]], abs=1e-6)


def test_more_heads_answers_each_guess(explorable) -> None:
    data = figures.kept("multihead.6")
    at = data.settings["rates"].index(data.settings["rate"])
    ends = data["train"][:, :, at, :, -1].mean(axis=0)
    gain = ends[:, 0] - ends[:, -1]
    share = round(100 * float(gain[1] / gain[0]))
    for guess, words in ((0, "More than that"), (100, "Less than that"), (share, "Well judged")):
        page, root = explorable("more_heads", {"open": 1, "share": guess})
        page.wait_for_selector("[data-explorable=more_heads] .al-verdict p")
        said = root.locator(".al-verdict").inner_text()
        assert f"{share} %" in said
        assert words in said or abs(guess - share) <= 10


def test_best_steps_show_what_is_left(explorable) -> None:
    data = figures.kept("multihead.6")
    ends = data["train"][..., -1].mean(axis=0)
    best = ends.min(axis=1)
    at = data.settings["rates"].index(data.settings["rate"])
    for how, rows in (("best", best), ("same", ends[:, at])):
        page, root = explorable("best_steps", {"how": how})
        page.wait_for_function(
            "document.querySelector('[data-explorable=best_steps]').dataset.gains !== undefined"
        )
        found = json.loads(root.get_attribute("data-gains"))
        assert found == pytest.approx(rows[:, 0] - rows[:, -1], abs=1e-6)


def test_heads_apart_are_measured(explorable) -> None:
    look = figures.kept("multihead.6")["look"][0]
    for arm, when in ((0, 1), (1, 0)):
        page, root = explorable("heads_apart", {"arm": str(arm), "when": str(when), "head": 3})
        page.wait_for_function(
            "document.querySelector('[data-explorable=heads_apart]').dataset.spread !== undefined"
        )
        rows = look[arm, when]
        away = np.abs(rows - rows.mean(axis=0)).sum(axis=1).mean() / 2
        assert float(root.get_attribute("data-spread")) == pytest.approx(away, abs=1e-6)
        assert f"{100 * rows[2].max():.0f} %" in root.inner_text()

"""Intervals of verdicts are Student's, and are told as the book tells them."""

import numpy as np
import pytest
from scipy import stats

from attnbook.figures._interval import interval, short


@pytest.mark.parametrize("count", [2, 3, 5, 11, 12, 30, 200])
def test_interval_is_student_s(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1.0, count)
    found = interval(values)
    ends = stats.t.interval(0.95, count - 1, values.mean(), values.std(ddof=1) / np.sqrt(count))
    assert (found.low, found.high) == pytest.approx(ends, abs=2e-3 * (ends[1] - ends[0]))
    assert found.above == (ends[0] > 0.0)
    assert found.below == (ends[1] < 0.0)


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="values: expected at least two finite numbers"):
        interval([1.0])
    with pytest.raises(ValueError, match="at least two finite"):
        interval([1.0, np.nan])


def test_how_it_is_told() -> None:
    assert interval([0.1, 0.2, 0.3]).told(2) == "+.20 [-.05, .45]"
    assert interval([1.0, 2.0]).told(1, sign=False) == "1.5 [-4.9, 7.9]"
    assert [short(v) for v in (-0.0001, 0.25, -0.25, 1.5, 10.25)] == [
        ".000", ".250", "-.250", "1.500", "10.250",
    ]  # fmt: skip

"""The training loop and its runs: what is recorded, continued, saved, stopped, and how fast."""

from __future__ import annotations

import dataclasses
import gc
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from attnlab import models, optim, problems
from attnlab.optim._engines import Direct, engine_for
from attnlab.optim._logits import Logits
from attnlab.optim._rules import declared

Arrays: TypeAlias = dict[str, np.ndarray]

TOKENS = problems.sphere(n=4, T=3, d=8, trials=3, min_gap=0.05, rng=0)
ONE = TOKENS.trial(0)
CAUSAL = problems.causal(n=2, T=3, d=8, trials=2, rng=0)
MIXTURE = problems.tokenized_mixture(n=20, trials=2, rng=0)
REGRESSION = problems.gaussian_regression(n=6, T=3, d=5, unit_tokens=True, trials=2, rng=0)
PLANTED = problems.planted(n=20, T=4, d=3, rng=0)

ATTENTION = models.Attention()
FACTORED = models.Attention(factors=3)
JOINT = models.Attention(loss="exponential", start="zero", train_head=True)
HEADS = models.MultiHead(heads=3, start="gaussian")
ENCODER = models.Encoder(width=7)

RULES: dict[str, Any] = {
    "gd": optim.GD(0.5),
    "ngd": optim.NormalizedGD(0.1),
    "ngd-cap": optim.NormalizedGD(0.1, max_step=0.3),
    "ngd-heavy-ball": optim.NormalizedGD(0.1, momentum=0.9),
    "ngd-averaged": optim.NormalizedGD(0.1, momentum=0.9, averaged=True),
    "ngd-paper": optim.NormalizedGD(0.1, recipe="paper"),
    "polyak": optim.PolyakStep(max_step=10.0),
    "polyak-floor": optim.PolyakStep(max_step=10.0, floor=0.1),
    "momentum": optim.Momentum(0.5, 0.9),
    "adam": optim.Adam(0.02),
    "decayed": optim.DecayedNormalizedGD(0.1),
    "decayed-not": optim.DecayedNormalizedGD(0.1, decay=False),
    "joint": optim.JointNormalizedGD(0.1),
}
LINEAR = [name for name, rule in RULES.items() if declared(rule).linear]


def same(a: Any, b: Any) -> None:
    """Two nested results are equal to the last bit."""
    if isinstance(a, dict):
        assert isinstance(b, dict)
        assert a.keys() == b.keys()
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    else:
        assert type(a) is type(b)
        assert a == b


def close(a: Arrays, b: Arrays, tolerance: float) -> None:
    assert a.keys() == b.keys()
    for k in a:
        assert a[k].shape == b[k].shape
        np.testing.assert_allclose(a[k], b[k], rtol=tolerance, atol=tolerance, err_msg=k)


# --- what is recorded


def test_history_has_time_first_then_trials() -> None:
    record = [
        *("loss", "excess", "grad_norm", "log_grad_norm", "norm"),
        *("attention", "min_attention", "accuracy"),
        {
            "top": lambda params, _: np.abs(params["W"]).max(axis=(1, 2)),
            "logits": lambda params, p: (p.X @ params["W"][:, None] @ p.z[..., None])[..., 0],
            "number": lambda *_: 3.0,
        },
    ]
    run = optim.train(ATTENTION, TOKENS, RULES["gd"], 5, rng=1, record=record)
    expected = dict.fromkeys(
        [
            *("loss", "excess", "grad_norm", "log_grad_norm", "norm_W"),
            *("attention", "min_attention", "accuracy", "top"),
        ],
        (6, 3),
    )
    expected |= {"step": (6,), "number": (6,), "logits": (6, 3, 4, 3)}
    assert {k: a.shape for k, a in run.history.items()} == expected
    assert run.history["step"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_single_instance_has_a_history_without_trials() -> None:
    run = optim.train(ATTENTION, ONE, RULES["gd"], 5, rng=1, record=["loss", "norm", "attention"])
    assert {k: a.shape for k, a in run.history.items()} == dict.fromkeys(
        ["step", "loss", "norm_W", "attention"], (6,)
    )
    assert run.status == "completed"
    assert isinstance(run.status, str)


def test_each_head_is_recorded_on_its_own() -> None:
    run = optim.train(
        HEADS, MIXTURE, RULES["gd"], 2, rng=0, record=["attention", "min_attention", "norm"]
    )
    assert run.history["attention"].shape == run.history["min_attention"].shape == (3, 2, 3)
    assert run.history["norm_U"].shape == run.history["norm_W"].shape == (3, 2)
    P = HEADS.attention(run.params, MIXTURE)  # (trials, n, H, queries, keys)
    mass = (P * MIXTURE.relevant[:, :, None, None, :]).sum(axis=-1).mean(axis=-1)
    np.testing.assert_allclose(run.history["attention"][-1], mass.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(run.history["min_attention"][-1], mass.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("fast", [True, False])
def test_recorded_numbers_are_what_their_names_say(fast: bool) -> None:
    record = ["loss", "excess", "grad_norm", "log_grad_norm", "norm", "attention"]
    record += ["min_attention", "accuracy"]
    run = optim.train(
        ATTENTION, TOKENS, RULES["ngd"], 30, rng=1, record=record, every=[0, 30], fast=fast
    )
    start = ATTENTION.init(TOKENS, rng=1)
    for row, params in ((0, start), (-1, run.params)):
        h = {k: a[row] for k, a in run.history.items()}
        loss, grads = ATTENTION.value_and_grad(params, TOKENS)
        norm = np.linalg.norm(grads["W"], axis=(1, 2))
        best = np.take_along_axis(
            ATTENTION.attention(params, TOKENS), TOKENS.optimal[..., None], axis=-1
        )[..., 0]
        f = ATTENTION.forward(params, TOKENS)
        floor = np.log1p(np.exp(-TOKENS.scores.max(axis=-1))).mean(axis=-1)
        expected = {
            "loss": loss,
            "excess": loss - floor,
            "grad_norm": norm,
            "log_grad_norm": np.log(norm),
            "norm_W": np.linalg.norm(params["W"], axis=(1, 2)),
            "attention": best.mean(axis=-1),
            "min_attention": best.min(axis=-1),
            "accuracy": (np.sign(f) == TOKENS.y).mean(axis=-1),
        }
        assert h.keys() - {"step"} == expected.keys()
        for k in expected:
            np.testing.assert_allclose(h[k], expected[k], rtol=1e-10, atol=1e-13, err_msg=k)


def test_the_start_and_the_end_are_recorded_whatever_is_asked() -> None:
    def steps(every: Any, total: int = 10) -> list[int]:
        run = optim.train(ATTENTION, ONE, RULES["gd"], total, rng=0, every=every)
        assert run.history["loss"].shape == run.history["step"].shape
        return run.history["step"].tolist()

    assert steps(1) == list(range(11))
    assert steps(4) == [0, 4, 8, 10]
    assert steps(100) == [0, 10]
    assert steps([]) == [0, 10]
    assert steps([7, 3, 3, 99]) == [0, 3, 7, 10]
    assert steps(np.array([5])) == [0, 5, 10]
    assert steps(1, total=0) == [0]
    log = steps("log", total=2000)
    assert log[:6] == [0, 1, 2, 3, 4, 5]
    assert log[-1] == 2000
    assert len(log) <= 201
    ratio = np.array(log[-20:-1]) / np.array(log[-21:-2])
    assert ratio.max() < 1.06


def test_rows_do_not_depend_on_which_others_are_recorded() -> None:
    full = optim.train(ATTENTION, TOKENS, RULES["ngd"], 20, rng=0, record=["loss", "norm"])
    part = optim.train(ATTENTION, TOKENS, RULES["ngd"], 20, rng=0, record=["loss", "norm"], every=7)
    for k in part.history:
        np.testing.assert_array_equal(part.history[k], full.history[k][[0, 7, 14, 20]])
    same(part.params, full.params)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"every": 0}, "every"),
        ({"every": "linear"}, "every"),
        ({"every": [-1]}, "every"),
        ({"every": 2.5}, "every"),
        ({"record": ["lost"]}, "record"),
        ({"record": [{"f": 3}]}, r"record\['f'\]"),
        ({"steps": -1}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"tol": 0.0}, "tol"),
        ({"rule": "GD"}, "rule"),
        ({"model": "Attention"}, "model"),
        ({"rng": None}, "rng"),
        ({"rng": -1}, "rng"),
        ({"params": {"W": np.zeros((3, 3))}}, r"params\['W'\]"),
        ({"params": {"V": np.zeros((8, 8))}}, "params"),
        ({"params": {"W": np.full((8, 8), np.nan)}}, r"params\['W'\]"),
        ({"problem": MIXTURE}, "problem"),
    ],
)
def test_a_bad_argument_of_train_is_named(arguments: dict[str, Any], argument: str) -> None:
    call: dict[str, Any] = {
        "model": ATTENTION,
        "problem": TOKENS,
        "rule": RULES["gd"],
        "steps": 2,
        "rng": 0,
        **arguments,
    }
    with pytest.raises(ValueError, match=rf"^{argument}: expected .*, got "):
        optim.train(**call)


def test_attention_cannot_be_recorded_where_nothing_says_which_tokens_count() -> None:
    with pytest.raises(ValueError, match="relevant"):
        optim.train(ENCODER, REGRESSION, RULES["gd"], 2, rng=0, record="attention")


def test_progress_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = optim.train(ATTENTION, ONE, RULES["gd"], 50, rng=0)
    assert capsys.readouterr().err == ""
    shown = optim.train(ATTENTION, ONE, RULES["gd"], 50, rng=0, progress=True)
    err = capsys.readouterr().err
    assert "0/50" in err
    assert "step" in err
    same(shown.params, quiet.params)
    shown.extend(20, progress=True)
    assert "0/20" in capsys.readouterr().err


# --- where it starts


@pytest.mark.parametrize("fast", [True, False])
def test_params_without_trial_axes_start_every_trial(fast: bool) -> None:
    W = np.random.default_rng(0).standard_normal((8, 8))
    run = optim.train(ATTENTION, TOKENS, RULES["ngd"], 5, params={"W": W}, fast=fast)
    full = optim.train(
        ATTENTION, TOKENS, RULES["ngd"], 5, params={"W": np.stack([W] * 3)}, fast=fast
    )
    assert run.params["W"].shape == (3, 8, 8)
    same(run.params, full.params)


def test_training_writes_into_nothing_it_was_given() -> None:
    for model, problem in ((ATTENTION, TOKENS), (HEADS, MIXTURE), (ENCODER, REGRESSION)):
        start = model.init(problem, rng=0)
        before = {k: p.copy() for k, p in start.items()}
        run = optim.train(model, problem, RULES["gd"], 3, params=start)
        same(start, before)
        ended = {k: p.copy() for k, p in run.params.items()}
        run.extend(3)
        same(run.params, ended)


def test_no_steps_give_the_start() -> None:
    start = ATTENTION.init(TOKENS, rng=0)
    run = optim.train(ATTENTION, TOKENS, RULES["ngd"], 0, rng=0)
    close(run.params, start, 1e-15)
    assert run.steps == 0
    np.testing.assert_allclose(
        run.history["loss"][0], ATTENTION.value_and_grad(start, TOKENS)[0], rtol=1e-13
    )


def test_every_point_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end too, whose gradient decides whether the run has converged."""
    looks, plain = [0], models.MultiHead.value_and_grad

    def counted(self: models.MultiHead, params: Arrays, problem: Any) -> tuple[np.ndarray, Arrays]:
        looks[0] += 1
        return plain(self, params, problem)

    monkeypatch.setattr(models.MultiHead, "value_and_grad", counted)
    run = optim.train(HEADS, PLANTED, optim.GD(0.1), 5, rng=0)
    assert (run.steps, looks[0]) == (5, 6)


def test_a_start_without_a_finite_loss_is_refused() -> None:
    params = {name: np.full(tail, 1e200) for name, tail in ENCODER.shapes(REGRESSION).items()}
    with pytest.raises(ValueError, match=r"^params: expected .*finite"):
        optim.train(ENCODER, REGRESSION, RULES["gd"], 5, params=params)


# --- continuing

DIRECT: list[tuple[str, Any, Any]] = [
    ("factors", FACTORED, TOKENS),
    ("joint", JOINT, TOKENS),
    ("relu", models.Attention(head=models.ReLUHead(np.eye(8))), TOKENS),
    ("heads", HEADS, MIXTURE),
    ("encoder", ENCODER, REGRESSION),
]
RECORD = ["loss", "norm", "grad_norm"]


@pytest.mark.parametrize(("kind", "model", "problem"), DIRECT, ids=[row[0] for row in DIRECT])
@pytest.mark.parametrize("name", RULES)
def test_continuing_is_running_straight_to_the_last_bit(
    name: str, kind: str, model: Any, problem: Any
) -> None:
    rule = RULES[name]
    if name == "polyak" and kind == "relu":
        rule = RULES["polyak-floor"]  # no floor is known there
    straight = optim.train(model, problem, rule, 24, rng=3, record=RECORD)
    run = optim.train(model, problem, rule, 9, rng=3, record=RECORD)
    run = run.extend(0).extend(1).extend(14)
    same(run.params, straight.params)
    same(run.state, straight.state)
    same(run.history, straight.history)
    assert run.steps == straight.steps == 24


@pytest.mark.parametrize("problem", [TOKENS, ONE, CAUSAL], ids=["trials", "single", "causal"])
@pytest.mark.parametrize("name", RULES)
def test_continuing_in_the_space_of_logits_is_running_straight(name: str, problem: Any) -> None:
    rule = RULES[name]
    straight = optim.train(ATTENTION, problem, rule, 40, rng=3, record=RECORD)
    run = optim.train(ATTENTION, problem, rule, 15, rng=3, record=RECORD).extend(25)
    close(run.params, straight.params, 1e-12)
    close(run.history, straight.history, 1e-11)
    assert run.state.keys() == straight.state.keys()
    for k in run.state:
        if k != "count" and not isinstance(run.state[k], dict):
            np.testing.assert_allclose(run.state[k], straight.state[k], rtol=1e-11, atol=1e-13)
            assert run.state[k].shape == straight.state[k].shape
    assert run.state.get("count") == straight.state.get("count")


def test_the_memory_of_a_rule_is_used_when_continuing() -> None:
    """A fresh start of the rule from the same parameters goes elsewhere."""
    for name in ("ngd-heavy-ball", "momentum", "adam", "decayed"):
        run = optim.train(FACTORED, TOKENS, RULES[name], 10, rng=3)
        continued = run.extend(5).params["K"]
        restarted = optim.train(FACTORED, TOKENS, RULES[name], 5, params=run.params).params["K"]
        assert np.abs(continued - restarted).max() > 1e-4


def test_an_extension_may_record_other_things_at_other_times() -> None:
    run = optim.train(HEADS, MIXTURE, RULES["gd"], 4, rng=0, record=["loss", "norm"])
    more = run.extend(20, record=["loss", "norm"], every=10)
    assert more.history["step"].tolist() == [0, 1, 2, 3, 4, 14, 24]
    assert more.history["norm_W"].shape == (7, 2)
    other = run.extend(4, record=["loss", "accuracy"])
    lengths = {len(rows) for rows in other.history.values()}
    assert len(lengths) == 1  # every column has a row for each recorded step
    assert other.history["step"][-1] == 8


def test_a_run_can_be_extended_twice_from_the_same_point() -> None:
    run = optim.train(HEADS, MIXTURE, RULES["adam"], 5, rng=0)
    same(run.extend(5).params, run.extend(5).params)
    assert run.steps == 5
    assert run.history["step"].tolist() == [0, 1, 2, 3, 4, 5]


# --- saving and loading

SAVED: list[tuple[str, Any, Any, Any]] = [
    ("sphere", ATTENTION, TOKENS, RULES["ngd-heavy-ball"]),
    ("single", ATTENTION, ONE, RULES["polyak"]),
    ("sequence", ATTENTION, problems.sequence(n=2, T=3, d=4, rng=0), RULES["ngd-paper"]),
    ("causal", models.Attention(loss="correlation"), CAUSAL, RULES["ngd"]),
    ("self-attention", FACTORED, problems.sphere(n=3, T=3, d=4, self_attention=True, rng=0), None),
    (
        "orthogonal",
        models.Attention(loss="exponential", start="zero"),
        problems.orthogonal(n=4, T=3, d=9, rho=0.1, trials=2, rng=0),
        RULES["ngd-cap"],
    ),
    ("gaussian", JOINT, problems.gaussian(n=4, T=2, d=5, rho=0.1, alpha=3.0, rng=0), None),
    ("two-token", ATTENTION, problems.two_token(), RULES["decayed"]),
    ("bad-direction", ATTENTION, problems.bad_direction(), RULES["joint"]),
    (
        "relu",
        models.Attention(head=models.ReLUHead(np.random.default_rng(0).standard_normal((4, 8)))),
        TOKENS,
        RULES["momentum"],
    ),
    ("concave", models.Attention(head=models.ConcaveHead(0.3)), TOKENS, RULES["gd"]),
    ("mixture", HEADS, MIXTURE, RULES["adam"]),
    ("planted", models.MultiHead(heads=2, output="pooled"), PLANTED, RULES["momentum"]),
    ("last", models.MultiHead(heads=2, output="last"), PLANTED, RULES["polyak-floor"]),
    ("regression", ENCODER, REGRESSION, RULES["adam"]),
    (
        "encoder",
        models.Encoder(width=4, init="ntk", scaling=0.25, pooling="sum", loss="half_sum"),
        REGRESSION,
        RULES["decayed-not"],
    ),
]


@pytest.mark.parametrize(("kind", "model", "problem", "rule"), SAVED, ids=[row[0] for row in SAVED])
def test_a_saved_run_comes_back_whole(
    kind: str, model: Any, problem: Any, rule: Any, tmp_path: Path
) -> None:
    rule = RULES["adam"] if rule is None else rule
    run = optim.train(model, problem, rule, 6, rng=0, record=["loss", "norm"], every=2)
    path = tmp_path / "run.npz"
    run.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    back = optim.load(path)
    same(back.params, run.params)
    same(back.state, run.state)
    same(back.history, run.history)
    same(back.status, run.status)
    assert back.steps == run.steps
    assert back.rule == run.rule
    assert repr(back.model) == repr(run.model)
    assert type(back.problem) is type(problem)
    for name in ("X", "y", "z", "v", "mask", "relevant", "sequence_index"):
        if hasattr(problem, name):
            same(getattr(back.problem, name), getattr(problem, name))
    assert (back.problem.source is None) == (problem.source is None)
    if problem.source is not None:
        new, old = back.problem.fresh(5, rng=8), problem.fresh(5, rng=8)
        np.testing.assert_array_equal(new.X, old.X)
        np.testing.assert_array_equal(new.y, old.y)
        np.testing.assert_array_equal(back.loss(new), run.loss(old))
    same(back.extend(7).params, run.extend(7).params)
    same(back.extend(7).history, run.extend(7).history)


@pytest.mark.parametrize("name", RULES)
def test_every_rules_memory_survives_a_file(name: str, tmp_path: Path) -> None:
    run = optim.train(HEADS, MIXTURE, RULES[name], 6, rng=0)
    run.save(str(tmp_path / "run.npz"))  # a path may be a string
    back = optim.load(str(tmp_path / "run.npz"))
    assert back.rule == run.rule
    same(back.state, run.state)
    same(back.extend(6).params, optim.train(HEADS, MIXTURE, RULES[name], 12, rng=0).params)


def test_a_teacher_comes_back_as_a_teacher(tmp_path: Path) -> None:
    run = optim.train(HEADS, PLANTED, RULES["gd"], 2, rng=0)
    run.save(tmp_path / "run.npz")
    teacher = optim.load(tmp_path / "run.npz").problem.teacher
    same(teacher.W, PLANTED.teacher.W)
    same(teacher(PLANTED.X), PLANTED.teacher(PLANTED.X))


def test_functions_of_ones_own_stay_behind_but_their_rows_do_not(tmp_path: Path) -> None:
    record = ["loss", {"top": lambda params, _: params["W"].max(axis=(1, 2))}]
    run = optim.train(ATTENTION, TOKENS, RULES["gd"], 4, rng=0, record=record)
    run.save(tmp_path / "run.npz")
    back = optim.load(tmp_path / "run.npz")
    same(back.history, run.history)
    again = back.extend(2, record=record)
    assert again.history["top"].shape == (7, 3)


def test_a_file_has_the_name_it_was_given(tmp_path: Path) -> None:
    run = optim.train(ATTENTION, ONE, RULES["gd"], 2, rng=0)
    run.save(tmp_path / "without-suffix")
    assert [file.name for file in tmp_path.iterdir()] == ["without-suffix"]
    same(optim.load(tmp_path / "without-suffix").params, run.params)


def written(path: Path, **arrays: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


NOT_RUNS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("step,loss\n0,1.0\n"),
    "empty": lambda path: path.write_bytes(b""),
    "zip": lambda path: path.write_bytes(b"PK\x03\x04" + 200 * b"x"),
    "npy": lambda path: path.write_bytes(b"\x93NUMPY" + 40 * b"x"),
    "pickle": lambda path: written(path, header=np.array([{}], dtype=object)),
    "other arrays": lambda path: written(path, W=np.zeros(3)),
    "header of words": lambda path: written(path, header=np.array("attention")),
    "header of a list": lambda path: written(path, header=np.array("[1, 2]")),
    "another format": lambda path: written(path, header=np.array('{"format": 99}')),
    "no content": lambda path: written(path, header=np.array('{"format": 1}')),
    "half a content": lambda path: written(
        path, header=np.array(json.dumps({"format": 1, "content": {"dict": {"steps": 3}}}))
    ),
    "missing arrays": lambda path: written(
        path, header=np.array(json.dumps({"format": 1, "content": {"array": "array7"}}))
    ),
    "a foreign record": lambda path: written(
        path,
        header=np.array(json.dumps({"format": 1, "content": {"record": "Popen", "fields": {}}})),
    ),
}


def refusal(path: Path) -> str:
    """What `load` says; a file it left open is reported once nothing refers to it any more."""
    gc.freeze()  # what stands before is not looked through, a second each time
    try:
        optim.load(path)
    except ValueError as error:
        said = str(error)
    gc.collect()
    gc.unfreeze()
    return said


@pytest.mark.parametrize("kind", NOT_RUNS)
def test_a_file_that_is_not_a_run_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.npz"
    NOT_RUNS[kind](path)
    said = refusal(path)
    assert said.startswith("path: expected ")
    assert "notes.npz" in said


def test_half_a_file_is_not_a_run(tmp_path: Path) -> None:
    run, path = optim.train(ATTENTION, TOKENS, RULES["gd"], 4, rng=0), tmp_path / "half.npz"
    run.save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "half.npz" in refusal(path)


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        optim.load(tmp_path / "nothing.npz")


# --- a model and a rule of one's own


@dataclass(frozen=True)
class MeanToken:
    """The smallest model: logistic regression on the mean token, nothing but the contract."""

    def shapes(self, problem: Any) -> dict[str, tuple[int, ...]]:
        return {"b": (problem.d,)}

    def init(self, problem: Any, rng: Any = None) -> Arrays:
        return {"b": np.zeros((*problem.trials, problem.d))}

    def forward(self, params: Arrays, problem: Any) -> np.ndarray:
        return (problem.X.mean(axis=-2) @ params["b"][..., None])[..., 0]

    def attention(self, params: Arrays, problem: Any) -> np.ndarray:
        return np.full(problem.X.shape[:-1], 1.0 / problem.T)

    def value_and_grad(self, params: Arrays, problem: Any) -> tuple[np.ndarray, Arrays]:
        m = problem.y * self.forward(params, problem)
        slope = -problem.y / (1.0 + np.exp(m)) / problem.n
        grad = (slope[..., None, :] @ problem.X.mean(axis=-2))[..., 0, :]
        return np.log1p(np.exp(-m)).mean(axis=-1), {"b": grad}


OWN_RULES = [name for name in RULES if name != "polyak"]  # which asks the model for its floor


@pytest.mark.parametrize("problem", [MIXTURE, PLANTED, TOKENS], ids=["mixture", "single", "tokens"])
@pytest.mark.parametrize("name", OWN_RULES)
def test_a_model_of_ones_own_trains(name: str, problem: Any) -> None:
    record = ["loss", "norm", "grad_norm", {"b0": lambda params, _: params["b"][..., 0]}]
    run = optim.train(MeanToken(), problem, RULES[name], 30, record=record)
    assert run.history["loss"].shape == (31, *problem.trials)
    assert (run.history["loss"][-1] < run.history["loss"][0]).all()
    assert run.predict().shape == (*problem.trials, problem.n)
    assert run.attention().shape == problem.X.shape[:-1]
    assert "MeanToken" in repr(run)
    same(run.extend(5).params, optim.train(MeanToken(), problem, RULES[name], 35).params)


def test_attention_of_a_model_of_ones_own_is_recorded_on_optimal_tokens() -> None:
    run = optim.train(MeanToken(), TOKENS, RULES["gd"], 2, record="attention")
    np.testing.assert_allclose(run.history["attention"], 1.0 / TOKENS.T, rtol=1e-12)


@dataclass(frozen=True)
class Sign:
    """A rule of one's own: only what the contract asks, ``init`` and a pure ``step``."""

    def init(self, model: Any, problem: Any, params: Arrays) -> dict[str, Any]:
        return {}

    def step(self, params: Arrays, at: Any, state: Any) -> tuple[Arrays, Any]:
        return {k: p - 0.01 * np.sign(at.grads[k]) for k, p in params.items()}, state


@pytest.mark.parametrize(
    ("model", "problem"),
    [(MeanToken(), MIXTURE), (ATTENTION, TOKENS), (HEADS, MIXTURE)],
    ids=["own", "attention", "heads"],
)
def test_a_rule_of_ones_own_trains(model: Any, problem: Any) -> None:
    run = optim.train(model, problem, Sign(), 3, rng=0)
    expected = model.init(problem, rng=0)
    for _ in range(3):
        grads = model.value_and_grad(expected, problem)[1]
        expected = {k: p - 0.01 * np.sign(grads[k]) for k, p in expected.items()}
    close(run.params, expected, 1e-12)


@dataclass(frozen=True)
class UnitSteps:
    """Normalized descent as a user would write it, from what `at` knows."""

    def init(self, model: Any, problem: Any, params: Arrays) -> dict[str, Any]:
        return {}

    @optim.declare(linear=True, scaled=True)
    def step(self, params: Arrays, at: models.Evaluation, state: Any) -> tuple[Arrays, Any]:
        return {k: p - at.times(k, 0.1 / at.norm(k)) for k, p in params.items()}, state


@pytest.mark.parametrize("fast", [True, False])
def test_a_rule_of_ones_own_never_knows_in_which_coordinates_it_moves(fast: bool) -> None:
    mine = optim.train(ATTENTION, TOKENS, UnitSteps(), 300, rng=0, fast=fast)
    theirs = optim.train(ATTENTION, TOKENS, optim.NormalizedGD(0.1), 300, rng=0, fast=fast)
    close(mine.params, theirs.params, 1e-12)


def test_an_early_end_between_marks_is_written_down_whole() -> None:
    model = models.Attention(start="zero")
    ends = optim.train(model, problems.two_token(), optim.GD(5.0), 500, tol=1e-2, every=1000)
    assert ends.status == "converged"
    assert ends.history["step"].tolist() == [0, ends.steps]
    np.testing.assert_allclose(ends.history["loss"][-1], ends.loss(), rtol=1e-12)


@problems.source
@dataclass(frozen=True)
class Coins:
    """A source of one's own."""

    T: int

    def trial(self, index: Any) -> Coins:
        return self

    def draw(self, n: int, rng: Any) -> problems.SequenceProblem:
        X = np.random.default_rng(rng).choice([-1.0, 1.0], size=(n, self.T, 1))
        return problems.SequenceProblem(X, X[:, 0, 0], source=self)


def test_a_registered_source_is_saved_and_read(tmp_path: Path) -> None:
    run = optim.train(HEADS, Coins(T=3).draw(8, 0), RULES["gd"], 2, rng=0)
    run.save(tmp_path / "run.npz")
    assert optim.load(tmp_path / "run.npz").problem.source == Coins(T=3)


def test_a_source_that_is_not_registered_is_not_saved(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Dice(Coins):
        pass

    run = optim.train(HEADS, Dice(T=3).draw(8, 0), RULES["gd"], 2, rng=0)
    with pytest.raises(ValueError, match="Dice"):
        run.save(tmp_path / "run.npz")


def test_two_sources_cannot_share_a_name() -> None:
    kind = dataclasses.make_dataclass("Mixture", [("T", int)])
    with pytest.raises(ValueError, match="kind: expected a name not yet taken"):
        problems.source(kind)
    with pytest.raises(ValueError, match="kind: expected a dataclass"):
        problems.source(int)
    assert problems.sources()["Mixture"] is problems.Mixture


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run = optim.train(MeanToken(), MIXTURE, RULES["gd"], 2)
    with pytest.raises(ValueError, match="MeanToken"):
        run.save(path)
    assert list(tmp_path.iterdir()) == []
    good = optim.train(HEADS, MIXTURE, RULES["gd"], 2, rng=0)
    good.save(path)
    with pytest.raises(ValueError, match="MeanToken"):
        run.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    same(optim.load(path).params, good.params)  # the old file is as it was


def test_a_disk_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.npz"
    run = optim.train(ATTENTION, ONE, RULES["gd"], 2, rng=0)
    run.save(path)

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        run.extend(3).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    assert optim.load(path).steps == 2


# --- how it ends


@dataclass
class StopAt:
    """A recording function that interrupts when it is asked for the k-th time."""

    k: int
    calls: int = 0

    def __call__(self, params: Arrays, problem: Any) -> float:
        self.calls += 1
        if self.calls == self.k + 1:
            raise KeyboardInterrupt
        return 0.0


@pytest.mark.parametrize("name", ["gd", "ngd-heavy-ball", "adam", "decayed"])
@pytest.mark.parametrize(
    ("model", "problem"),
    [(HEADS, MIXTURE), (ENCODER, REGRESSION), (ATTENTION, TOKENS), (ATTENTION, ONE)],
    ids=["heads", "encoder", "attention", "single"],
)
def test_an_interrupt_keeps_what_there_is(name: str, model: Any, problem: Any) -> None:
    rule = RULES[name]
    straight = optim.train(model, problem, rule, 20, rng=0)
    run = optim.train(model, problem, rule, 20, rng=0, record=["loss", {"stop": StopAt(8)}])
    assert np.unique(run.status).tolist() == ["interrupted"]
    assert run.steps == 8
    assert run.history["step"].tolist() == list(range(8))
    same(run.history["loss"], straight.history["loss"][:8])
    at_eight = optim.train(model, problem, rule, 8, rng=0)
    close(run.params, at_eight.params, 1e-13)
    np.testing.assert_allclose(run.loss(), straight.history["loss"][8], rtol=1e-12)
    more = run.extend(12, record="loss")
    close(more.params, straight.params, 1e-12)
    assert more.steps == 20
    assert np.unique(more.status).tolist() == ["completed"]


def test_an_interrupted_run_that_goes_on_has_the_whole_history() -> None:
    straight = optim.train(HEADS, MIXTURE, RULES["adam"], 20, rng=0)
    run = optim.train(HEADS, MIXTURE, RULES["adam"], 20, rng=0, record=["loss", {"s": StopAt(8)}])
    more = run.extend(12, record="loss")
    same(more.history["step"], straight.history["step"])
    same(more.history["loss"], straight.history["loss"])


def test_an_interrupt_at_the_start_gives_the_start() -> None:
    run = optim.train(HEADS, MIXTURE, RULES["adam"], 20, rng=0, record={"stop": StopAt(0)})
    assert run.steps == 0
    assert run.status.tolist() == ["interrupted", "interrupted"]
    same(run.params, HEADS.init(MIXTURE, rng=0))
    straight = optim.train(HEADS, MIXTURE, RULES["adam"], 5, rng=0)
    more = run.extend(5, record="loss")
    same(more.params, straight.params)
    same(more.history, straight.history)


def test_an_interrupted_run_can_be_saved(tmp_path: Path) -> None:
    run = optim.train(HEADS, MIXTURE, RULES["adam"], 9, rng=0, record=["loss", {"s": StopAt(4)}])
    run.save(tmp_path / "run.npz")
    back = optim.load(tmp_path / "run.npz")
    same(back.status, run.status)
    same(back.extend(5).params, optim.train(HEADS, MIXTURE, RULES["adam"], 9, rng=0).params)


def test_an_interrupt_takes_the_progress_bar_down(capsys: pytest.CaptureFixture[str]) -> None:
    record = ["loss", {"stop": StopAt(3)}]
    run = optim.train(HEADS, MIXTURE, RULES["gd"], 9, rng=0, record=record, progress=True)
    assert run.steps == 3
    assert capsys.readouterr().err.endswith("\r")


def test_an_error_in_a_recording_function_is_not_swallowed() -> None:
    def broken(params: Arrays, problem: Any) -> float:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        optim.train(HEADS, MIXTURE, RULES["gd"], 3, rng=0, record={"broken": broken})


WIDE = problems.gaussian_regression(n=8, T=3, d=5, unit_tokens=True, rng=0)


def test_a_diverging_encoder_stops_with_its_history_and_without_warnings() -> None:
    model = models.Encoder(width=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = optim.train(model, WIDE, optim.GD(1000.0), 400, rng=0, record=["loss", "norm"])
    assert run.status == "diverged"
    assert 0 < run.steps < 400
    assert run.history["step"].tolist() == list(range(run.steps + 1))
    for rows in run.history.values():
        assert np.isfinite(rows).all()
    assert run.history["loss"][-1] > 1e6 * run.history["loss"][0]
    assert all(np.isfinite(p).all() for p in run.params.values())
    # the parameters are those of the last recorded row, and the next step leaves the numbers
    assert np.isfinite(run.loss())
    np.testing.assert_allclose(run.loss(), run.history["loss"][-1], rtol=1e-12)
    assert "diverged" in repr(run)


@pytest.mark.parametrize("name", ["gd", "momentum", "adam"])
def test_a_diverged_run_that_goes_on_stays_where_it_is(name: str) -> None:
    rule = {"gd": optim.GD(1e3), "momentum": optim.Momentum(1e3), "adam": optim.Adam(1e120)}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = optim.train(models.Encoder(width=20), WIDE, rule, 400, rng=0)
        more = run.extend(10)
    assert run.status == more.status == "diverged"
    same(more.params, run.params)


def stretched() -> problems.SequenceProblem:
    """Three trials, of which the middle one has tokens too long for a step of 1."""
    base = problems.gaussian_regression(n=8, T=3, d=5, unit_tokens=True, trials=3, rng=0)
    X = base.X * np.array([1.0, 50.0, 1.0])[:, None, None, None]
    return problems.SequenceProblem(X, base.y)


@pytest.mark.parametrize("rule", [optim.GD(0.5), optim.Momentum(0.2, 0.5)], ids=str)
def test_a_trial_that_diverges_leaves_the_others_untouched(rule: Any) -> None:
    problem, model = stretched(), models.Encoder(width=20)
    start = model.init(problem, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = optim.train(model, problem, rule, 60, params=start, record=["loss", "norm"])
    assert run.status.tolist() == ["completed", "diverged", "completed"]
    assert run.steps == 60
    assert all(np.isfinite(p).all() for p in run.params.values())
    assert run.history["loss"].shape == (61, 3)
    lost = np.isnan(run.history["loss"][:, 1])
    assert lost[-1]
    assert not lost[0]
    assert (np.diff(lost.astype(int)) >= 0).all()  # once lost, always lost
    np.testing.assert_array_equal(np.isnan(run.history["norm_w_O"][:, 1]), lost)
    for i in (0, 2):
        alone = optim.train(
            model,
            problem.trial(i),
            rule,
            60,
            params={k: p[i] for k, p in start.items()},
            record=["loss", "norm"],
        )
        assert alone.status == "completed"
        close({k: p[i] for k, p in run.params.items()}, alone.params, 1e-12)
        np.testing.assert_allclose(
            run.history["loss"][:, i], alone.history["loss"], rtol=1e-12, atol=1e-14
        )
    pair = problem.trial([0, 2])
    without = optim.train(model, pair, rule, 60, params={k: p[[0, 2]] for k, p in start.items()})
    close({k: p[[0, 2]] for k, p in run.params.items()}, without.params, 1e-12)
    alone = optim.train(
        model, problem.trial(1), rule, 60, params={k: p[1] for k, p in start.items()}
    )
    assert alone.status == "diverged"
    close({k: p[1] for k, p in run.params.items()}, alone.params, 1e-9)


def test_a_batch_with_a_lost_trial_can_be_saved_and_continued(tmp_path: Path) -> None:
    problem, model = stretched(), models.Encoder(width=20)
    run = optim.train(model, problem, optim.GD(0.5), 40, rng=0)
    run.save(tmp_path / "run.npz")
    back = optim.load(tmp_path / "run.npz")
    assert back.status.tolist() == ["completed", "diverged", "completed"]
    more = back.extend(20)
    straight = optim.train(model, problem, optim.GD(0.5), 60, rng=0)
    assert more.status.tolist() == straight.status.tolist()
    same(more.params, straight.params)
    same(more.history, straight.history)
    assert "1 diverged" in repr(run)


def test_a_tolerance_ends_a_run_once_every_trial_has_reached_it() -> None:
    run = optim.train(
        ENCODER, REGRESSION, optim.GD(0.2), 20_000, rng=0, tol=1e-4, record=["grad_norm"], every=100
    )
    assert run.status.tolist() == ["converged", "converged"]
    assert run.steps < 20_000
    assert run.history["step"][-1] == run.steps  # the end is recorded
    assert (run.history["grad_norm"][-1] <= 1e-4).all()
    before = optim.train(
        ENCODER, REGRESSION, optim.GD(0.2), run.steps - 1, rng=0, record="grad_norm"
    )
    assert (before.history["grad_norm"][-1] > 1e-4).any()


def test_trials_that_reach_the_tolerance_are_named_one_by_one() -> None:
    run = optim.train(ENCODER, REGRESSION, optim.GD(0.2), 300, rng=0, record=["grad_norm"])
    tol = float(run.history["grad_norm"][-1].mean())  # between the two trials
    named = optim.train(ENCODER, REGRESSION, optim.GD(0.2), 300, rng=0, tol=tol)
    expected = ["converged" if g <= tol else "completed" for g in run.history["grad_norm"][-1]]
    assert sorted(expected) == ["completed", "converged"]
    assert named.status.tolist() == expected
    assert named.steps == 300


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_an_exactly_zero_gradient_is_said(name: str, fast: bool) -> None:
    """Tokens that are all alike: nothing to learn, nothing moves, no 0/0."""
    token = np.array([0.6, 0.8])
    problem = problems.TokenProblem(
        X=np.tile(token, (2, 3, 4, 1)), z=np.ones((2, 3, 2)), y=np.ones((2, 3)), v=np.ones((2, 2))
    )
    run = optim.train(
        models.Attention(), problem, RULES[name], 5, rng=0, record=["loss", "grad_norm"], fast=fast
    )
    assert run.status.tolist() == ["converged", "converged"]
    close(run.params, models.Attention().init(problem, rng=0), 1e-15)
    assert (run.history["grad_norm"] == 0.0).all()
    assert np.isfinite(run.history["loss"]).all()
    assert "2 converged" in repr(run)


# --- fresh data


def test_a_run_answers_for_fresh_data() -> None:
    p = problems.tokenized_mixture(n=100, trials=2, rng=0)
    model = models.MultiHead(heads=2)
    run = optim.train(model, p, optim.GD(1.0), 100)
    fresh = p.fresh(50, rng=1)
    f = model.forward(run.params, fresh)
    assert f.shape == (2, 50)
    np.testing.assert_array_equal(run.predict(fresh), f)
    np.testing.assert_allclose(run.loss(fresh), np.log1p(np.exp(-fresh.y * f)).mean(axis=-1))
    np.testing.assert_array_equal(run.accuracy(fresh), (np.sign(f) == fresh.y).mean(axis=-1))
    np.testing.assert_array_equal(run.accuracy(fresh), 1.0)
    assert run.attention(fresh).shape == (2, 50, 2, 10, 10)
    assert run.loss().shape == run.accuracy().shape == (2,)
    np.testing.assert_allclose(run.loss(), run.history["loss"][-1], rtol=1e-12)


def test_accuracy_is_for_classifiers() -> None:
    run = optim.train(ENCODER, REGRESSION, RULES["gd"], 1, rng=0)
    with pytest.raises(ValueError, match=r"^accuracy: "):
        run.accuracy()
    assert run.predict(REGRESSION.fresh(9, rng=0)).shape == (2, 9)


def test_a_run_says_what_matters_in_one_line() -> None:
    run = optim.train(ATTENTION, TOKENS, RULES["gd"], 7, rng=0)
    text = repr(run)
    assert "\n" not in text
    for part in ("Attention", "GD(", "0.5", "steps=7", "3 completed", "loss=0."):
        assert part in text
    assert re.search(
        r"status='completed'", repr(optim.train(ATTENTION, ONE, RULES["gd"], 1, rng=0))
    )


# --- the space of logits

FAST: dict[str, Any] = {
    "trials": TOKENS,
    "single": ONE,
    "causal": CAUSAL,
    "causal-single": problems.causal(n=2, T=3, d=9, rng=4),
    "sequence": problems.sequence(n=2, T=3, d=9, trials=2, rng=4),
    "self-attention": problems.sphere(n=4, T=3, d=8, trials=2, self_attention=True, rng=2),
    "two-token": problems.two_token(),
}
NAMES = ["loss", "excess", "grad_norm", "log_grad_norm", "norm", "attention", "min_attention"]
NAMES += ["accuracy"]


@pytest.mark.parametrize("data", FAST)
@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
@pytest.mark.parametrize("name", LINEAR)
def test_the_space_of_logits_gives_the_same_run(name: str, loss: str, data: str) -> None:
    problem, model = FAST[data], models.Attention(loss=loss)
    record = [*NAMES, {"W": lambda params, _: params["W"]}]
    runs = [
        optim.train(model, problem, RULES[name], 60, rng=7, record=record, every=6, fast=fast)
        for fast in (True, False)
    ]
    assert isinstance(engine_for(model, problem, RULES[name], None), Logits)
    fast, direct = runs
    close(fast.params, direct.params, 1e-10)
    close(fast.history, direct.history, 1e-9)
    assert fast.state.keys() == direct.state.keys()
    for k in fast.state:
        assert np.shape(fast.state[k]) == np.shape(direct.state[k])
        np.testing.assert_allclose(fast.state[k], direct.state[k], rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(fast.status, direct.status)
    assert fast.steps == direct.steps


@pytest.mark.parametrize("data", ["trials", "causal", "single"])
def test_the_space_of_logits_starts_anywhere(data: str) -> None:
    """A start outside the span of the features stays outside: only its shadow moves."""
    problem = FAST[data]
    W0 = np.random.default_rng(3).standard_normal((*problem.trials, problem.d, problem.d)) * 5
    runs = [
        optim.train(ATTENTION, problem, RULES["ngd"], 50, params={"W": W0}, record=NAMES, fast=fast)
        for fast in (True, False)
    ]
    close(runs[0].params, runs[1].params, 1e-10)
    close(runs[0].history, runs[1].history, 1e-8)


def test_the_fast_engine_is_chosen_where_it_pays() -> None:
    def engine(model: Any, problem: Any, rule: Any, state: Any = None) -> type:
        return type(engine_for(model, problem, rule, state))

    figure = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=2, rng=0)
    for name in LINEAR:
        for loss in ("logistic", "exponential", "correlation"):
            for problem in (TOKENS, ONE, CAUSAL, figure):
                assert engine(models.Attention(loss=loss), problem, RULES[name]) is Logits
    sizes = [(5, 5, 4), (5, 5, 8), (5, 5, 16), (6, 8, 10)]  # those of the benchmark
    for n, T, d in sizes:
        p = problems.sphere(n=n, T=T, d=d, trials=500, rng=0)
        assert engine(ATTENTION, p, RULES["ngd"]) is Logits
        assert engine(ATTENTION, p, RULES["ngd-paper"]) is Logits
    ngd = RULES["ngd"]
    assert engine(ATTENTION, TOKENS, RULES["adam"]) is Direct  # not linear in gradients
    assert engine(FACTORED, TOKENS, ngd) is Direct
    assert engine(JOINT, TOKENS, ngd) is Direct
    assert engine(models.Attention(head=models.ReLUHead(np.eye(8))), TOKENS, ngd) is Direct
    assert engine(models.Attention(head=models.ConcaveHead(0.1)), TOKENS, ngd) is Direct
    assert engine(HEADS, MIXTURE, ngd) is Direct
    assert engine(MeanToken(), TOKENS, ngd) is Direct
    many = problems.sphere(n=200, T=10, d=3, rng=0)  # the Gram matrix is larger than the data
    assert engine(ATTENTION, many, ngd) is Direct
    momentum = {"W": np.zeros((3, 8, 8))}
    assert engine(ATTENTION, TOKENS, RULES["momentum"], momentum) is Direct
    assert engine(ATTENTION, TOKENS, RULES["decayed"], {"count": 3}) is Logits


def test_fast_false_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    evaluate = Logits.evaluate

    def counted(self: Logits, point: Any, with_loss: bool) -> Any:
        calls.append(1)
        return evaluate(self, point, with_loss)

    monkeypatch.setattr(Logits, "evaluate", counted)
    optim.train(ATTENTION, TOKENS, RULES["ngd"], 5, rng=0, fast=False)
    assert not calls
    optim.train(ATTENTION, TOKENS, RULES["ngd"], 5, rng=0)
    assert calls


def test_several_axes_of_trials_train_like_one() -> None:
    flat = problems.sphere(n=4, T=3, d=8, trials=6, rng=0)
    grid = problems.TokenProblem(
        X=flat.X.reshape(2, 3, 4, 3, 8),
        z=flat.z.reshape(2, 3, 4, 8),
        y=flat.y.reshape(2, 3, 4),
        v=flat.v.reshape(2, 3, 8),
    )
    W = np.random.default_rng(0).standard_normal((6, 8, 8))
    for name in ("ngd", "adam", "polyak"):
        one = optim.train(ATTENTION, flat, RULES[name], 20, params={"W": W}, record=NAMES)
        two = optim.train(
            ATTENTION, grid, RULES[name], 20, params={"W": W.reshape(2, 3, 8, 8)}, record=NAMES
        )
        np.testing.assert_allclose(two.params["W"].reshape(6, 8, 8), one.params["W"], atol=1e-11)
        for k in one.history:
            expected = one.history[k]
            assert two.history[k].shape == ((21,) if k == "step" else (21, 2, 3))
            np.testing.assert_allclose(two.history[k].reshape(expected.shape), expected, atol=1e-10)
        assert two.status.shape == (2, 3)


def test_a_batch_of_runs_is_a_loop_of_runs() -> None:
    """Leading axes are trials: each is as if it had been alone (K, Q for 25 steps: chaotic)."""
    cases = [(ATTENTION, TOKENS), (FACTORED, TOKENS), (HEADS, MIXTURE), (ENCODER, REGRESSION)]
    for model, problem in cases:
        start = model.init(problem, rng=2)
        run = optim.train(model, problem, RULES["ngd"], 25, params=start)
        for i in range(problem.trials[0]):
            alone = optim.train(
                model,
                problem.trial(i),
                RULES["ngd"],
                25,
                params={k: p[i] for k, p in start.items()},
            )
            close({k: p[i] for k, p in run.params.items()}, alone.params, 1e-11)
            np.testing.assert_allclose(run.history["loss"][:, i], alone.history["loss"], rtol=1e-11)


@pytest.mark.parametrize("name", ["step", "loss", "norm_W"])
def test_a_recorder_cannot_take_a_name_of_attnlab(name: str) -> None:
    with pytest.raises(ValueError, match=r"^record: expected a name that is not attnlab's own"):
        optim.train(HEADS, MIXTURE, RULES["gd"], 2, rng=0, record={name: lambda *_: 1.0})


def test_what_cannot_be_kept_as_numbers_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"^record\['x'\]: expected real numbers"):
        optim.train(HEADS, MIXTURE, RULES["gd"], 2, rng=0, record={"x": lambda *_: None})
    with pytest.raises(ValueError, match=r"^record: expected a classification loss"):
        optim.train(ENCODER, REGRESSION, RULES["gd"], 2, rng=0, record="accuracy")
    for odd in (None, len):
        with pytest.raises(ValueError, match=r"^record: expected names"):
            optim.train(HEADS, MIXTURE, RULES["gd"], 2, rng=0, record=odd)


def test_classes_are_not_taken_for_models_or_rules() -> None:
    with pytest.raises(ValueError, match=r"^rule: expected a step rule"):
        optim.train(HEADS, MIXTURE, optim.GD, 2, rng=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^model: expected a model"):
        optim.train(models.MultiHead, MIXTURE, RULES["gd"], 2, rng=0)  # type: ignore[arg-type]


def test_tol_stops_a_batch_whose_other_trials_are_lost() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2, 6, 3, 5))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    X[1] *= 1e4
    p = problems.SequenceProblem(X, np.zeros((2, 6)))
    run = optim.train(models.Encoder(width=20), p, optim.GD(0.5), 4000, rng=0, tol=1e-2)
    assert run.status.tolist() == ["converged", "diverged"]
    assert run.steps < 4000


def test_the_encoder_can_be_replaced() -> None:
    wide = dataclasses.replace(models.Encoder(width=20, init="he"), width=40)
    assert repr(wide) == repr(models.Encoder(width=40, init="he"))


def test_one_seed_for_data_and_start_does_not_copy_the_data() -> None:
    p = problems.gaussian_regression(n=20, T=5, d=30, unit_tokens=True, rng=0)
    W = models.Encoder(width=100).init(p, rng=0)["W_Q"]
    tokens = p.X.reshape(100, 30)
    cosines = (W * tokens).sum(axis=1) / np.linalg.norm(W, axis=1)
    assert np.abs(cosines).max() < 0.8
    assert abs(cosines.mean()) < 0.1

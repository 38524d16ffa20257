"""Oracles that several test files share; each is independent of the library."""

from __future__ import annotations

import json
import os
import pkgutil
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

# Before NumPy loads: test processes share the cores, and threads that fight cost a factor five.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from scipy.optimize import nnls  # noqa: E402

MaxMargin = Callable[..., np.ndarray | None]


def frobenius_svm(
    X: np.ndarray, z: np.ndarray, tokens: np.ndarray, mask: np.ndarray | None = None
) -> np.ndarray | None:
    """argmin |W|_F with (x_selected - x_t)' W z >= 1 for every other token, None if infeasible.

    Least-distance programming (Lawson and Hanson): min |w| with G w >= 1 is the NNLS problem
    min |E u - f|, E = [G'; 1'], f = (0, ..., 0, 1), through its residual r: w = -r_head / r_last.
    """
    n, T, d = X.shape
    rows = [
        np.outer(X[i, tokens[i]] - X[i, t], z[i]).ravel()
        for i in range(n)
        for t in range(T)
        if t != tokens[i] and (mask is None or mask[i, t])
    ]
    Q, R = np.linalg.qr(np.array(rows).T)
    E = np.vstack([R, np.ones(len(rows))])
    f = np.zeros(len(E))
    f[-1] = 1.0
    residual = E @ nnls(E, f)[0] - f
    if -residual[-1] < 1e-9:
        return None
    W = (Q @ (-residual[:-1] / residual[-1])).reshape(d, d)
    assert (np.array(rows) @ W.ravel()).min() > 1.0 - 1e-8
    return np.asarray(W)


@pytest.fixture(scope="session")
def max_margin() -> MaxMargin:
    """``max_margin(X, z, tokens, mask=None)``: the Frobenius max-margin W of one instance."""
    return frobenius_svm


ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "book" / "_tools"), str(ROOT / "tests")]

import programs  # noqa: E402

# -- what `make test` leaves to `make test-all` --------------------------------------------------
# By kind: why a test may wait for `make test-all`, and which do. A name stands for all its cases, a
# name with the beginning of a case for that one.
LATER: dict[str, tuple[str, ...]] = {
    "a figure that tests/test_figures_*.py hold to the same numbers, or the other way round": (
        "test_reference.py::test_multihead_dm1_table_of_gd_at_a_thousand_steps",
        "test_reference.py::test_multihead_figure_2_more_heads_at_a_constant_step_are_slower",
        "test_reference.py::test_multihead_figure_2_overshoots_first_and_then_decays_like_one_over_k",
        "test_reference.py::test_multihead_figures_4_and_5_more_heads_are_faster_and_momentum",
        "test_reference.py::test_multihead_figures_4_and_5_the_planted_model_is_found",
        "test_reference.py::test_encoder_a7_relative_loss_at_epoch_100",
        "test_reference.py::test_encoder_a7_and_a8_width_100_at_epochs_100_and_400",
        "test_figures_multihead.py::test_figure_3_faster_but_with_less_margin",
        "test_figures_multihead.py::test_figure_3_especially_with_adam",
        "test_figures_multihead.py::test_figure_3_same_order_with_the_constant_of_figure_2",
        "test_figures_bias.py::test_figure_3_joint_training",
        "test_reference.py::test_bias_figure_3_joint_training_ranks_the_methods",
    ),
    "a long run of what a shorter one shows": (
        "test_saturation.py::test_the_exact_recipe_goes_on_for_twenty_thousand_steps",
        "test_saturation.py::test_the_exact_recipe_converges_to_the_max_margin_direction",
        "test_reference.py::test_bias_section_3_3_gradient_descent_grows_like_a_logarithm",
        "test_reference.py::test_bias_figure_2_long_run",
        "test_figures_bias.py::test_figure_8_the_basin_has_an_edge",
        "test_figures_multihead.py::test_figure_5_more_heads_are_faster",
        "test_figures_multihead.py::test_figure_5_momentum_is_ahead_of_descent",
        "test_figures_multihead.py::test_figure_2_reference_values",
        "test_figures_multihead.py::test_figure_4_more_heads_are_somewhat_faster",
        "test_figures_multihead.py::test_alternative_texts_carry_the_numbers",
        "test_figures_encoder.py::test_figure_2_reference_losses",
        "test_figures_svm.py::test_figure_8_order_of_the_predictions",
        "test_figures_svm.py::test_figure_9_the_published_filter_keeps_next_to_nothing",
        "test_figures_svm.py::test_figure_12_counts_stay_within_the_bound",
        "test_sentences.py::test_one_head_alone_gets_stuck_more_often_than_not",
        "test_sentences.py::test_that_factors_arrive_is_not_said_to_be_certain",
        "test_svm_certificates.py::test_any_small_instance",
        "test_readme_commands.py::test_it_runs_on_a_smaller_setting[attnlab figure bias.10",
        "test_readme_commands.py::test_it_runs_on_a_smaller_setting[attnlab figure svm.5",
        "test_course_private.py::test_a_course_of_ones_own_sets",
        "test_svm_certificates.py::test_the_counts",
        "test_figures_svm.py::test_texts_carry_the_numbers_of_the_data[0",
        "browser/test_training_heads.py::test_step_rules_show_the_runs",
        "browser/test_single_head.py::test_short_segments_stay_within_four_thirds",
        "browser/test_training_heads.py::test_leave_one_out_has_a_right_answer",
        "browser/test_single_head.py::test_copies_in_pairs_fall_like_the_root_exactly",
    ),
    "a mutant that its claim's own long check must notice; short checks' mutants run": (
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-4",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-6",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-7",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-2",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[proposition-1: ",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-10",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[corollary-2",
        "test_claims_svm.py::test_a_broken_formula_is_noticed[theorem-8",
        "test_claims_svm_errata.py::test_a_broken_part_is_noticed[corollary-",
        "test_claims_svm_errata.py::test_a_broken_part_is_noticed[theorem-",
        "test_claims_encoder.py::test_a_broken_bound_is_noticed[theorem-",
        "test_claims_encoder.py::test_a_broken_bound_is_noticed[assumption-3",
        "test_claims_encoder_errata.py::test_a_mutant_is_noticed[section-c6",
        "test_claims_bias.py::test_a_broken_theorem_is_noticed[theorem-",
        "test_claims_svm_errata.py::test_a_broken_part_is_noticed[assumption-",
        "test_claims_bias.py::test_a_broken_theorem_is_noticed[lemma-6",
        "test_claims_bias.py::test_a_broken_theorem_is_noticed[lemma-7",
        "test_claims_bias_errata.py::test_a_broken_formula_is_noticed[14",
        "test_claims_multihead.py::test_checks_notice[lemma-2",
        "test_claims_multihead.py::test_checks_notice[theorem-1",
        "test_claims_multihead.py::test_checks_notice[theorem-3",
        "test_claims_multihead.py::test_checks_notice[corollary-2",
        "test_claims_multihead.py::test_checks_notice[proposition-7",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.corollary-2",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.corollary-3",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.corollary-5",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.definition-1",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.theorem-1",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.assumption-2",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.proposition-8",
        "test_mutations.py::test_a_mutation_is_noticed[multihead.theorem-3",
        "test_mutations.py::test_a_mutation_is_noticed[encoder.remark-",
        "test_mutations.py::test_a_mutation_is_noticed[encoder.theorem-",
        "test_mutations.py::test_a_mutation_is_noticed[bias.example-1",
        "test_mutations.py::test_a_mutation_is_noticed[bias.remark-2",
        "test_mutations.py::test_a_mutation_is_noticed[svm.lemma-3",
        "test_mutations.py::test_a_mutation_is_noticed[svm.theorem-",
        "test_mutations.py::test_a_mutation_is_noticed[svm.proposition-1",
        "test_mutations.py::test_a_mutation_is_noticed[svm.conjecture-1",
        "test_mutations.py::test_a_mutation_is_noticed[svm.claim-1",
        "test_mutations.py::test_a_mutation_is_noticed[svm.erratum-28",
    ),
    "the evidence again, with other seeds and sizes: `make book` has it with one": (
        "test_claims_svm_errata.py::test_few_instances_suffice",
        "test_claims_bias_errata.py::test_evidence_agrees_for_few_instances_and_another_seed",
        "test_claims_multihead_errata.py::test_errata_agree_for_other_seeds_and_sizes",
    ),
    "programs of others, whole: what they are given is read in the other tests of the course": (
        "test_course.py::test_nbgrader_takes_these_verdicts_and_no_others",
        "test_course.py::test_forgetting_leaves_the_others",
        "browser/test_notebooks.py::test_jupyterlab_drags_and_python_reads",
        "browser/test_notebooks.py::test_a_double_click_opens_a_notebook",
    ),
    "the book built and served, or all of pytest again: `.ci/clean-room` does so, too": (
        "test_readme_commands.py::test_make_read_serves_the_book",
        "test_read.py::test_book_is_served_until_interrupted",
        "test_programs.py::test_tests_of_a_missing_program_are_left_out_and_counted",
    ),
    "the editor's whole loop over a book of its own: its parts are tested in test_sources.py": (
        "test_edit.py::test_what_is_saved_is_shown",
    ),
    "a course graded twice: its parts are tested one by one": (
        "test_course.py::test_killed_half_way_it_goes_on",
        "test_course.py::test_points_by_hand",
        "test_course.py::test_twice_the_same_and_only_what_changed",
        "test_course.py::test_the_small_set_keeps_its_word",
        "test_course.py::test_what_a_person_wrote_survives",
        "test_course_assign.py::test_each_is_graded_with_their_own",
        "test_course_assign.py::test_a_part_of_a_set_is_all_there_is",
        "test_course_collect.py::test_two_of_one_name_stop_until_they_are_placed",
        "test_course_deadlines.py::test_archives_that_know_the_moment",
    ),
    "a whole paper or a whole page again: the same on one of its claims, or on another page": (
        "test_sources.py::test_checks_of_a_paper",
        "test_sources.py::test_all_that_ran_was_foreseen[book/svm/tokens",
        "browser/test_live.py::test_a_page_runs[book/svm/tokens",
        "test_cli.py::test_the_loosest_bounds_come_first",
        "test_svm_general.py::test_figure_8_in_small",
    ),
    "what a reader of a page meets seldom: full storage, floods, two windows, long walks": (
        "browser/test_pages.py::test_every_derivation_of_the_book_walks",
        "browser/test_live_caps.py::test_what_a_run_shows_is_capped_in_the_page",
        "browser/test_live_caps.py::test_a_worker_that_floods_the_page_is_ended",
        "browser/test_live_caps.py::test_numpy_and_python_fail_as_elsewhere",
        "browser/test_live_kept.py::test_full_storage_loses_nothing_that_it_has",
        "browser/test_live_kept.py::test_two_windows_keep_what_was_typed_in_each",
        "browser/test_live_kept.py::test_a_rebuild_keeps_an_edit_and_shows_both",
        "browser/test_live.py::test_a_number_that_a_reader_changed_is_marked",
        "browser/test_opening.py::test_a_long_start_keeps_a_locally_optimal_selection_only",
        "browser/test_svm_sequences.py::test_the_mask_under_the_hand",
        "browser/test_svm_descent.py::test_the_reply_gives_the_angles_of_the_read_out",
    ),
    "another program that computes pieces; what it gives is tested with processes": (
        "test_figures_engine.py::test_dask_gives_the_same_bits",
        "test_figures_engine.py::test_an_unreachable_scheduler_is_said_within_seconds",
    ),
    "processes that are killed, or meet at one place; what they leave is tested in a second": (
        "test_figures_engine.py::test_killed_and_resumed",
        "test_figures_engine.py::test_two_processes_at_one_output",
        "test_figures_engine.py::test_a_killed_command_leaves_no_process",
        "test_read.py::test_killed_build_leaves_no_process",
    ),
}
# Cases of one kind: how many run in `make test`, spread evenly.
FEW: dict[str, int] = {
    "browser/test_explorables.py::test_every_stop_has_a_picture": 8,  # one kit checks its controls
    "browser/test_explorables.py::test_touch_and_mouse": 2,  # one kit moves all of them
    "browser/test_explorables.py::test_the_address_restores_the_state": 2,  # one kit writes it
    "browser/test_explorables.py::test_keyboard_changes_what_is_said": 3,  # one kit hears keys
    "browser/test_sealed.py::test_nothing_tells_before_the_answer": 7,  # each kind of question
    "browser/test_sealed.py::test_a_link_may_be_sealed_or_open": 2,
    "browser/test_exercises.py::test_every_exercise_of_the_book_knows_its_answers": 4,
    "browser/test_derivations.py::test_rules_and_width_on_a_dark_phone": 4,
    "browser/test_derivations.py::test_the_keyboard_walks": 3,
    "browser/test_derivations.py::test_what_is_dropped_breaks_its_step": 3,
    "browser/test_mixtures.py::test_head_race": 1,
    "browser/test_mixtures.py::test_training_of_heads": 1,
    "browser/test_training_heads.py::test_head_budget_compares_with_what_is_promised": 1,
    "browser/test_single_head.py::test_segment_explorer_walks_as_attnlab_does": 1,
    "browser/test_single_head.py::test_weak_convexity_is_within_its_bounds": 1,
    "browser/test_kernels.py::test_gradient": 3,
    "browser/test_exercises.py::test_answers_are_read_as_people_write_them": 5,  # one reader
    "browser/test_derivations.py::test_it_reads_without_a_script": 5,
    "browser/test_svm_tokens.py::test_the_dissector_pulls_as_attnlab": 5,
    "browser/test_svm_tokens.py::test_rings_belong_to_the_norm_in_training": 4,
    "browser/test_svm_tokens.py::test_the_board_says_what_attnlab_computes": 4,
    "browser/test_svm_local.py::test_only_two_tokens_hold": 3,
    "browser/test_svm_local.py::test_the_map_of_starts": 2,
    "browser/test_svm_margin.py::test_the_strip_is_that_of_attnlab": 3,
    "browser/test_svm_global.py::test_what_is_dragged_decides": 1,
    "browser/test_encoder_tokens.py::test_the_tail_meter_has_no_tolerance": 4,
    "browser/test_svm_global.py::test_kernels_follow_attnlab": 1,
    "browser/test_live_kept.py::test_an_edit_that_is_not_kept_is_said_and_not_lost": 1,
    "test_course_collect.py::test_names_of_one_student_crowd_nobody_out": 1,
    "test_sources.py::test_a_saved_file_is_another_key": 2,
    "test_sources.py::test_what_a_page_depends_on": 5,
    "test_widgets_bias_rates.py::test_heavy_ball_is_a_longer_step_with_a_lag": 1,
    "test_claims_multihead_errata.py::test_every_printed_form_is_refuted": 8,
    "test_claims_encoder_errata.py::test_every_slip_of_a_group_is_refuted_and_mended": 4,
    "test_claims_encoder_errata.py::test_a_mutant_is_noticed": 8,
    "test_saturation.py::test_other_models_and_rules_stay_finite_for_three_thousand_steps": 3,
    "test_reference.py::test_bias_figure_8_a_large_start_never_recovers": 1,
    "test_reference.py::test_bias_figure_8_a_small_start_recovers": 1,
    "test_reference.py::test_multihead_figure_3_more_heads_are_faster_and_lose_margin": 1,
    "test_svm_certificates.py::test_hard_instances": 2,
    "browser/test_encoder_kernels.py::test_lazy_replay_is_the_figure": 1,
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Mark what is long; of what is then selected, leave out what needs a missing program."""
    mark_long(config, items)
    yield
    leave_out(config, items)


def mark_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark them; a name that fits no test is a mistake, not a test that runs nowhere."""
    names = {item: item.nodeid.removeprefix("tests/") for item in items}
    whole = not any("::" in arg for arg in config.args) and not config.getoption("lf", False)
    files = {name.partition("::")[0] for name in names.values()} if whole else set()

    def those(pattern: str) -> list[pytest.Item]:
        found = [item for item, name in names.items() if name.startswith(pattern)]
        if not found and pattern.partition("::")[0] in files:
            raise pytest.UsageError(f"tests/conftest.py: no test is called {pattern}")
        return found

    for patterns in LATER.values():
        for pattern in patterns:
            for item in those(pattern):
                item.add_marker("long")
    for pattern, few in FEW.items():
        found = those(pattern)
        kept = {len(found) * k // few for k in range(few)}
        for place, item in enumerate(found):
            if place not in kept:
                item.add_marker("long")


# -- what waits for a program that is missing -----------------------------------------------------
# `.ci/programs` writes which programs do not start and which packages mend that. The tests that
# need one are those that ask for the fixture of its name, and these examples in docstrings.
EXAMPLES = {"attnbook.course._sandbox.Sandbox": "sandbox"}
KINDS = {"chromium": "Chromium", "firefox": "Firefox", "sandbox": "a working bubblewrap"}
LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option with which `make test` goes on where a program is missing."""
    parser.addoption(
        "--missing-programs",
        metavar="FILE",
        help="leave out the tests that need a program listed in FILE, and fail at the end",
    )


def missing_programs(config: pytest.Config) -> dict[str, list[str]]:
    """The packages to install, by the name of the fixture that waits for them."""
    file = config.getoption("missing_programs")
    return json.loads(Path(file).read_text()) if file else {}


def needs(item: pytest.Item) -> set[str]:
    """The programs that a test starts, by the names of their fixtures."""
    asked = set(getattr(item, "fixturenames", ())) & set(KINDS)
    return asked | ({EXAMPLES[item.name]} if item.name in EXAMPLES else set())


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what cannot run here, and count it by the first program that is missing."""
    missing = missing_programs(config)
    waiting = {item: sorted(needs(item) & set(missing)) for item in items}
    config.stash[LEFT_OUT] = dict(Counter(names[0] for names in waiting.values() if names))
    config.hook.pytest_deselected(items=[item for item in items if waiting[item]])
    items[:] = [item for item in items if not waiting[item]]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that left tests out is no success; a test process tells its master what it left out."""
    counts = session.config.stash.get(LEFT_OUT, {})
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = counts
    elif counts and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a test process left out; all of them leave out the same."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def tell_what_was_left_out(terminalreporter: pytest.TerminalReporter) -> None:
    """The last words of a run that is not complete: what was not run, and what to install."""
    counts = terminalreporter.config.stash.get(LEFT_OUT, {})
    if not counts:
        return
    missing = missing_programs(terminalreporter.config)
    packages = " ".join(package for name in counts for package in missing[name])
    each = " and ".join(f"{count} need {KINDS[name]}" for name, count in sorted(counts.items()))
    mend = f"Install as root: apt-get install {packages}" if packages else "See: make programs"
    terminalreporter.write_line(
        f"NOT COMPLETE: {sum(counts.values())} tests were left out: {each}. {mend}", red=True
    )


@pytest.fixture(scope="session")
def sandbox() -> None:
    """What every test that runs students' code asks for; the reason where no sandbox starts."""
    if error := programs.why_no_sandbox():
        pytest.fail(f"no sandbox, which `make programs` installs: {error}")


# `attnlab course check` runs a student's own notebook, in a sandbox where there is one
EITHER_WAY = ("test_a_notebook_is_looked_over", "test_the_command_says_it_and_ends_with_one")
RUNNING: list[pytest.Item] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Know which test runs."""
    RUNNING[:] = [item]
    return (yield)


def sandboxes_are_asked_for(event: str, details: tuple[Any, ...]) -> None:
    """Refuse a sandbox to a test that does not ask for the fixture, by which it is left out."""
    if event != "subprocess.Popen" or not RUNNING or BUBBLEWRAP not in details[1]:
        return
    if "sandbox" not in needs(RUNNING[0]) and not RUNNING[0].name.startswith(EITHER_WAY):
        raise RuntimeError(f"{RUNNING[0].nodeid} starts a sandbox: let it ask for `sandbox`")


if BUBBLEWRAP := shutil.which("bwrap"):
    sys.addaudithook(sandboxes_are_asked_for)


@cache
def ledger() -> Any:
    """The evidence of the last build of the book, by paper, over the packages under test."""
    import results
    import sources

    import attnbook
    import attnlab

    homes = {each.__name__: Path(each.__file__).parent for each in (attnlab, attnbook)}
    return results.Evidence(sources.Sources(homes))


@cache
def built_evidence(paper: str) -> dict[str, Any]:
    """What the book's build found with seed 0, where every file behind it is the same now."""
    return dict(ledger().of(paper))


@pytest.fixture
def evidence_of_the_build() -> Callable[[str], dict[str, Any]]:
    """``evidence_of_the_build("svm.lemma-4")``: its entry, or nothing where it is not today's."""
    return lambda name: built_evidence(name.split(".")[0]).get(name, {})


def intact(name: str, seed: int) -> bool:
    """Whether a claim agrees as it is: found once by all test processes, and by the build."""
    from attnbook import claims

    paper = name.split(".")[0]
    if seed == 0 and (told := built_evidence(paper).get(name)):
        return bool(told["agrees"])
    mark = ledger().folder / "intact" / ledger().key(paper)[:24] / f"{name}-{seed}"
    if not mark.exists():
        if not claims.get(name).check(rng=seed).agrees:
            return False
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return True


Mutant = Callable[[Callable[..., object]], Callable[..., object]]


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """``verdict(claim, target, mutant)``: does the evidence still agree once ``target`` is broken?

    ``target`` is a dotted path such as ``"attnbook.theory.svm.water_filling"``; ``mutant`` takes
    the true function and returns the broken one. A mutant that raises proves nothing, so errors
    are not caught.
    """
    from attnbook import claims

    def run(name: str, target: str, mutant: Mutant, seed: int = 0) -> bool:
        true = pkgutil.resolve_name(target)
        assert intact(name, seed), "must agree before anything is broken"
        with monkeypatch.context() as patch:
            patch.setattr(target, mutant(true))
            return claims.get(name).check(rng=seed).agrees

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the browser tests measured, and last what was not run."""
    tell_what_was_measured(terminalreporter)
    tell_what_was_left_out(terminalreporter)


def tell_what_was_measured(terminalreporter: pytest.TerminalReporter) -> None:
    """Bytes and times of the pages; a busy machine makes times long."""
    found: dict[str, dict[str, float]] = {"bytes": {}, "milliseconds": {}}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for kind, (page, value) in report.user_properties:
            found[kind][page] = max(value, found[kind].get(page, 0.0))
    said = {
        "bytes": "script and data a page adds, compressed (budget 400 kB)",
        "milliseconds": "first explorable usable after load (aim 1 s)",
    }
    for kind, pages in found.items():
        if not pages:
            continue
        ordered = sorted(pages.items(), key=lambda item: -item[1])
        unit = (lambda x: f"{x / 1000:.0f} kB") if kind == "bytes" else (lambda x: f"{x:.0f} ms")
        most = ", ".join(f"{page} {unit(value)}" for page, value in ordered[:4])
        median = unit(float(np.median([value for _, value in ordered])))
        terminalreporter.write_line(f"{said[kind]}: median {median}; most {most}")

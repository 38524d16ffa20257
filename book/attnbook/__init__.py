"""What the book attnlab stands on: theorems as functions, claims as checks, figures, explorables.

It imports the library `attnlab` through public names, and the library never imports it.

What a theorem says, as a number
    `theory.multihead`, `theory.encoder`, `theory.bias`, `theory.svm`
        constants and bounds, printed and corrected: one module a paper

What is proven wrong, or survives
    `claims.all`, `claims.get`, `claims.select`, `claims.run`, `claims.counts`
        every numbered statement and erratum of the four papers, as a check
    `claims.Claim`, `claims.Evidence`, `claims.Measurement`, `claims.Outcome`
        a statement with its status, and what its check found

What is reproduced
    `figures.all`, `figures.get`, `figures.Figure`, `figures.Data`
        every synthetic figure of the papers, by name
    `figures.mapper`, `figures.write`, `figures.show`
        who computes its pieces, what it leaves behind, and how a page shows it

What moves
    `widgets.TokenBoard`, `widgets.PickToken`, `widgets.FateOfStart`, `widgets.WaterFilling`
        explorables that compute as you drag
    `widgets.TwoNorms`, `widgets.HowOften`, `widgets.RegularizationPath`, `widgets.FinitePart`,
    `widgets.Arithmetic`, `widgets.Explorable`
        explorables over what attnlab computed, and what they share
    `widgets.KernelBlocks`, `widgets.CancelledWidth`, `widgets.HessianMap`, `widgets.LazyReplay`
        the encoder's kernel and Hessian by block, a width that cancels, what moves in training
    `widgets.AttentionRow`, `widgets.WeakConvexity`, `widgets.SegmentExplorer`
        one head's moments, and how its loss bends
    `widgets.SoftmaxSits`, `widgets.StepDial`, `widgets.GaugeOne`, `widgets.KinkMicroscope`
        where attention starts, the step that is stable, and Proposition 1 as a gauge
    `widgets.InitRace`, `widgets.ScaleRace`, `widgets.TokenOrFeature`, `widgets.ThreeNumbers`,
    `widgets.TailMeter`
        starts and scalings as steps, one feature a token, and how alike samples may be
    `widgets.HeadBudget`, `widgets.LeaveOneOut`, `widgets.TwoGroups`, `widgets.StepRules`
        training many heads: what theorems ask for, stability, good starts, step rules
    `widgets.LogisticTwin`, `widgets.AssumptionOne`, `widgets.Antipodal`, `widgets.LemmaFour`
        attention beside logistic regression, the bias paper's assumptions, Lemma 4 as a meter
    `widgets.MarginRace`, `widgets.HeadRace`, `widgets.OneHeadTwin`, `widgets.PlantedTeacher`
        margins of the mixture, and what more heads do from a zero start
    `widgets.OptimizerRace`, `widgets.ThreeSets`, `widgets.TwoByTwo`, `widgets.PolyakCap`,
    `widgets.MomentumForms`
        rates of normalized descent and its proof, two tokens in closed form, Polyak, momentum
    `widgets.JointTraining`, `widgets.BadBasin`, `widgets.NaiveExact`
        the head trained too, starts in bad directions, the gradient at saturation

What is assigned
    `course.Course`, `course.ProblemSet`, `course.problem_set`
        a course's folder, and problem sets with a variant for each seed
    `course.Sandbox`, `course.Limits`, `course.NoSandboxError`
        where student code runs, with what, or why it does not
    `course.Submission`, `course.read_submission`, `course.grade`, `course.Verdict`
        what was handed in, and what it earns
"""

import importlib
from types import ModuleType

__all__ = ["claims", "course", "figures", "theory", "widgets"]


def __getattr__(name: str) -> ModuleType:
    """Rooms are imported when they are first asked for: explorables need anywidget."""
    if name in __all__:
        return importlib.import_module(f"attnbook.{name}")
    raise AttributeError(f"module 'attnbook' has no attribute {name!r}")

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
    `claims.Suggestion`
        a law that no statement promises, with the number that is fitted

What is reproduced
    `figures.all`, `figures.get`, `figures.Figure`, `figures.Data`
        every figure of the papers that shows data, by name
    `figures.kept`, `figures.store`, `figures.Verdict`, `figures.verdicts`
        runs on real data that the book keeps, and what they came to
    `figures.mapper`, `figures.write`, `figures.show`
        who computes its pieces, what it leaves behind, and how a page shows it
    `figures.style`, `figures.colour`
        a page's own figure in the book's style

What moves
    `widgets.TokenBoard`, `widgets.GradientDissector`, `widgets.TwoForms`, `widgets.PickToken`,
    `widgets.PhasePlane`, `widgets.WaterFilling`
        explorables that compute as you drag
    `widgets.TwoNorms`, `widgets.HowOften`, `widgets.FinitePart`, `widgets.Explorable`
        explorables over what attnlab computed, and what they share
    `widgets.MarginStreet`, `widgets.ExposedToken`, `widgets.EnoughWidth`, `widgets.TwoBalls`
        the attention SVM: what holds it, which tokens it can select, how wide is wide enough;
        the balls of both norms
    `widgets.FirstStep`, `widgets.InsideCone`, `widgets.StartMap`
        where gradient descent goes first, why a cone keeps it, where each start ends
    `widgets.CausalMask`, `widgets.MaskForgotten`
        one sequence, a mask under the hand, and a mask that is forgotten
    `widgets.Arithmetic`, `widgets.StoredWeight`, `widgets.TrainingLab`, `widgets.RankLab`
        what floating point makes of saturation; labs for runs and for ranks
    `widgets.FirstRun`, `widgets.OnePicture`, `widgets.LayerSteps`, `widgets.LongStart`
        the front page's run, four papers in one run, from a layer to the theory, a long start
    `widgets.KernelBlocks`, `widgets.CancelledWidth`, `widgets.HessianMap`, `widgets.LazyReplay`
        the encoder's kernel and Hessian by block, a width that cancels, what moves in training
    `widgets.AttentionRow`, `widgets.WeakConvexity`, `widgets.SegmentExplorer`
        one head's moments, and how its loss bends
    `widgets.SoftmaxSits`, `widgets.StepDial`, `widgets.GaugeOne`, `widgets.KinkMicroscope`
        where attention starts, the step that is stable, and Proposition 1 as a gauge
    `widgets.InitRace`, `widgets.ScaleRace`, `widgets.TokenOrFeature`, `widgets.ThreeNumbers`,
    `widgets.TailMeter`
        starts and scalings as steps, one feature a token, and how alike samples may be
    `widgets.VitMaps`, `widgets.RealTails`
        the encoder on real data: maps that freeze or move, how alike reviews and digits are
    `widgets.HeadBudget`, `widgets.LeaveOneOut`, `widgets.TwoGroups`, `widgets.StepRules`
        training many heads: what theorems ask for, stability, good starts, step rules
    `widgets.LogisticTwin`, `widgets.AssumptionOne`, `widgets.Antipodal`, `widgets.LemmaFour`
        attention beside logistic regression, the bias paper's assumptions, Lemma 4 as a meter
    `widgets.MarginRace`, `widgets.HeadRace`, `widgets.OneHeadTwin`, `widgets.PlantedTeacher`
        margins of the mixture, and what more heads do from a zero start
    `widgets.MoreHeads`, `widgets.BestSteps`, `widgets.HeadsApart`
        heads on real sentences, with a longer step and parameters taken apart
    `widgets.OptimizerRace`, `widgets.ThreeSets`, `widgets.TwoByTwo`, `widgets.PolyakCap`,
    `widgets.MomentumForms`
        rates of normalized descent and its proof, two tokens in closed form, Polyak, momentum
    `widgets.RealRace`, `widgets.WordAngles`, `widgets.FourWorlds`
        step rules on real texts, angles of real words, what trainings on them miss
    `widgets.RealHeads`
        heads of a real model, and how close each lies to its own SVM
    `widgets.JointTraining`, `widgets.BadBasin`, `widgets.NaiveExact`
        the head trained too, starts in bad directions, the gradient at saturation
    `widgets.ImageRace`, `widgets.DigitPatch`, `widgets.TrainedViT`
        real images: four rules with printed and fair steps, one digit among noise, a watched ViT

What asks, and what is told
    `widgets.exercise.number`, `widgets.exercise.power`, `widgets.exercise.choice`,
    `widgets.exercise.false_line`, `widgets.exercise.reach`, `widgets.exercise.unpack`,
    `widgets.exercise.Exercise`
        exercises that check the reader's answer on the page
    `widgets.tell`
        a number of a cell for the words around it

What happens outside the theory
    `real.data.images`, `real.data.texts`, `real.data.hub`, `real.data.sources`
        real images and texts, and where they come from
    `real.data.Images`, `real.data.Texts`, `real.data.Source`
        what they are, and where each is from
    `real.heads.sentences`, `real.heads.words`, `real.heads.Sentences`, `real.heads.Features`
        sentences through a frozen encoder, in few directions, as problems of attnlab
    `real.heads.fit`, `real.heads.Course`, `real.heads.start`, `real.heads.Cut`, `real.heads.width`
        the theory's heads trained on them by batches; heads that share one head's parameters
    `real.models.minilm`, `real.models.hub`, `real.models.random`
        encoders in plain NumPy: one that many people use, any of its kind, one that learned nothing
    `real.models.Encoder`, `real.models.Head`, `real.models.Trace`
        a model, the weights of a head, and what it did with a text
    `real.probe.report`, `real.probe.Report`
        all of what the theory asks of one head
    `real.probe.cosines`, `real.probe.line`, `real.probe.smallest`, `real.probe.similarities`,
    `real.probe.tail`, `real.probe.Tail`, `real.probe.spread_above_median`
        tokens and texts beside the assumptions of two papers
    `real.probe.sharpness`, `real.probe.Sharpness`, `real.probe.ranks`, `real.probe.Ranks`
        how much attention chooses, and how many directions W has
    `real.probe.traces`, `real.probe.selections`, `real.probe.Selections`, `real.probe.selection`,
    `real.probe.Selection`, `real.probe.Model`, `real.probe.solution`
        a head beside the SVM of its own selections
    `real.probe.controls`, `real.probe.chance`, `real.probe.scrambled`, `real.probe.taught`
        what it is compared with: matrices that learned nothing of it, and one that did
    `real.train.Transformer`, `real.train.vit`, `real.train.Rule`, `real.train.fit`,
    `real.train.Run`, `real.train.load`, `real.train.text`, `real.train.padded`, `real.train.Padded`
        small Transformers that PyTorch trains, with what happens inside, and their checkpoints

What is assigned
    `course.Course`, `course.ProblemSet`, `course.problem_set`
        a course's folder, and problem sets with a variant for each seed
    `course.Sandbox`, `course.Limits`, `course.NoSandboxError`
        where student code runs, with what, or why it does not
    `course.Submission`, `course.read_submission`, `course.grade`, `course.Verdict`
        what was handed in, and what it earns
    `course.preflight`, `course.look_over`, `course.Finding`
        what of a notebook can be marked, before it is handed in
    `course.template`, `course.review`
        a problem set to begin with, and what one's own still misses
"""

import importlib
from types import ModuleType

__all__ = ["claims", "course", "figures", "real", "theory", "widgets"]


def __getattr__(name: str) -> ModuleType:
    """Rooms are imported when they are first asked for: explorables need anywidget."""
    if name in __all__:
        return importlib.import_module(f"attnbook.{name}")
    raise AttributeError(f"module 'attnbook' has no attribute {name!r}")

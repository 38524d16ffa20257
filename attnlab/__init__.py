"""A small NumPy library for the theory of attention; the book attnlab runs on it.

Data flow up, imports point down: `problems` are what goes in, `models` what is trained, `optim`
what happens, `svm` where it goes. Leading axes are trials, everywhere.

What goes in
    `problems.TokenProblem`, `problems.SequenceProblem`
        the two kinds of data: one query a sample, or every token a query
    `problems.selection`
        one token a sample, checked against the data and its mask
    `problems.sphere`, `problems.sequence`, `problems.causal`
        random tokens of the svm paper; sequence-to-sequence and causal forms
    `problems.orthogonal`, `problems.gaussian`, `problems.bad_direction`, `problems.two_token`
        the data of the bias paper
    `problems.tokenized_mixture`, `problems.planted`, `problems.gaussian_regression`
        the data of the multihead and the encoder paper
    `problems.Mixture`, `problems.Teacher`, `problems.Source`
        what a problem was drawn from

What is trained
    `models.Attention`, `models.MultiHead`, `models.Encoder`
        the networks of the four papers
    `models.LinearHead`, `models.ReLUHead`, `models.ConcaveHead`, `models.Head`
        prediction heads of `Attention`
    `models.Evaluation`, `models.Model`, `models.Params`
        what the training loop asks of a model, and what comes back

What a theorem says, as a number
    `theory.multihead.B2`, `theory.multihead.B_Phi`, `theory.multihead.Gamma_eps`,
    `theory.multihead.H_min`, `theory.multihead.H_min_good`, `theory.multihead.H_min_p3`,
    `theory.multihead.H_min_realizable`, `theory.multihead.U_star`, `theory.multihead.W_star`,
    `theory.multihead.alpha`, `theory.multihead.beta1`, `theory.multihead.beta2`,
    `theory.multihead.beta3`, `theory.multihead.crossing`, `theory.multihead.expansiveness`,
    `theory.multihead.first_phase`, `theory.multihead.first_phase_error`, `theory.multihead.g0`,
    `theory.multihead.gamma_attn`, `theory.multihead.gamma_lin`, `theory.multihead.gamma_star`,
    `theory.multihead.generalization_bound`, `theory.multihead.gradient_U_bound`,
    `theory.multihead.gradient_W_bound`, `theory.multihead.gradient_bound`,
    `theory.multihead.head_exponents`, `theory.multihead.head_margin_bound`,
    `theory.multihead.hessian_bound`, `theory.multihead.hoeffding`,
    `theory.multihead.iterate_radius`, `theory.multihead.local_regret_bound`,
    `theory.multihead.mixed_derivative`, `theory.multihead.model_gradient`,
    `theory.multihead.on_average_bound`, `theory.multihead.one_head_steps`,
    `theory.multihead.quasi_convexity`, `theory.multihead.realizable_gap_bound`,
    `theory.multihead.realizable_step`, `theory.multihead.realizable_training_bound`,
    `theory.multihead.regret_bound`, `theory.multihead.rho`, `theory.multihead.rho_order`,
    `theory.multihead.saturating_target`, `theory.multihead.saturation`,
    `theory.multihead.second_derivative`, `theory.multihead.short_enough`,
    `theory.multihead.stability_bound`, `theory.multihead.step_size`,
    `theory.multihead.subgaussian_norm`, `theory.multihead.theta_opt`,
    `theory.multihead.theta_star`, `theory.multihead.token_bound`,
    `theory.multihead.training_bound`
        the multihead paper: bounds, head counts, margins of the mixture, the first phase
    `theory.encoder.Bars`, `theory.encoder.alpha`, `theory.encoder.alpha_ratio`,
    `theory.encoder.bars`, `theory.encoder.c1`, `theory.encoder.c2`, `theory.encoder.c3`,
    `theory.encoder.condition_2`, `theory.encoder.condition_3`, `theory.encoder.dissimilarity`,
    `theory.encoder.drift_bound`, `theory.encoder.effective_features`,
    `theory.encoder.effective_floor`, `theory.encoder.effective_scalars`,
    `theory.encoder.first_token_features`, `theory.encoder.gershgorin`,
    `theory.encoder.gradient_factors`, `theory.encoder.hessian_block_bounds`,
    `theory.encoder.input_bound`, `theory.encoder.lambda_0_lower`,
    `theory.encoder.lambda_0_upper`, `theory.encoder.lemma_10_bound`,
    `theory.encoder.lemma_14_z`, `theory.encoder.lemma_15_bound`, `theory.encoder.lemma_16_gap`,
    `theory.encoder.lemma_16_width`, `theory.encoder.lemma_17_printed`,
    `theory.encoder.lemma_5_failure`, `theory.encoder.lemma_5_interval`,
    `theory.encoder.lemma_6_bound`, `theory.encoder.lemma_7_bound`,
    `theory.encoder.lemma_8_interval`, `theory.encoder.lemma_9_bound`,
    `theory.encoder.logit_entry_bound`, `theory.encoder.logit_variance`,
    `theory.encoder.mean_field_kernel`, `theory.encoder.mean_tokens`,
    `theory.encoder.movement_bounds`, `theory.encoder.norms`, `theory.encoder.output_deviation`,
    `theory.encoder.product_log_mgf`, `theory.encoder.product_log_tail`, `theory.encoder.rate`,
    `theory.encoder.relu_hermite`, `theory.encoder.rho`,
    `theory.encoder.scaled_sub_exponential`, `theory.encoder.similarity`,
    `theory.encoder.smallest_eigenvalue`, `theory.encoder.smoothness`,
    `theory.encoder.softmax_jacobian`, `theory.encoder.stability_limit`,
    `theory.encoder.sub_exponential_log_mgf`, `theory.encoder.sub_exponential_tail`,
    `theory.encoder.summed_sub_exponential`, `theory.encoder.theorem_1_failure`,
    `theory.encoder.top_eigenvalue`, `theory.encoder.variances`, `theory.encoder.z`
        the encoder paper: norms, smoothness, rates, eigenvalues, tails
    `theory.bias.alignment_bound`, `theory.bias.common_margin`, `theory.bias.conditioning`,
    `theory.bias.curvature_bound`, `theory.bias.curvature_scale`,
    `theory.bias.decoder_margin_bound`, `theory.bias.decoder_norm_bound`,
    `theory.bias.dimension_needed`, `theory.bias.epsilon_schedule`,
    `theory.bias.example_dimension`, `theory.bias.example_signal`, `theory.bias.gap_set`,
    `theory.bias.gd_bound`, `theory.bias.gd_constant`, `theory.bias.gd_step`,
    `theory.bias.gradient_along`, `theory.bias.gradient_bounds`, `theory.bias.initial_norm`,
    `theory.bias.initial_scale`, `theory.bias.joint_exponent`,
    `theory.bias.joint_log_waiting_time`, `theory.bias.joint_loss_bound`,
    `theory.bias.joint_norm_bound`, `theory.bias.joint_norm_threshold`,
    `theory.bias.joint_step`, `theory.bias.joint_step_simple`, `theory.bias.largest_step`,
    `theory.bias.loss_scale`, `theory.bias.norm_bounds`, `theory.bias.norm_threshold`,
    `theory.bias.omega_1`, `theory.bias.omega_2`, `theory.bias.optimal_geometry`,
    `theory.bias.orthogonality`, `theory.bias.orthogonality_needed`,
    `theory.bias.polyak_constant`, `theory.bias.polyak_step`, `theory.bias.power_sum`,
    `theory.bias.product_bounds`, `theory.bias.rate_bound`, `theory.bias.rate_constant`,
    `theory.bias.saturation_bound`, `theory.bias.saturation_exponent`,
    `theory.bias.saturation_time`, `theory.bias.score_gap_bound`, `theory.bias.split_scores`,
    `theory.bias.token_bound`, `theory.bias.two_token_gd`, `theory.bias.two_token_miss`,
    `theory.bias.waiting_constant`, `theory.bias.waiting_time`
        the bias paper: assumptions, constants, rates and bounds
    `theory.svm.LocalConstants`, `theory.svm.LossConstants`, `theory.svm.cone_distance`,
    `theory.svm.cone_margins`, `theory.svm.cone_radius`, `theory.svm.cone_step`,
    `theory.svm.counting_dimension`, `theory.svm.crossing_radius`, `theory.svm.descent_step`,
    `theory.svm.enough_dimension`, `theory.svm.equal_score_form`, `theory.svm.equal_scores`,
    `theory.svm.equivalent_correlation`, `theory.svm.excess_above`, `theory.svm.excess_below`,
    `theory.svm.features`, `theory.svm.guaranteed_decrease`, `theory.svm.lemma_10_radius`,
    `theory.svm.lemma_11_radius`, `theory.svm.lemma_12_bounds`, `theory.svm.lemma_12_radius`,
    `theory.svm.lemma_13_bounds`, `theory.svm.lemma_14_radius`, `theory.svm.lemma_7_bound`,
    `theory.svm.lemma_7_residual`, `theory.svm.lemma_7_sum`, `theory.svm.lemma_9_bound`,
    `theory.svm.local_constants`, `theory.svm.loss_constants`, `theory.svm.low_high`,
    `theory.svm.opposing_threshold`, `theory.svm.rank_bound`, `theory.svm.reach`,
    `theory.svm.score_constants`, `theory.svm.score_gaps`, `theory.svm.softmax_covariance`,
    `theory.svm.span`, `theory.svm.sufficient_range`, `theory.svm.thresholds`,
    `theory.svm.token_margins`, `theory.svm.water_filling`
        the svm paper: existence, smoothness, cones, water-filling

How it bends
    `curvature.hessian`, `curvature.Hessian`, `curvature.product`, `curvature.extremes`
        exact second derivatives, products with them, and their extreme eigenvalues
    `curvature.weak_convexity`, `curvature.smoothness`, `curvature.Smoothness`
        how negative curvature compares with the loss, and the svm paper's Lipschitz constants

What it looks like from its start
    `ntk.empirical`, `ntk.jacobian`, `ntk.distance`
        tangent kernels of every model, block by block, and how far apart two of them are
    `ntk.limiting_encoder`, `ntk.arc_cosine`
        the infinite-width kernel of the encoder in closed form
    `ntk.margin`, `ntk.TangentMargin`
        the largest margin in tangent features, certified

What happens
    `optim.train`, `optim.Run`, `optim.load`
        the one training loop, its result, and a result read from a file
    `optim.GD`, `optim.NormalizedGD`, `optim.PolyakStep`, `optim.Momentum`, `optim.Adam`
        step rules
    `optim.DecayedNormalizedGD`, `optim.JointNormalizedGD`
        step rules for head and attention together
    `optim.Rule`
        what the training loop asks of a step rule

Where it goes
    `svm.attention_svm`, `svm.rank_limited_svm`, `svm.decoder_svm`
        max-margin directions in the Frobenius and the nuclear norm, certified
    `svm.general_svm`, `svm.finite_component`, `svm.svm_equivalent`
        several tokens a sample: the infinite part, the finite part, and both
    `svm.regularization_path`, `svm.in_cone`
        minimisers over growing balls, globally and inside the cone of a selection
    `svm.classify`, `svm.correlation`
        did a run go to the global, a local, or no max-margin direction?
    `svm.locally_optimal`, `svm.feasibility`
        may training stay at a selection, and can it be separated at all?
    `svm.assumption_b1`, `svm.assumption_b2`, `svm.assumption_c`, `svm.assumption_d`
        the svm paper's assumptions, as what was found
    `svm.Margin`, `svm.Path`, `svm.Classification`, `svm.LocalOptimality`, `svm.Finding`
        the answers; `svm.InfeasibleMargin` is the error that carries one

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

What moves (``from attnlab import widgets``; needs anywidget)
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

What is assigned (``from attnlab import course``; the command is ``attnlab course``)
    `course.Course`, `course.ProblemSet`, `course.problem_set`
        a course's folder, and problem sets with a variant for each seed
    `course.Sandbox`, `course.Limits`, `course.NoSandboxError`
        where student code runs, with what, or why it does not
    `course.Submission`, `course.read_submission`, `course.grade`, `course.Verdict`
        what was handed in, and what it earns
"""

from attnlab import claims, curvature, figures, models, ntk, optim, problems, svm, theory

__all__ = [
    "claims",
    "curvature",
    "figures",
    "models",
    "ntk",
    "optim",
    "problems",
    "svm",
    "theory",
]
__version__ = "0.1.0"

"""A slice of the library's tests as one cell: run by `tests/test_live.py`, and in the browser."""

import numpy as np

from attnlab import models, ntk, optim, problems, svm

p = problems.sphere(n=3, T=4, d=5, trials=4, rng=0)
rng = np.random.default_rng(1)
sequences = problems.SequenceProblem(X=rng.standard_normal((4, 3, 5)), y=np.array([1.0, -1, 1, -1]))
parts = []


def slopes(model, params, problem):
    """Gradients against central differences, relative."""
    _, grads = model.value_and_grad(params, problem)
    worst = 0.0
    for name, value in params.items():
        step = np.random.default_rng(2).standard_normal(value.shape)
        h = 1e-6

        def loss(t, name=name, value=value, step=step):
            return np.sum(model.value_and_grad({**params, name: value + t * step}, problem)[0])

        slope = (loss(h) - loss(-h)) / (2 * h)
        worst = max(worst, abs(slope - np.sum(grads[name] * step)) / max(1e-3, abs(slope)))
    return worst


# gradients
models_of = [(models.Attention(), p), (models.MultiHead(heads=3), sequences),
             (models.Encoder(width=7), sequences)]  # fmt: skip
worst = max(slopes(model, model.init(problem, rng=3), problem) for model, problem in models_of)
print(f"gradients: off by {worst:.0e}")
parts.append(worst < 1e-5)

# margins carry their certificates
for norm in ("fro", "nuc"):
    found = svm.attention_svm(p, norm=norm)
    good = (found.status == "optimal").all() and found.gap.max() <= 1e-9
    least = np.where(found.margins > 0, found.margins, np.inf).min()
    print(f"{norm}: {found.status.tolist()}, gap {found.gap.max():.0e}, least margin {least:.9f}")
    parts.append(bool(good and least > 1 - 1e-8))

# a token that stands twice: its Gram matrix is singular, and inv says so by NaN here
X = np.array(p.X)
best = p.optimal[0, 0]
others = [t for t in range(4) if t != best]
X[0, 0, others[1]] = X[0, 0, others[0]]
twins = svm.attention_svm(problems.TokenProblem(X=X, z=p.z, y=p.y, v=p.v))
print("twins:", twins.status.tolist(), f"gap {twins.gap.max():.0e}")
parts.append(bool((twins.status == "optimal").all() and np.isfinite(twins.W).all()))

# saturation: normalized steps stay exact long after softmax is a corner
run = optim.train(models.Attention(), p, optim.NormalizedGD(0.5), 3000, rng=4)
loss = run.history["loss"]
print(f"saturation: {run.status}, loss {loss[-1].max():.3g}")
parts.append(bool(np.isfinite(loss).all() and np.isfinite(run.params["W"]).all()))

# the tangent kernel is a Gram matrix
encoder = models.Encoder(width=7)
kernel = ntk.empirical(encoder, encoder.init(sequences, rng=5), sequences)
low = np.linalg.eigvalsh(kernel).min()
print(f"kernel: asymmetric by {abs(kernel - kernel.T).max():.0e}, least eigenvalue {low:.1e}")
parts.append(bool(abs(kernel - kernel.T).max() < 1e-12 and low > -1e-9))

print(f"{sum(parts)} of {len(parts)} parts hold")

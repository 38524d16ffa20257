"""Draw the picture of the README: four step rules on the data of bias, Figure 2."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from attnlab import models, optim, problems

STEPS = 2000
RULES = {
    "Polyak step (cap 10)": (optim.PolyakStep(max_step=10.0), "#0072B2", "-"),
    "normalized, heavy ball": (optim.NormalizedGD(0.025, momentum=0.9), "#D55E00", "--"),
    "normalized": (optim.NormalizedGD(0.025), "#009E73", "-"),
    "gradient descent": (optim.GD(0.25), "#333333", ":"),
}
LABELS = {
    "Polyak step (cap 10)": (1.15, 0.58, "left"),
    "normalized, heavy ball": (120, 0.92, "right"),
    "normalized": (410, 0.53, "right"),
    "gradient descent": (1900, 0.06, "right"),
}


def main() -> None:
    """Train, draw, write the picture beside this file."""
    problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=8, rng=0)
    model = models.Attention(loss="exponential", start="zero")
    mpl.rcParams |= {
        "svg.hashsalt": "attnlab",
        "svg.fonttype": "none",
        "font.size": 16,
        "font.family": "sans-serif",
    }
    figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
    for name, (rule, colour, style) in RULES.items():
        run = optim.train(model, problem, rule, STEPS, record="attention", every="log")
        seen = run.history["attention"]
        axes.fill_between(
            run.history["step"], seen.min(1), seen.max(1), color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(run.history["step"], seen.mean(1), style, color=colour, linewidth=2.4)
        x, y, side = LABELS[name]
        axes.text(x, y, name, color=colour, ha=side, fontsize=14)
    axes.set(
        xscale="log",
        xlim=(1, STEPS),
        ylim=(0, 1.03),
        xlabel="step",
        ylabel="attention on the optimal token",
    )
    axes.axhline(1 / 6, color="#999999", linewidth=0.8)
    axes.text(1.1, 1 / 6 - 0.075, "uniform attention", color="#666666", fontsize=14)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()

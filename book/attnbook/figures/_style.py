"""How figures look: in print and on screen, light and dark, for every kind of eye."""

from __future__ import annotations

from typing import Any

from attnbook import install
from attnbook.figures._record import Data, Figure
from attnlab import checks as check

THEMES = ("light", "dark")
# Okabe and Ito's colours, told apart with any colour vision; on dark ground black is white and
# blue is lighter. Lines differ by mark and by dash as well, so colour is never the only sign.
COLOURS = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#996f00", "#000000", "#4b8fb9"),
    "dark": ("#56b4e9", "#ff9a4d", "#2dc99a", "#e79fc8", "#f0e442", "#ffffff", "#9fc9e8"),
}
MARKS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
GROUND = {"light": "#ffffff", "dark": "#14181e"}
INK = {"light": "#1c1c1c", "dark": "#e8e8e8"}
GRID = {"light": "#d9d9d9", "dark": "#3a424d"}
# One meaning each in the whole book, as in the explorables (widgets/kit/kit.css, light).
MEANINGS = {
    "best": "#1d63c4", "rival": "#b55200", "other": "#5c636c", "query": "#0a7555",
    "trained": "#7a3fb0", "fro": "#a3560a", "nuc": "#07566b", "bound": "#5d6b1c",
    "violation": "#c01818", "you": "#b3206e", "loss": "#3d4a57", "yes": "#1b7a3d",
}  # fmt: skip


def style() -> Any:
    """Matplotlib in the book's style, for a figure of a page's own.

    Returns:
        A context: canvases and lines made inside it look like the book's.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> from attnbook import figures
        >>> with figures.style():
        ...     axes = Figure(figsize=(6.8, 3)).subplots()
        >>> axes.spines["top"].get_visible()
        False
    """
    import matplotlib as mpl

    return mpl.rc_context(settings("light"))


def colour(meaning: str) -> str:
    """A colour by what it means everywhere in the book; on a page it follows the theme.

    Args:
        meaning: `best`, `rival`, `other`, `query`, `trained`, `fro`, `nuc`, `bound`, `violation`,
            `you`, `loss` or `yes`.

    Returns:
        What Matplotlib calls it.

    Examples:
        >>> from attnbook import figures
        >>> figures.colour("trained")
        '#7a3fb0'
    """
    return MEANINGS[check.choice("meaning", meaning, MEANINGS)]


def settings(theme: str) -> Any:
    """The matplotlib settings of a theme."""
    from cycler import cycler

    ink = INK[theme]
    styles = cycler(color=COLOURS[theme]) + cycler(linestyle=DASHES)
    return {
        "figure.facecolor": GROUND[theme],
        "axes.facecolor": GROUND[theme],
        "savefig.facecolor": GROUND[theme],
        "text.color": ink,
        "axes.edgecolor": ink,
        "axes.labelcolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.prop_cycle": styles,
        "axes.grid": True,
        "grid.color": GRID[theme],
        "grid.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "font.size": 10.5,
        "axes.titlesize": 11,
        "lines.linewidth": 1.8,
        "lines.markersize": 5.0,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "svg.fonttype": "path",
        "svg.hashsalt": "attnlab",
        "savefig.dpi": 160,
    }


def picture(figure: Figure, data: Data, theme: str) -> Any:
    """Draw; matplotlib is asked for here and nowhere else, and no window is opened."""
    install.require(f"Drawing {figure.id}", {"figures": ("matplotlib",)})
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(settings(theme)):
        canvas = Canvas(figsize=figure.size)
        figure.paint(data, canvas)
        canvas.set_label(figure.alt(data))
    return canvas


def mark(index: int) -> str:
    """The mark of the ``index``-th line, beside its colour and dash."""
    return MARKS[index % len(MARKS)]


def tone(index: int) -> str:
    """The ``index``-th colour of the theme now in force (matplotlib's own "C0" is looked up late,
    when the theme is no longer in force).
    """
    import matplotlib as mpl

    colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return str(colours[index % len(colours)])


def ink() -> str:
    """The colour of text and axes in the theme now in force."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def outline(width: float = 3.4) -> list[Any]:
    """A rim in the colour of the ground, for lines that cross filled areas."""
    import matplotlib as mpl
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=mpl.rcParams["axes.facecolor"])]

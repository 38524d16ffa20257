"""``attnlab probe``: what the theory asks of a head of a real model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from attnbook.files import folder
from attnlab import checks as check

MODELS = "minilm, random, a folder, or a name of the Hugging Face hub"


def add(commands: Any) -> None:
    """Tell the parser."""
    parser = commands.add_parser(
        "probe",
        help="measure a head of a real model",
        description="Measure what the theory asks of one head: cosines of tokens, tails, how "
        "sparse its attention is, norms and ranks of W, and whether W lies along the SVM of its "
        "own selections. Prints it and draws OUT/probe.svg.",
    )
    parser.add_argument("model", help=MODELS)
    parser.add_argument("--layer", type=int, required=True, help="from 0 on")
    parser.add_argument("--head", type=int, required=True, help="from 0 on")
    parser.add_argument("--text", required=True, help="a file with one text on each line")
    parser.add_argument("--length", type=int, default=16, help="tokens of each text (default 16)")
    parser.add_argument("--most", type=int, default=70, help="texts that are used (default 70)")
    parser.add_argument("--draws", type=int, default=3, help="of each control (default 3)")
    parser.add_argument("--special", action="store_true", help="[CLS] and [SEP] count as tokens")
    parser.add_argument("--seed", type=int, default=0, help="of every draw (default 0)")
    parser.add_argument("--out", default="out", help="folder for the picture (default: out)")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Measure, print, draw."""
    from attnbook.real import models, probe

    place = folder(given.out)
    try:
        texts = Path(given.text).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise check.fail(
            "text", "a file of UTF-8 text, one text on each line", f"{error}"
        ) from None
    known = {"minilm": models.minilm, "random": lambda: models.random(rng=given.seed)}
    model = known[given.model]() if given.model in known else models.hub(given.model)
    found = probe.report(
        model,
        [text for text in texts if text.strip()],
        given.layer,
        given.head,
        rng=given.seed,
        length=given.length,
        most=given.most,
        draws=given.draws,
        special=given.special,
    )
    print("\n".join(found.lines()))
    print(drawn(found, place / "probe.svg"))
    return 0


def drawn(found: Any, path: Path) -> Path:
    """Its picture."""
    from matplotlib.figure import Figure

    from attnbook import figures

    with figures.style():
        picture = Figure(figsize=(11.0, 3.4), layout="constrained")
        found.draw(picture.subplots(1, 4))
        picture.savefig(path)
    return path

"""``attnlab probe``: what the theory asks of a head of a real model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnbook import install
from attnbook.files import folder, one_thread
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.real.models import Encoder

MODELS = {"minilm": "all-MiniLM-L6-v2, 84 MB, fetched once", "random": "a model without training"}
FEWEST = 3  # texts: fewer have too few pairs for the tail of their similarities
LONGEST = 16  # tokens that are used of each text, unless --length is given
BOUND = 10  # the length is chosen from this many times the texts that are used, not from a library


def add(commands: Any) -> None:
    """Tell the parser."""
    parser = commands.add_parser(
        "probe",
        help="measure an attention head of a real model",
        description="Measure one attention head: cosines of tokens, tails of similarities, how "
        "sparse its attention is, norms and ranks of its matrix W, and whether W lies along the "
        "SVM solution of the tokens that it selects. Prints the numbers and draws OUT/probe.svg. "
        "Takes about 5 seconds.",
    )
    known = "; ".join(f"{name} ({about})" for name, about in MODELS.items())
    parser.add_argument(
        "model", help=f"{known}; a folder with a BERT-like model; or a name on the Hugging Face hub"
    )
    parser.add_argument("--layer", type=int, required=True, help="counted from 0")
    parser.add_argument("--head", type=int, required=True, help="counted from 0")
    parser.add_argument(
        "--text",
        required=True,
        metavar="FILE",
        help=f"a file with one text on each line, at least {FEWEST} different ones",
    )
    parser.add_argument(
        "--length",
        type=int,
        help="tokens that are used of each text; shorter texts are left out (default: the length, "
        f"at most {LONGEST}, with which the most tokens are used)",
    )
    parser.add_argument("--most", type=int, default=70, help="use at most so many texts (70)")
    parser.add_argument("--draws", type=int, default=3, help="random matrices to compare with (3)")
    parser.add_argument("--special", action="store_true", help="count [CLS] and [SEP] as tokens")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    parser.add_argument("--out", default="out", help="folder for the picture (default: out)")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Measure, print, draw."""
    install.require("Measuring a head", {"figures": ("matplotlib", "threadpoolctl")})
    load = loader(given.model, given.seed)
    texts = read(given.text)
    check.count("most", given.most, FEWEST)
    check.count("draws", given.draws)
    check.count("seed", given.seed, 0)
    place = folder(given.out)
    from attnbook.real import probe

    with one_thread():
        model = load()
        model.head(given.layer, given.head)  # refuses those that it does not have
        length, used = choose_length(model, texts, given)
        print(
            f"measuring {used} of {len(texts)} texts, {length} tokens of each: about 5 s",
            file=sys.stderr,
            flush=True,
        )
        found = probe.report(
            model,
            texts,
            given.layer,
            given.head,
            rng=given.seed,
            length=length,
            most=given.most,
            draws=given.draws,
            special=given.special,
        )
    print("\n".join(found.lines()))
    print(draw(found, place / "probe.svg"))
    return 0


def loader(name: str, seed: int) -> Callable[[], Encoder]:
    """Find a model by its name, without loading it; refuse what cannot be one."""
    from attnbook.real import models

    if name == "minilm":
        return models.minilm
    if name == "random":
        return lambda: models.random(rng=seed)
    if not Path(name).is_dir() and not install.is_installed("huggingface_hub"):
        line = install.local_install_line("real")
        raise check.fail(
            "model",
            f"{', '.join(MODELS)}, the folder of a model, or a name on the Hugging Face hub "
            f"(which needs huggingface-hub: {line})",
            repr(name),
        )
    return lambda: models.hub(name)


def read(name: str) -> list[str]:
    """The different texts of a file, one on each line."""
    try:
        content = Path(name).read_text("utf-8-sig")
    except FileNotFoundError:
        raise check.fail("--text", "a file with one text on each line", f"no file {name}") from None
    except UnicodeDecodeError as error:
        raise check.fail(
            "--text",
            "a file in UTF-8",
            f"{name}, where byte {error.start} is not (save it as UTF-8)",
        ) from None
    except OSError as error:
        raise check.fail(
            "--text", "a file that can be read", f"{name} ({error.strerror})"
        ) from None
    texts = list(dict.fromkeys(line.strip() for line in content.splitlines() if line.strip()))
    if len(texts) < FEWEST:
        raise check.fail(
            "--text",
            f"one text on each line, at least {FEWEST} different ones",
            f"{len(texts) or 'none'} in {name}",
        )
    return texts


def choose_length(
    model: Encoder, texts: Sequence[str], given: argparse.Namespace
) -> tuple[int, int]:
    """How many tokens of each text are used, and how many texts have as many.

    Unless it was given, it is the length with which the most tokens are used.
    """
    count = (lambda text: len(model.tokens(text))) if given.special else model.leading_words
    counts, most = [count(text) for text in texts[: BOUND * given.most]], int(given.most)

    def used(length: int) -> int:
        return min(most, sum(count >= length for count in counts))

    possible = [length for length in range(2, LONGEST + 1) if used(length) >= FEWEST]
    best = max(possible, key=lambda length: length * used(length), default=0)
    if given.length is None:
        if not best:
            raise check.fail(
                "--text",
                f"at least {FEWEST} lines of 2 words or more",
                f"{used(2)} in {given.text}",
            )
        return best, used(best)
    length = check.count("length", given.length, 2)
    if used(length) < FEWEST:
        hint = f"try --length {best}" if best else "the texts are too short"
        raise check.fail(
            "length",
            f"a number of tokens that at least {FEWEST} lines have",
            f"{length}: {used(length)} of {len(texts)} lines have {length} tokens; {hint}",
        )
    return length, used(length)


def draw(found: Any, path: Path) -> Path:
    """The four panels, as SVG."""
    from matplotlib.figure import Figure

    from attnbook import figures

    with figures.style():
        canvas = Figure(figsize=(11.0, 3.4), layout="constrained")
        found.draw(canvas.subplots(1, 4))
        canvas.savefig(path)
    return path

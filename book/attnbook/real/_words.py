"""WordPiece: how BERT and its kin cut text into tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

MARKED = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
LONGEST = 100  # letters of a word that is looked up
# blocks of Chinese, Japanese and Korean ideographs, each a word of its own
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def words(text: str, lower: bool) -> Iterator[str]:
    """Words and punctuation marks, cleaned."""
    word = ""
    if lower:
        text = unicodedata.normalize("NFD", "".join(spaced(text))).lower()
    else:
        text = "".join(spaced(text))
    for letter in text:
        if lower and unicodedata.category(letter) == "Mn":
            continue
        alone = punctuation(letter) or ideograph(letter)
        if word and (alone or letter.isspace()):
            yield word
            word = ""
        if alone:
            yield letter
        elif not letter.isspace():
            word += letter
    if word:
        yield word


def spaced(text: str) -> Iterator[str]:
    """Letters without those that control, and plain spaces for all that is space."""
    for letter in text:
        kind = unicodedata.category(letter)
        if letter in "\t\n\r" or kind == "Zs":
            yield " "
        elif letter not in "\0\ufffd" and kind not in ("Cc", "Cf", "Cn", "Co"):
            yield f" {letter} " if ideograph(letter) else letter


def punctuation(letter: str) -> bool:
    """Whether it stands alone: marks, and all of ASCII that is no letter, digit or space."""
    code = ord(letter)
    plain = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return plain or unicodedata.category(letter).startswith("P")


def ideograph(letter: str) -> bool:
    """Whether a letter is a word."""
    return any(low <= ord(letter) <= high for low, high in IDEOGRAPHS)


def pieces(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """The longest pieces of a word, from its start; all or nothing."""
    if len(word) > LONGEST:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start:
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
            end -= 1
        else:
            return ["[UNK]"]
        found.append(piece)
        start = end
    return found


def tokens(text: str, vocabulary: Mapping[str, int], *, lower: bool = True) -> list[str]:
    """A text's tokens, without those that stand for its start and end.

    A special token that is written out in the text, such as ``[MASK]``, is that token, as in the
    reference implementation.
    """
    found: list[str] = []
    for part in MARKED.split(text):
        if MARKED.fullmatch(part) and part in vocabulary:
            found.append(part)
        else:
            found += [piece for word in words(part, lower) for piece in pieces(word, vocabulary)]
    return found

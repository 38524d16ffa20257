"""Words from outside as HTML: a little Markdown, all else as text; formulas wait for MathJax."""

from __future__ import annotations

import re
from html import escape

OPEN = re.compile(r"\\\\|\\\$|`+|\$\$|\$|\\\[|\\\(|\\begin\{(\w{1,20}\*?)\}")
CLOSE = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
SHOWN = ("equation", "align", "gather", "multline", "eqnarray", "alignat", "flalign")
BULLET = re.compile(r"( {0,12})(?:[-*+]|(\d{1,4})[.)])[ \t]+(.*)")
FENCE = re.compile(r" {0,3}(```+|~~~+)[^`]*")
HELD = re.compile("(?:<p>)?\ue000(\\d+)\ue002(?:</p>)?|\ue000(\\d+)\ue001")  # blocks, inline
DEEP = 5  # lists in lists
EDGE = r"(?<=[^\s*])"


class Text:
    """One text: formulas and code are set aside first, so that Markdown does not touch them."""

    def __init__(self, text: str) -> None:
        self.held: list[str] = []
        lines = re.sub("[\ue000-\ue002]", "\ufffd", text).split("\n")
        kept: list[str] = []
        rest: list[str] = []
        mark = ""
        for line in lines:
            found = FENCE.fullmatch(line)
            if mark and line.strip().startswith(mark) and not line.strip().strip(mark[0]):
                kept.append(self.code(rest))
                mark, rest = "", []
            elif mark:
                rest.append(line)
            elif found:
                kept.append(self.aside("\n".join(rest)))
                mark, rest = found[1], []
            else:
                rest.append(line)
        kept.append(self.code(rest) if mark else self.aside("\n".join(rest)))
        self.lines = "\n".join(kept).split("\n")

    def hold(self, html: str) -> str:
        """A sign that stands for finished HTML."""
        self.held.append(html)
        return f"\ue000{len(self.held) - 1}\ue001"

    def code(self, lines: list[str]) -> str:
        """A sign, alone in its paragraph, for lines of code."""
        told = escape("\n".join(lines))
        return "\n" + self.hold(f"<pre><code>{told}</code></pre>")[:-1] + "\ue002\n"

    def aside(self, text: str) -> str:
        """The text with its formulas and code set aside; each end is looked for at most once."""
        out: list[str] = []
        at, missing = 0, set[str]()
        while found := OPEN.search(text, at):
            sign = found[0]
            out.append(text[at : found.start()])
            at = found.end()
            if sign == r"\$":
                out.append("$")
                continue
            if sign == r"\\":
                out.append(sign)
                continue
            end = self.end(text, at, found, missing)
            if end is None:
                out.append(sign)
                continue
            inner, at = text[at : end[0]], end[1]
            if sign[0] == "`":
                out.append(self.hold(f"<code>{escape(inner.strip())}</code>"))
            elif found[1]:
                out.append(self.hold(formula(sign + inner + text[end[0] : at], True)))
            else:
                out.append(self.hold(formula(inner, sign in ("$$", r"\["))))
        return "".join([*out, text[at:]])

    def end(
        self, text: str, at: int, found: re.Match[str], missing: set[str]
    ) -> tuple[int, int] | None:
        """Where what was opened ends, and where the text goes on."""
        sign = found[0]
        if sign == "$":
            blank = text.find("\n\n", at)
            stop = len(text) if blank < 0 else blank
            place = text.find("$", at, stop)
            while place > 0 and text[place - 1] == "\\" and text[place - 2] != "\\":
                place = text.find("$", place + 1, stop)
            return (place, place + 1) if place > at else None
        if found[1] and found[1].rstrip("*") not in SHOWN:
            return None
        close = rf"\end{{{found[1]}}}" if found[1] else CLOSE.get(sign, sign)
        if close in missing:
            return None
        place = text.find(close, at)
        if place < 0:
            missing.add(close)
            return None
        return place, place + len(close)

    def html(self) -> str:
        """All of it."""
        return HELD.sub(lambda hit: self.held[int(hit[1] or hit[2])], blocks(self.lines))


def formula(tex: str, shown: bool) -> str:
    """TeX as text between signs that MathJax looks for; without MathJax it is read as it is."""
    left, right = (r"\[", r"\]") if shown else (r"\(", r"\)")
    word = "math shown" if shown else "math"
    return f'<span class="{word}" translate="no">{left}{escape(tex.strip())}{right}</span>'


def blocks(lines: list[str], deep: int = 0) -> str:
    """Paragraphs, headings, lists and quotations."""
    out: list[str] = []
    words: list[str] = []

    def paragraph() -> None:
        if words:
            out.append(f"<p>{inline(' '.join(words))}</p>")
            words.clear()

    at = 0
    while at < len(lines):
        line = lines[at]
        bullet = BULLET.fullmatch(line) if deep < DEEP else None
        if not line.strip():
            paragraph()
        elif bullet:
            paragraph()
            at, html = a_list(lines, at, deep)
            out.append(html)
            continue
        elif re.match(r" {0,3}#{1,6} ", line):
            paragraph()
            out.append(f"<p><strong>{inline(line.strip().strip('#').strip())}</strong></p>")
        elif line.lstrip().startswith(">"):
            paragraph()
            out.append(f"<blockquote><p>{inline(line.lstrip()[1:].strip())}</p></blockquote>")
        elif line.lstrip().startswith("|"):  # a table stays as it was typed
            paragraph()
            out.append(f"<pre>{escape(line.strip())}</pre>")
        else:
            words.append(line.strip())
        at += 1
    paragraph()
    return "\n".join(out).replace("</pre>\n<pre>", "\n")


def a_list(lines: list[str], at: int, deep: int) -> tuple[int, str]:
    """A list from this line on, and the line behind it."""
    first = BULLET.fullmatch(lines[at])
    assert first
    base, numbered = len(first[1]), first[2] is not None
    items: list[list[str]] = []
    while at < len(lines):
        line = lines[at]
        found = BULLET.fullmatch(line)
        inner = len(line) - len(line.lstrip()) > base
        if found and not inner:
            if (found[2] is not None) is not numbered or len(found[1]) < base:
                break
            items.append([found[3]])
        elif inner:
            items[-1].append(line[base + 2 :] if found else line.strip())
        elif not line.strip():
            after = lines[at + 1] if at + 1 < len(lines) else ""
            again = BULLET.fullmatch(after)
            if len(after) - len(after.lstrip()) <= base and not again:
                break
            items[-1].append("")
        else:
            items[-1].append(line)  # a lazy line of the same paragraph
        at += 1
    told = "".join(f"<li>{blocks(item, deep + 1)}</li>" for item in items)
    start = f' start="{int(first[2])}"' if numbered else ""
    return at, f"<ol{start}>{told}</ol>" if numbered else f"<ul>{told}</ul>"


def inline(text: str) -> str:
    """Emphasis; addresses and pictures in words, so that nothing is fetched or followed."""
    told = escape(text)
    told = re.sub(r"!\[([^\]\[]{0,200})\]\([^()\s]{1,500}\)", r"[a picture: \1]", told)
    told = re.sub(r"\[([^\]\[]{1,200})\]\(([^()\s]{1,500})\)", r"\1 (\2)", told)
    told = re.sub(rf"\*\*(?=\S)([^*]{{1,800}}){EDGE}\*\*", r"<strong>\1</strong>", told)
    return re.sub(rf"(?<!\w)\*(?=\S)([^*]{{1,800}}){EDGE}\*(?!\w)", r"<em>\1</em>", told)


def render(text: str) -> str:
    """As HTML that holds no address, no attribute and no element of the writer's."""
    return Text(text).html()

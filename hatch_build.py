"""What the package's metadata take from the project's addresses and from README.md.

The two addresses are set in pyproject.toml, under ``[tool.hatch.metadata.hooks.custom]``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
# a picture, and the caption behind it: a paragraph in emphasis
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)\n*(?:\*[^*]+\*\n+)?")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def project_urls(site: str, repository: str) -> dict[str, str]:
    """The links that an index shows beside the project; none without an address."""
    urls = {"Documentation": site} if site else {}
    if repository:
        urls["Repository"] = repository
        urls["Changelog"] = f"{repository.rstrip('/')}/blob/HEAD/CHANGELOG.md"
    return urls


def readme_for_index(text: str, repository: str) -> str:
    """README with links that work outside of the repository.

    Relative links become addresses in the repository. Where its address is not known, they become
    plain text, and pictures are left out with their captions.
    """

    def address(kind: str, target: str) -> str:
        return f"{repository.rstrip('/')}/{kind}/HEAD/{target}"

    def picture(found: re.Match[str]) -> str:
        target = found[1]
        if "://" in target:
            return found[0]
        return found[0].replace(target, address("raw", target)) if repository else ""

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        return f"[{words}]({address('blob', target)})" if repository else words

    def rewrite(prose: str) -> str:
        return LINK.sub(link, PICTURE.sub(picture, prose))

    pieces, end = [], 0
    for fence in FENCE.finditer(text):  # code stays as it is
        pieces += [rewrite(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, rewrite(text[end:])])


class ProjectMetadata(MetadataHookInterface):
    """Fill in ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata in place, as hatchling asks."""
        site, repository = (str(self.config.get(name, "")) for name in ("site", "repository"))
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = project_urls(site, repository)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme_for_index(text, repository),
        }

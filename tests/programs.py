"""The programs that tests start besides Python: where they are, and why one does not start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# The first has no windows: for each page the others also draw a frame of their own, for a second of
# computing time.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FIREFOX = ("firefox-esr", "firefox")
QUIET = (
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what asks is named, not answered
)


def first(variable: str, names: tuple[str, ...]) -> str | None:
    """The path of the program that a variable names, or of the first of these names."""
    named = (os.environ.get(variable), *names)
    return next((path for name in named if name and (path := shutil.which(name))), None)


def chromium() -> str | None:
    """Path of the system's Chromium; without one Playwright takes its own, if it has one."""
    return first("ATTNLAB_CHROMIUM", CHROMIUM)


def firefox() -> str | None:
    """Path of Firefox."""
    return first("ATTNLAB_FIREFOX", FIREFOX)


def why_not(command: list[str], seconds: float = 60.0) -> str:
    """What a command says when it fails, empty where it ends well."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stderr.strip() or done.stdout.strip())[-2000:]
    return "" if done.returncode == 0 else said or f"exit status {done.returncode}"


def why_no_driver() -> str:
    """Why Playwright's driver, a program of its own, does not start."""
    return why_not([sys.executable, "-m", "playwright", "--version"])


def why_no_chromium() -> str:
    """Why no page can be opened in Chromium, as the tests would open it; the driver must start."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
            browser.new_page().close()
            browser.close()
        except Error as error:
            return error.message.strip()[:2000]
    return ""


def why_no_firefox() -> str:
    """Why Firefox does not start."""
    path = firefox()
    return why_not([path, "--headless", "--version"]) if path else "no Firefox on the PATH"


def why_no_sandbox() -> str:
    """Why bubblewrap cannot run a program in namespaces of its own; as root, as another user."""
    path = shutil.which("bwrap")
    if path is None:
        return "no bwrap on the PATH"
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "true"]
    error = why_not(command)
    if not error and os.geteuid() == 0:  # as `attnbook.course` does it
        other = ["setpriv", "--reuid=61184", "--regid=61184", "--clear-groups"]
        error = why_not(["unshare", "--mount", *other, *command])
    return error

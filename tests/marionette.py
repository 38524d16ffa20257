"""A Firefox of one's own, by its Marionette protocol: JSON with its length before it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

QUIET = """user_pref("marionette.port", 0);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.normandy.enabled", false);
"""  # other hosts are not reached: nobody listens where Firefox would ask for them
PATIENCE = 60.0  # seconds until Firefox listens


class Firefox:
    """One window."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._answers = self._socket.makefile("rb")
        self._count = 0
        self._read()  # its greeting
        told = self.call("WebDriver:NewSession")["capabilities"]
        self.version = str(told["browserVersion"])

    def _read(self) -> Any:
        size = b""
        while (digit := self._answers.read(1)) != b":":
            assert digit, "Firefox is gone"
            size += digit
        return json.loads(self._answers.read(int(size)))

    def call(self, name: str, **given: Any) -> Any:
        """One command of WebDriver."""
        self._count += 1
        message = json.dumps([0, self._count, name, given]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def close(self) -> None:
        """Hang up."""
        self._answers.close()
        self._socket.close()

    def go(self, address: str) -> None:
        """Show a page."""
        self.call("WebDriver:Navigate", url=address)

    def run(self, script: str, *given: Any) -> Any:
        """What a function with this body gives on the page."""
        return self.call("WebDriver:ExecuteScript", script=script, args=list(given))["value"]

    def type(self, selector: str, words: str) -> None:
        """As from the keyboard, into the first that fits."""
        found = self.call("WebDriver:FindElement", using="css selector", value=selector)["value"]
        (element,) = found.values()
        self.call("WebDriver:ElementSendKeys", id=element, text=words)

    def wait(self, script: str, seconds: float = 120) -> Any:
        """Until it gives something true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"not within {seconds} s: {script}"
            time.sleep(0.2)
        return found


@contextmanager
def firefox(profile: Path, path: str) -> Iterator[Firefox]:
    """A browser that knows nothing and keeps nothing."""
    (profile / "user.js").write_text(QUIET)
    command = [path, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        listens, end = profile / "MarionetteActivePort", time.monotonic() + PATIENCE
        while not (listens.is_file() and listens.read_text().strip()):
            assert process.poll() is None, f"Firefox ended: {process.returncode}"
            assert time.monotonic() < end, "Firefox does not listen"
            time.sleep(0.1)
        window = Firefox(int(listens.read_text()))
        try:
            yield window
        finally:
            window.close()
    finally:
        process.terminate()
        process.wait(20)

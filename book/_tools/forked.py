"""Kernels that are forked from one process in which their imports are done: 0.1 s, not 1 s.

Of attnlab and of the book nothing is imported before the fork, and names are in no page's scope: a
page that forgets an import fails here as it does for its reader.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.provisioning import LocalProvisioner
from jupyter_client.provisioning.factory import KernelProvisionerFactory

BACKEND = "module://matplotlib_inline.backend_inline"  # what a kernel says before it imports it
MODULES = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "numpy", "scipy.optimize", "scipy.sparse",
    "scipy.linalg", "scipy.special", "matplotlib.pyplot", "matplotlib_inline.backend_inline",
    "anywidget",
)  # fmt: skip
PLACE = "ATTNLAB_FORKS"  # process and socket where a kernel is asked for: "pid:path"


class ForkServerError(Exception):
    """The process that forks kernels has ended; it has said why."""


@contextmanager
def ready() -> Iterator[str]:
    """While this lasts, kernels can be forked by processes that ``use`` the place it gives."""
    if sys.platform != "linux":  # elsewhere a fork may break what BLAS or a font cache has begun
        yield ""
        return
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "kernels")
        # started, not forked: the environment says how strings are hashed, and how BLAS computes
        process = subprocess.Popen(
            [sys.executable, __file__, place], env={**os.environ, "MPLBACKEND": BACKEND}
        )
        reaper = threading.Thread(target=process.wait, daemon=True)  # so that its end can be seen
        reaper.start()
        try:
            yield f"{process.pid}:{place}"
        finally:
            process.terminate()
            reaper.join()


def use(place: str) -> None:
    """From now on this process's kernels are forked; without a place they are started as ever."""
    if not place:
        return
    factory = KernelProvisionerFactory.instance()
    entry = EntryPoint("forked", "forked:Forked", KernelProvisionerFactory.GROUP_NAME)
    factory.provisioners["forked"] = entry
    factory.default_provisioner_name = "forked"
    os.environ[PLACE] = place


def main() -> None:
    """Import, then fork a kernel for everybody who asks."""
    del sys.path[0]  # where this tool stands
    draft, place = f"{sys.argv[1]}.draft", sys.argv[1]
    for name in MODULES:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who builds ends this process
    builder = os.getppid()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(draft)
        door.listen()
        os.rename(draft, place)  # it is there once somebody listens
        door.settimeout(2.0)
        while os.getppid() == builder:  # kernels end when this process does
            try:
                line, _ = door.accept()
            except TimeoutError:
                continue
            with line, line.makefile("rw") as words:
                given = json.loads(words.readline())
                child = os.fork()
                if child == 0:
                    door.close()
                    line.close()
                    _kernel(given)
                words.write(f"{child}\n")


def _kernel(given: dict[str, Any]) -> None:
    """What `python -m ipykernel_launcher` does, in this process."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        os.chdir(given["cwd"])
        os.environ.clear()
        os.environ.update(given["env"])
        sys.argv = given["argv"]
        from ipykernel import kernelapp

        parent = f"--IPKernelApp.parent_handle={os.getppid()}"  # it ends when that one does
        kernelapp.launch_new_instance(argv=[*given["argv"][1:], parent])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class Child:
    """A kernel that is nobody's child here; what `subprocess.Popen` would answer."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it lives."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        """It has ended when this is asked."""
        return 0

    def send_signal(self, number: int) -> None:
        """To it alone."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """At once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """In order."""
        self.send_signal(signal.SIGTERM)


class Forked(LocalProvisioner):
    """Asks for a fork where Jupyter would start a process."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """The command's arguments after ``-m ipykernel_launcher`` go to the fork."""
        argv = cmd[cmd.index("ipykernel_launcher") :]
        given = {"argv": argv, "cwd": str(kwargs.get("cwd") or os.getcwd()),
                 "env": dict(kwargs.get("env") or os.environ)}  # fmt: skip
        pid, _, path = os.environ[PLACE].partition(":")
        place = Path(path)
        while not place.exists():
            if Child(int(pid)).poll() is not None:
                raise ForkServerError("no kernel can be started: see the error above")
            time.sleep(0.02)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(place))
            with line.makefile("rw") as words:
                words.write(json.dumps(given) + "\n")
                words.flush()
                child = Child(int(words.readline()))
        self.process, self.pid, self.pgid = child, child.pid, child.pid  # type: ignore[assignment]
        return self.connection_info


if __name__ == "__main__":
    main()

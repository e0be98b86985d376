"""What the tests share: waiting with a deadline, journals, processes by nonce, scripts."""

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from innkeeper import MCPHost

DEADLINE = 60.0
"""Seconds after which something that should happen has not happened."""

RUNS = int(os.environ.get("INNKEEPER_EXIT_RUNS", "6"))
"""How often a test repeats a program that ends. `INNKEEPER_EXIT_RUNS=500` is the long form."""

LONG = os.environ.get("INNKEEPER_LONG") == "1"
"""Whether 1,000 hosts and 100,000 calls run, not a tenth of them."""


def until(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} was not true in {DEADLINE} s"
        time.sleep(0.01)
    return value


async def until_async(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """Waits until the condition is true while the loop goes on, and returns its value."""
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} was not true in {DEADLINE} s"
        await asyncio.sleep(0.01)
    return value


def received(journal: Path, method: str) -> list[dict[str, Any]]:
    """Returns the messages with this method that the server received, from its journal."""
    if not journal.exists():
        return []
    # The last line may be unfinished.
    lines = journal.read_text().split("\n")[:-1]
    records = [json.loads(line) for line in lines]
    messages = [record["message"] for record in records if record["event"] == "recv"]
    return [message for message in messages if message.get("method") == method]


def nonce() -> str:
    """Returns a word that marks the processes of one test."""
    return f"nonce-{uuid.uuid4().hex}"


def processes(mark: str) -> list[int]:
    """Returns the processes with the mark in their arguments or their environment, without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in text and state not in "ZX":
            found.append(int(entry.name))
    return found


def none_left(mark: str) -> None:
    """Waits until no process has the mark."""
    until(lambda: not processes(mark), f"no process of {mark}")


async def echo(host: MCPHost, text: str = "a") -> str:
    result = await host.call_tool("fx.echo", {"message": text})
    answer: str = result["content"][0]["text"]
    return answer


def marked(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns the configuration with a mark in the environment of its servers."""
    mark = nonce()
    for server in config["servers"].values():
        server["env"] = {"MARK": mark}
    return config, mark


PRELUDE = """
import asyncio, json, os, signal, sys, threading, time
import innkeeper, innkeeper.sync
from innkeeper import MCPHost
SERVER = os.environ["INNKEEPER_FIXTURE_SERVER"]
MARK = sys.argv[1]
def config(*args, **more):
    env = {"MARK": MARK}
    return {"servers": {"fx": {"command": SERVER, "args": [*args], "env": env, **more}}}
"""


# Python 3.12 warns of each fork of a process with threads.
OPTIONS = ("-X", "faulthandler", "-W", "ignore:This process:DeprecationWarning")


class Script:
    """A program in an interpreter of its own. Its servers have a mark."""

    def __init__(self, text: str, *, python: str = sys.executable) -> None:
        self.mark = nonce()
        # The mark is no argument of the interpreter's own process name in `processes`.
        self.process = subprocess.Popen(
            [python, *OPTIONS, "-c", PRELUDE + text, self.mark],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def line(self) -> str:
        """Returns the next line of its output."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=DEADLINE)[1])
        return line.rstrip("\n")

    def finish(self) -> tuple[int, str, str]:
        """Waits for the end; returns the code, the output and the errors."""
        try:
            output, errors = self.process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode, output, errors

    def servers(self) -> list[int]:
        """Returns the processes with the mark, without the interpreter itself."""
        return [pid for pid in processes(self.mark) if pid != self.process.pid]


def run(text: str) -> str:
    """Runs a program that must succeed, say nothing on stderr and leave no process; returns what it
    printed."""
    script = Script(text)
    code, output, errors = script.finish()
    assert code == 0, f"code {code}\n{output}\n{errors}"
    assert errors == ""
    none_left(script.mark)
    return output

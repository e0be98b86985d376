"""The scripted model and the census of processes for agents of other packages."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Script = Callable[..., str]

DEADLINE = 30
"""Seconds after which a test fails."""


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"tool_call": {"name": tool, "arguments": arguments}}


@pytest.fixture
def script(scripted_model: str, tmp_path: Path) -> Iterator[Script]:
    """Returns a function that starts the scripted model: it calls `echo` with each message, and then
    says ``done``, or does so with the tool ``end``. The result is the base URL of OpenAI's API."""
    running: list[subprocess.Popen[str]] = []

    def start(*messages: str, end: str | None = None) -> str:
        parts = [call("echo", message=text) for text in messages]
        parts.append({"text": "done"} if end is None else call(end, answer="done"))
        content = {"steps": [{"answer": {"parts": [part]}} for part in parts]}
        file = tmp_path / f"script-{len(running)}.json"
        file.write_text(json.dumps(content))
        model = subprocess.Popen(
            [scripted_model, str(file), "--requests", f"{file}.requests"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(model)
        assert model.stdout is not None
        return model.stdout.readline().strip() + "/v1"

    yield start
    for model in running:
        model.communicate(timeout=DEADLINE)


@pytest.fixture
def model_reads(tmp_path: Path) -> Callable[[str], None]:
    """Returns a function that waits until a text is in the requests of the scripted models: they
    write a request after they have answered it."""

    def wait(text: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while text not in (requests := read(tmp_path)):
            assert time.monotonic() < deadline, requests
            time.sleep(0.02)

    return wait


def read(directory: Path) -> str:
    return "".join(file.read_text() for file in sorted(directory.glob("*.requests")))


@pytest.fixture
def nonce() -> Iterator[str]:
    """A value for the environment of a server; after the test, no process has it."""
    value = os.environ.get("INNKEEPER_TEST_NONCE") or f"nonce-{uuid.uuid4()}"
    yield value
    deadline = time.monotonic() + DEADLINE
    while left := processes(value):
        assert time.monotonic() < deadline, f"processes left: {left}"
        time.sleep(0.05)


def processes(nonce: str) -> list[str]:
    """Returns the processes with the nonce in their environment, except this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and nonce in (process / "environ").read_text():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except (OSError, UnicodeDecodeError):
            continue
    return found


@pytest.fixture
def server(fixture_server: str, nonce: str) -> Callable[..., dict[str, Any]]:
    """Returns the entry of a server, for a configuration of any package."""

    more = os.environ.get("INNKEEPER_TEST_SWITCHES", "").split()

    def entry(*switches: str) -> dict[str, Any]:
        args = [*switches, *more]
        return {"command": fixture_server, "args": args, "env": {"NONCE": nonce}}

    return entry


@pytest.fixture
def crashing(server: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Returns a configuration whose server exits in its second call, and is started again."""

    def config(*switches: str) -> dict[str, Any]:
        entry = {**server("--crash-after", "2", *switches), "restart": {"onFailure": {"max": 3}}}
        return {"servers": {"fx": entry}}

    return config

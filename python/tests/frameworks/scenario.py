"""What the tests of all frameworks share."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

DEADLINE = 30
"""Seconds after which a test fails."""

Entry = Callable[..., dict[str, Any]]
Script = Callable[..., str]
Reads = Callable[[str], None]

CRASHES = pytest.mark.parametrize("crash", [(), ("--crash-signal",)], ids=["exit", "SIGKILL"])
"""How the server ends in its second call."""

UNAVAILABLE = "server `fx` is unavailable"
"""What the model reads about the call in which the server crashed."""


def pid_of(host: Any) -> int:
    """Returns the process of the server."""
    return int(host.get_status()["fx"]["pid"])


async def until_restarted(host: Any, pid: int) -> None:
    """Waits until another process than the crashed one serves."""
    deadline = time.monotonic() + DEADLINE
    while True:
        status = host.get_status()["fx"]
        # The status may lag behind the failure of a call.
        if status["state"] == "ready" and status["pid"] not in (None, pid):
            return
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.02)

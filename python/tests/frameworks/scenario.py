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


async def until_ready(host: Any) -> None:
    """Waits until the crashed server runs again."""
    deadline = time.monotonic() + DEADLINE
    while host.get_status()["fx"]["state"] != "ready":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)

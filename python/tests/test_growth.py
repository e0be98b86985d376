"""Many hosts, calls and loops: no memory, no thread and no descriptor stays behind.

`INNKEEPER_LONG=1` runs 1,000 hosts and 100,000 calls.
"""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import innkeeper.sync
from innkeeper import MCPHost
from support import LONG, echo, until_async

Servers = Callable[..., dict[str, Any]]


def _resources() -> tuple[int, int, int]:
    """Returns the resident memory in KiB, the threads and the open descriptors."""
    text = Path("/proc/self/statm").read_text().split()
    resident = int(text[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return resident, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


async def test_hosts_leave_nothing_behind(servers: Servers) -> None:
    """Proves: TR2.5"""
    rounds = 250 if LONG else 15

    async def some() -> None:
        hosts = [MCPHost(servers()) for _ in range(4)]
        for host in hosts:
            host.register_callback(lambda request: {})
        await asyncio.gather(*(host.initialize() for host in hosts))
        await asyncio.gather(*(echo(host) for host in hosts))
        await asyncio.gather(*(host.shutdown() for host in hosts))

    for _ in range(5):
        await some()
    gc.collect()
    memory, threads, descriptors = _resources()
    for _ in range(rounds):
        await some()
    gc.collect()
    await until_async(lambda: _resources()[2] <= descriptors, "the descriptors' end")
    assert _resources()[1] <= threads + 8
    assert _resources()[0] - memory < (8_000 if LONG else 4_000)


async def test_calls_leave_nothing_behind(servers: Servers) -> None:
    calls = 100_000 if LONG else 5_000
    async with MCPHost(servers()) as host:
        for _ in range(20):
            await asyncio.gather(*(echo(host) for _ in range(50)))
        gc.collect()
        memory, threads, descriptors = _resources()
        for _ in range(calls // 50):
            await asyncio.gather(*(echo(host) for _ in range(50)))
        gc.collect()
        assert _resources()[1] <= threads + 8
        assert _resources()[2] <= descriptors
        assert _resources()[0] - memory < 3_000


def test_loops_leave_nothing_behind(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers()) as host:
        asking = MCPHost()
        asking._started(host._host)
        for _ in range(10):
            asyncio.run(echo(asking))
        gc.collect()
        _, threads, descriptors = _resources()
        for _ in range(100):
            asyncio.run(echo(asking))
        gc.collect()
        assert _resources()[2] <= descriptors and _resources()[1] <= threads

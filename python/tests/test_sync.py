"""The host without `await`: from scripts, threads, and code that runs inside of a loop."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import innkeeper.sync
from innkeeper import NotInitializedError, TimeoutError
from support import received, until

Servers = Callable[..., dict[str, Any]]


def test_every_method_works_without_await(servers: Servers) -> None:
    host = innkeeper.sync.MCPHost(servers())
    host.initialize()
    assert host.call_tool("fx.echo", {"message": "a"})["content"][0]["text"] == "a"
    assert host.call_tool("fx.a.b")["content"]
    assert host.get_prompt("fx.greet", {"name": "Ada"})["messages"]
    assert host.get_resource("fx://fx/static")["contents"]
    assert host.get_tools()["fx"]["tools"] and host.get_metrics()["fx"]["request_count"]
    assert host.reload({"servers": servers()["servers"]})["added"] == []
    host.restart_server("fx")
    host.stop_server("fx")
    host.shutdown()
    host.shutdown()
    with pytest.raises(NotInitializedError):
        host.call_tool("fx.echo", {"message": "a"})


async def test_it_works_on_the_thread_of_a_running_loop(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers()) as host:
        assert host.call_tool("fx.echo", {"message": "a"})["content"][0]["text"] == "a"


def test_other_threads_go_on_while_one_waits(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers("--slow", "300")) as host:
        call = threading.Thread(target=host.call_tool, args=("fx.echo", {"message": "a"}))
        call.start()
        count = 0
        while call.is_alive():
            count += 1
            time.sleep(0.001)
        assert count > 20


def test_a_timeout_is_an_exception_and_the_server_knows(servers: Servers, tmp_path: Path) -> None:
    """Proves: TR4.4"""
    journal = tmp_path / "journal"
    with innkeeper.sync.MCPHost(servers("--hang-calls", "--journal", str(journal))) as host:
        with pytest.raises(TimeoutError):
            host.call_tool("fx.echo", {"message": "a"}, timeout=0.1)
        until(lambda: received(journal, "notifications/cancelled"))


def test_events_are_an_iterator_from_the_call_on(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers()) as host:
        events = host.events()
        host.call_tool("fx.echo", {"message": "a"})
        assert next(events).kind == "call_finished"
    assert "stopped" in [event.kind for event in events]


def test_a_host_closes_while_other_threads_call(servers: Servers) -> None:
    host = innkeeper.sync.MCPHost(servers("--slow", "20"))
    host.initialize()
    ends: list[str] = []

    def work() -> None:
        try:
            while True:
                host.call_tool("fx.echo", {"message": "a"})
        except innkeeper.MCPHostError as error:
            ends.append(error.error_type)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: host.get_metrics()["fx"]["request_count"] > 8)
    host.shutdown()
    for thread in threads:
        thread.join(10)
    assert len(ends) == 4 and set(ends) <= {"server-unavailable", "not-initialized"}


def test_both_hosts_live_side_by_side(servers: Servers) -> None:
    async def main() -> str:
        async with innkeeper.MCPHost(servers()) as host:
            result = await host.call_tool("fx.echo", {"message": "b"})
            text: str = result["content"][0]["text"]
            return text

    with innkeeper.sync.MCPHost(servers()) as host:
        assert asyncio.run(main()) == "b"
        assert host.call_tool("fx.echo", {"message": "a"})["content"]

"""The official SDK's client and FastMCP's over a running host."""

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from innkeeper import MCPHost, RoutingError

mcp = pytest.importorskip("mcp")
if not hasattr(mcp, "Client"):
    pytest.skip("needs mcp 2", allow_module_level=True)

Servers = Callable[..., dict[str, Any]]

DEADLINE = 30
"""Seconds after which a test fails."""


def text(result: Any) -> str:
    return str(result.content[0].text)


async def until(condition: Callable[[], Any]) -> None:
    """Polls until a condition holds."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_client_calls_a_tool_of_a_running_host(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        pid = host.get_status()["fx"]["pid"]
        async with mcp.Client(host.transport("fx")) as client:
            tools = await client.list_tools()
            assert "echo" in [tool.name for tool in tools.tools]
            result = await client.call_tool("echo", {"message": "hello"})
            assert "hello" in text(result)
        assert host.get_status()["fx"]["pid"] == pid
        assert host.get_metrics()["fx"]["request_count"] == 1


async def test_without_a_name_a_client_sees_all_servers_with_their_names(servers: Servers) -> None:
    config = {"servers": {**servers(name="a")["servers"], **servers(name="b")["servers"]}}
    async with MCPHost(config) as host:
        async with mcp.Client(host.transport()) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"a.echo", "b.echo"} <= set(names)
            assert "ok" in text(await client.call_tool("b.echo", {"message": "ok"}))
        metrics = host.get_metrics()
        assert (metrics["a"]["request_count"], metrics["b"]["request_count"]) == (0, 1)


async def test_flat_names_have_no_server_in_front(servers: Servers) -> None:
    async with (
        MCPHost(servers()) as host,
        mcp.Client(host.transport(names="flat")) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "echo" in names


async def test_a_transport_of_an_unknown_server_is_a_routing_error(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        with pytest.raises(RoutingError):
            async with host.transport("nope"):
                pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_that_crashes_in_a_call_fails_that_call_only(
    servers: Servers, mode: str
) -> None:
    config = servers("--crash-after", "2", restart={"onFailure": {"max": 3}})
    async with MCPHost(config) as host, mcp.Client(host.transport("fx"), mode=mode) as client:
        first = host.get_status()["fx"]["pid"]
        assert "1" in text(await client.call_tool("echo", {"message": "1"}))
        with pytest.raises(mcp.MCPError) as raised:
            await client.call_tool("echo", {"message": "2"})
        assert "fx" in str(raised.value)
        # The status may lag behind the failure of the call.
        await until(lambda: host.get_status()["fx"]["pid"] not in (None, first))
        await until(lambda: host.get_status()["fx"]["state"] == "ready")
        assert "3" in text(await client.call_tool("echo", {"message": "3"}))


async def test_two_clients_at_once_get_their_own_results(servers: Servers) -> None:
    async def use(client: Any, name: str) -> None:
        calls = [client.call_tool("echo", {"message": f"{name}{n}"}) for n in range(20)]
        results = await asyncio.gather(*calls)
        assert [f"{name}{n}" in text(result) for n, result in enumerate(results)] == [True] * 20

    async with (
        MCPHost(servers()) as host,
        mcp.Client(host.transport("fx")) as first,
        mcp.Client(host.transport("fx")) as second,
    ):
        await asyncio.gather(use(first, "a"), use(second, "b"))


async def test_a_cancelled_call_is_cancelled_at_the_server(
    servers: Servers, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    config = servers("--journal", str(journal), "--slow", "60000")
    async with MCPHost(config) as host, mcp.Client(host.transport("fx")) as client:
        call = asyncio.create_task(client.call_tool("echo", {"message": "x"}))
        await until(lambda: "tools/call" in journal.read_text())
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: "notifications/cancelled" in journal.read_text())


async def test_closing_a_transport_cancels_its_calls_at_the_server(
    servers: Servers, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    config = servers("--journal", str(journal), "--slow", "60000")
    async with MCPHost(config) as host:
        transport = host.transport("fx")
        _, write = await transport.__aenter__()
        for message in handshake_and_call():
            await write.send(message)
        await until(lambda: "tools/call" in journal.read_text())
        started = time.monotonic()
        await transport.__aexit__(None, None, None)
        assert time.monotonic() - started < 2
        await until(lambda: "notifications/cancelled" in journal.read_text())


def handshake_and_call() -> list[Any]:
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    call = {"name": "echo", "arguments": {"message": "x"}}
    return [
        SessionMessage(message)
        for message in (
            types.JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=params),
            types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"),
            types.JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call", params=call),
        )
    ]


async def test_a_transport_is_opened_in_one_task_and_closed_in_another(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        transport = host.transport("fx")
        await asyncio.create_task(transport.__aenter__())
        await asyncio.create_task(transport.__aexit__(None, None, None))
        async with mcp.Client(transport) as client:
            assert (await client.list_tools()).tools


async def test_an_open_transport_is_not_opened_a_second_time(servers: Servers) -> None:
    async with MCPHost(servers()) as host, host.transport("fx") as streams:
        assert len(streams) == 2
        transport = host.transport("fx")
        async with transport:
            with pytest.raises(RuntimeError, match="the transport is open"):
                await transport.__aenter__()


async def test_a_closed_transport_ends_the_streams(servers: Servers) -> None:
    import anyio

    async with MCPHost(servers()) as host:
        transport = host.transport("fx")
        read, write = await transport.__aenter__()
        reading = asyncio.create_task(read.receive())
        await asyncio.sleep(0)
        await transport.__aexit__(None, None, None)
        with pytest.raises(anyio.EndOfStream):
            await reading
        with pytest.raises(anyio.BrokenResourceError):
            await write.send(handshake_and_call()[0])
        await write.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await write.send(handshake_and_call()[0])


async def test_a_host_that_shuts_down_fails_the_calls_of_an_open_client(servers: Servers) -> None:
    host = MCPHost(servers())
    await host.initialize()
    async with mcp.Client(host.transport("fx")) as client:
        await host.shutdown()
        with pytest.raises(mcp.MCPError):
            await client.call_tool("echo", {"message": "x"})


async def test_a_transport_works_on_a_second_loop(servers: Servers) -> None:
    async def call() -> str:
        async with mcp.Client(host.transport("fx")) as client:
            return text(await client.call_tool("echo", {"message": "thread"}))

    async with MCPHost(servers()) as host:
        assert "thread" in await asyncio.to_thread(lambda: asyncio.run(call()))


async def test_opened_and_closed_transports_leave_no_descriptor_and_no_task(
    servers: Servers,
) -> None:
    async with MCPHost(servers()) as host:

        async def use() -> None:
            async with mcp.Client(host.transport("fx")) as client:
                await client.call_tool("echo", {"message": "x"})

        await use()
        gc.collect()
        descriptors, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
        threads = len(os.listdir("/proc/self/task"))
        for _ in range(30):
            await use()
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= descriptors
        assert len(asyncio.all_tasks()) == tasks
        assert len(os.listdir("/proc/self/task")) <= threads


async def test_the_largest_result_does_not_stall_the_loop(servers: Servers) -> None:
    # The host refuses responses of more than 16 MiB.
    size = 16_000_000
    lags: list[float] = []

    async def measure() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - started)

    async with MCPHost(servers()) as host, mcp.Client(host.transport("fx")) as client:
        await client.list_tools()
        measuring = asyncio.create_task(measure())
        started = time.perf_counter()
        result = await client.call_tool("big", {"bytes": size})
        elapsed = time.perf_counter() - started
        measuring.cancel()
        assert len(text(result)) >= size
        print(f"{elapsed:.2f} s, lag {max(lags) * 1000:.0f} ms")
        assert max(lags) < 0.5


async def test_fastmcp_takes_the_host_as_a_transport(servers: Servers) -> None:
    fastmcp = pytest.importorskip("fastmcp")
    async with MCPHost(servers()) as host:
        transport = host.fastmcp_transport("fx")
        async with fastmcp.Client(transport) as first, fastmcp.Client(transport) as second:
            results = await asyncio.gather(
                first.call_tool("echo", {"message": "1"}),
                second.call_tool("echo", {"message": "2"}),
            )
            assert ["1" in text(results[0]), "2" in text(results[1])] == [True, True]


async def test_progress_of_a_call_reaches_the_client(servers: Servers) -> None:
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    config = servers("--progress", "3", "--progress-delay", "20")
    async with MCPHost(config) as host, mcp.Client(host.transport("fx")) as client:
        await client.call_tool("echo", {"message": "x"}, progress_callback=on_progress)
        await until(lambda: len(seen) == 3)


async def test_a_question_about_a_call_reaches_the_client_that_calls(servers: Servers) -> None:
    import mcp_types as types

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return types.ElicitResult(action="decline")

    asked: list[str] = []
    host = MCPHost(servers("--ask-elicit", "--era", "modern"))
    # Servers ask only hosts that can answer.
    host.register_callback(lambda request: {"action": "cancel"})
    async with host, mcp.Client(host.transport("fx"), elicitation_callback=answer) as client:
        await client.call_tool("echo", {"message": "x"})
        assert len(asked) == 1


async def test_a_changed_list_reaches_the_client(servers: Servers) -> None:
    changed: list[Any] = []

    async def on_message(message: Any) -> None:
        changed.append(message)

    async with (
        MCPHost(servers("--list-changed")) as host,
        mcp.Client(host.transport("fx"), mode="legacy", message_handler=on_message) as client,
    ):
        await client.call_tool("grow", {"what": "tools"})
        await until(lambda: "list_changed" in repr(changed))


def test_a_program_that_leaves_an_open_transport_ends_at_once(fixture_server: str) -> None:
    program = f"""
import asyncio, mcp, innkeeper
config = {{"servers": {{"fx": {{"command": {fixture_server!r}, "args": ["--slow", "60000"]}}}}}}
async def main():
    host = innkeeper.MCPHost(config)
    await host.initialize()
    read, write = await host.transport("fx").__aenter__()
    client = mcp.ClientSession(read, write)
    await client.__aenter__()
    await client.initialize()
    for n in range(20):
        asyncio.ensure_future(client.call_tool("echo", {{"message": "x"}}))
    await asyncio.sleep(0.05)
    print("leaving", flush=True)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
import os, sys
sys.stderr = open(os.devnull, "w")  # asyncio tells of the tasks that the program left
"""
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE
    )
    assert (ended.returncode, ended.stdout) == (0, "leaving\n"), ended.stderr
    assert time.monotonic() - started < 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_after_a_fork_leaves_the_parents_transport_alone(fixture_server: str) -> None:
    program = f"""
import asyncio, mcp, innkeeper, os
config = {{"servers": {{"fx": {{"command": {fixture_server!r}}}}}}}
host = innkeeper.MCPHost(config)
loop = asyncio.new_event_loop()
loop.run_until_complete(host.initialize())
transport = host.transport("fx")
read, write = loop.run_until_complete(transport.__aenter__())
pid = os.fork()
if pid == 0:
    async def child():
        try:
            await read.receive()
        except innkeeper.MCPHostError as error:
            print(error.__class__.__name__, flush=True)
        await transport.__aexit__(None, None, None)
    asyncio.run(child())
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
async def parent():
    await transport.__aexit__(None, None, None)
    async with mcp.Client(host.transport("fx")) as client:
        print((await client.call_tool("echo", {{"message": "alive"}})).content[0].text)
    await host.shutdown()
loop.run_until_complete(parent())
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        0,
        "NotInitializedError\n7\nalive\n",
        "",
    )

"""FastMCP's client, with its own launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, UNAVAILABLE, Entry, pid_of, until_restarted

fastmcp = pytest.importorskip("fastmcp")

from fastmcp.client.transports import StdioTransport


async def run(transport: Any, *messages: str) -> str:
    async with fastmcp.Client(transport) as client:
        results = [await client.call_tool("echo", {"message": message}) for message in messages]
        return str(results[-1].content[0].text)


async def test_a_client_uses_the_frameworks_own_launcher(server: Entry) -> None:
    assert await run(StdioTransport(**server(), keep_alive=False), "hello") == "hello"


async def test_the_same_client_uses_the_host(server: Entry) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        assert await run(host.fastmcp_transport("fx"), "hello") == "hello"
        assert host.get_metrics()["fx"]["request_count"] == 1


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        with pytest.raises(Exception, match=UNAVAILABLE):
            await run(host.fastmcp_transport("fx"), "1", "2")
        await until_restarted(host, pid)
        assert await run(host.fastmcp_transport("fx"), "third") == "third"

"""Version 1 of the official SDK over a running host."""

from collections.abc import Callable
from typing import Any

import pytest
from innkeeper import MCPHost

mcp = pytest.importorskip("mcp")
if hasattr(mcp, "Client"):
    pytest.skip("needs mcp 1", allow_module_level=True)

Servers = Callable[..., dict[str, Any]]


async def test_a_session_of_version_1_calls_a_tool_of_a_running_host(servers: Servers) -> None:
    async with (
        MCPHost(servers()) as host,
        host.transport("fx") as (read, write),
        mcp.ClientSession(read, write) as session,
    ):
        await session.initialize()
        assert "echo" in [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("echo", {"message": "hello"})
        assert result.content[0].text == "hello"
        with pytest.raises(mcp.McpError, match="unknown tool"):
            await session.call_tool("nope", {})

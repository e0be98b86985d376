"""An agent of Pydantic AI, with FastMCP's launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, UNAVAILABLE, Entry, pid_of, until_restarted

pydantic_ai = pytest.importorskip("pydantic_ai")

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


async def run(transport: Any, *messages: str) -> Any:
    """Runs an agent whose model calls `echo` with each message."""
    left = list(messages)

    def answer(history: Any, info: Any) -> ModelResponse:
        if left:
            return ModelResponse([ToolCallPart("echo", {"message": left.pop(0)})])
        return ModelResponse([TextPart("done")])

    agent = Agent(FunctionModel(answer), toolsets=[MCPToolset(transport)])
    async with agent:
        return await agent.run("go")


def check(result: Any, message: str) -> None:
    assert result.output == "done"
    assert message in str(result.all_messages())


async def test_an_agent_uses_the_frameworks_own_launcher(server: Entry) -> None:
    check(await run(StdioTransport(**server()), "hello"), "'hello'")


async def test_the_same_agent_uses_the_host(server: Entry) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        check(await run(host.fastmcp_transport("fx"), "hello"), "'hello'")
        assert host.get_metrics()["fx"]["request_count"] == 1


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        check(await run(host.fastmcp_transport("fx"), "1", "2"), UNAVAILABLE)
        await until_restarted(host, pid)
        check(await run(host.fastmcp_transport("fx"), "3"), "'3'")

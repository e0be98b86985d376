"""A ReAct program of DSPy, with the SDK's launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, UNAVAILABLE, Entry, pid_of, until_restarted

dspy = pytest.importorskip("dspy")

import mcp
from dspy.utils import DummyLM
from mcp.client.stdio import StdioServerParameters, stdio_client


async def run(transport: Any, *messages: str) -> Any:
    steps = [
        {
            "next_thought": "call",
            "next_tool_name": "echo",
            "next_tool_args": f'{{"message": "{message}"}}',
        }
        for message in messages
    ]
    finish = {"next_thought": "end", "next_tool_name": "finish", "next_tool_args": "{}"}
    model = DummyLM([*steps, finish, {"reasoning": "read", "answer": "done"}])
    async with mcp.Client(transport) as client:
        tools = (await client.list_tools()).tools
        echo = next(tool for tool in tools if tool.name == "echo")
        program = dspy.ReAct("question -> answer", [dspy.Tool.from_mcp_tool(client, echo)])
        with dspy.context(lm=model):
            return await program.acall(question="go")


def check(result: Any, message: str) -> None:
    assert result.answer == "done"
    assert message in str(result.trajectory)


async def test_a_program_uses_the_sdks_launcher(server: Entry) -> None:
    check(await run(stdio_client(StdioServerParameters(**server())), "hello"), "hello")


async def test_the_same_program_uses_the_host(server: Entry) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        check(await run(host.transport("fx"), "hello"), "hello")
        assert host.get_metrics()["fx"]["request_count"] == 1


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        check(await run(host.transport("fx"), "1", "2"), UNAVAILABLE)
        await until_restarted(host, pid)
        check(await run(host.transport("fx"), "third"), "third")

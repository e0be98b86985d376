"""An agent of Microsoft's Agent Framework, with its own launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, Entry, Reads, Script, pid_of, until_restarted

framework = pytest.importorskip("agent_framework")
openai = pytest.importorskip("agent_framework_openai")

import mcp
from agent_framework import Agent, MCPStdioTool


async def run(tool: Any, url: str) -> str:
    client = openai.OpenAIChatCompletionClient(model="scripted", api_key="unused", base_url=url)
    async with Agent(client=client, tools=[tool]) as agent:
        return str(await agent.run("go"))


async def run_on_host(host: MCPHost, url: str) -> str:
    async with mcp.Client(host.transport("fx")) as client:
        return await run(MCPStdioTool(name="fx", mcp_client=client), url)


async def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    assert await run(MCPStdioTool(name="fx", **server()), script("hello")) == "done"
    model_reads("hello")


async def test_the_same_agent_uses_the_host(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        assert await run_on_host(host, script("hello")) == "done"
        assert host.get_metrics()["fx"]["request_count"] == 1
    model_reads("hello")


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, script: Script, model_reads: Reads, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        assert await run_on_host(host, script("1", "2")) == "done"
        # The framework tells the model no more, unless it is asked to.
        model_reads("Error: Function failed.")
        await until_restarted(host, pid)
        assert await run_on_host(host, script("third")) == "done"
        model_reads("third")

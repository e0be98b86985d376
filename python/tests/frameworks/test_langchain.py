"""An agent of LangChain, with FastMCP's launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, UNAVAILABLE, Entry, Reads, Script, pid_of, until_restarted

pytest.importorskip("langchain.mcp")
openai = pytest.importorskip("langchain_openai")

from fastmcp.client.transports import StdioTransport
from langchain.agents import create_agent
from langchain.mcp import MCPAdapter


async def run(transport: Any, url: str) -> str:
    model = openai.ChatOpenAI(model="scripted", base_url=url, api_key="unused")
    async with MCPAdapter(transport) as adapter:
        agent = create_agent(model, await adapter.list_tools())
        result = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})
    return str(result["messages"][-1].text)


async def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    assert await run(StdioTransport(**server()), script("hello")) == "done"
    model_reads("hello")


async def test_the_same_agent_uses_the_host(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        assert await run(host.fastmcp_transport("fx"), script("hello")) == "done"
        assert host.get_metrics()["fx"]["request_count"] == 1
    model_reads("hello")


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, script: Script, model_reads: Reads, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        with pytest.raises(Exception, match=UNAVAILABLE):
            await run(host.fastmcp_transport("fx"), script("1", "2"))
        await until_restarted(host, pid)
        assert await run(host.fastmcp_transport("fx"), script("third")) == "done"
        model_reads("third")

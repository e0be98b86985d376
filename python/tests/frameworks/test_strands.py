"""An agent of Strands, with the SDK's launcher and over a host. Both work without ``await``."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from innkeeper import sync
from scenario import CRASHES, UNAVAILABLE, Entry, Reads, Script, pid_of, until_restarted

pytest.importorskip("strands")

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient


def run(transport: Callable[[], Any], url: str) -> str:
    model = OpenAIModel(client_args={"base_url": url, "api_key": "unused"}, model_id="scripted")
    with MCPClient(transport) as client:
        agent = Agent(model=model, tools=client.list_tools_sync(), callback_handler=None)
        return str(agent("go")).strip()


def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    parameters = StdioServerParameters(**server())
    assert run(lambda: stdio_client(parameters), script("hello")) == "done"
    model_reads("hello")


def test_the_same_agent_uses_the_host(server: Entry, script: Script, model_reads: Reads) -> None:
    with sync.MCPHost({"servers": {"fx": server()}}) as host:
        assert run(lambda: host.transport("fx"), script("hello")) == "done"
        assert host.get_metrics()["fx"]["request_count"] == 1
    model_reads("hello")


@CRASHES
def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, script: Script, model_reads: Reads, crash: tuple[str, ...]
) -> None:
    with sync.MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        assert run(lambda: host.transport("fx"), script("1", "2")) == "done"
        model_reads(UNAVAILABLE)
        asyncio.run(until_restarted(host, pid))
        assert run(lambda: host.transport("fx"), script("third")) == "done"
        model_reads("third")

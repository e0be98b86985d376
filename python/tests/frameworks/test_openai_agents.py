"""An agent of the OpenAI Agents SDK, with its own launcher and over a host."""

from typing import Any

import pytest
from innkeeper import MCPHost, RoutingError
from scenario import CRASHES, UNAVAILABLE, Entry, Reads, Script, pid_of, until_restarted

agents = pytest.importorskip("agents.mcp")

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def run(server: Any, url: str) -> str:
    client = AsyncOpenAI(base_url=url, api_key="unused")
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
    agent = Agent(name="test", model=model, mcp_servers=[server])
    async with server:
        return str((await Runner.run(agent, "go")).final_output)


def on_host(host: MCPHost, **options: Any) -> Any:
    from innkeeper.integrations.openai_agents import HostServer

    return HostServer(host, "fx", **options)


def show(context: Any, error: Exception) -> str:
    """Shows the model what failed; the SDK's default tells it nothing."""
    return str(error)


async def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    assert await run(MCPServerStdio(params=server()), script("hello")) == "done"
    model_reads("hello")


async def test_the_same_agent_uses_the_host(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host:
        assert await run(on_host(host), script("hello")) == "done"
        assert host.get_metrics()["fx"]["request_count"] == 1
    model_reads("hello")


@CRASHES
async def test_a_server_that_crashes_is_usable_again(
    crashing: Entry, script: Script, model_reads: Reads, crash: tuple[str, ...]
) -> None:
    async with MCPHost(crashing(*crash)) as host:
        pid = pid_of(host)
        crashing_server = on_host(host, failure_error_function=show)
        assert await run(crashing_server, script("1", "2")) == "done"
        model_reads(UNAVAILABLE)
        await until_restarted(host, pid)
        assert await run(on_host(host), script("third")) == "done"
        model_reads("third")


async def test_prompts_and_resources_have_the_types_of_the_sdk(server: Entry) -> None:
    async with MCPHost({"servers": {"fx": server()}}) as host, on_host(host) as served:
        prompts = await served.list_prompts()
        assert prompts.prompts[0].name == "greet"
        prompt = await served.get_prompt("greet", {"name": "Ann"})
        assert "Ann" in str(prompt.messages)
        resources = (await served.list_resources()).resources
        for resource in resources:
            assert (await served.read_resource(resource.uri)).contents
        assert resources
        await served.list_resource_templates()
        assert host.get_status()["fx"]["state"] == "ready"


async def test_a_server_that_the_host_does_not_have_is_a_routing_error(server: Entry) -> None:
    from innkeeper.integrations.openai_agents import HostServer

    async with MCPHost({"servers": {"fx": server()}}) as host:
        with pytest.raises(RoutingError):
            await HostServer(host, "other").connect()

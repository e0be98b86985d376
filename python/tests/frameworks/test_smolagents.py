"""An agent of smolagents, with its own launcher and with Innkeeper's program."""

from typing import Any

import pytest
from innkeeper import sync
from scenario import CRASHES, UNAVAILABLE, Entry, Reads, Script

pytest.importorskip("smolagents")
pytest.importorskip("mcpadapt")

from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent


def run(parameters: dict[str, Any], url: str) -> str:
    model = OpenAIServerModel(model_id="scripted", api_base=url, api_key="unused")
    with MCPClient(StdioServerParameters(**parameters), structured_output=False) as tools:
        agent = ToolCallingAgent(tools=tools, model=model, max_steps=4, verbosity_level=0)
        return str(agent.run("go"))


def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    url = script("hello", end="final_answer")
    assert run(server(), url) == "done"
    model_reads("hello")


def test_the_same_agent_uses_the_program(
    server: Entry, script: Script, model_reads: Reads, command: str
) -> None:
    host = sync.MCPHost({"servers": {"fx": server()}})
    url = script("hello", end="final_answer")
    assert run(dict(host.stdio_parameters("fx", command=command)), url) == "done"
    model_reads("hello")


@CRASHES
def test_a_server_that_crashes_does_not_end_the_agent(
    crashing: Entry,
    script: Script,
    model_reads: Reads,
    command: str,
    crash: tuple[str, ...],
) -> None:
    host = sync.MCPHost(crashing(*crash))
    url = script("1", "2", end="final_answer")
    assert run(dict(host.stdio_parameters("fx", command=command)), url) == "done"
    model_reads(UNAVAILABLE)

"""An agent of Google's ADK, with its own launcher and with Innkeeper's program."""

from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, UNAVAILABLE, Entry, Reads, Script

pytest.importorskip("google.adk")
pytest.importorskip("litellm")

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai.types import Content, Part
from mcp import StdioServerParameters


async def run(parameters: dict[str, Any], url: str) -> str:
    connection = StdioConnectionParams(
        server_params=StdioServerParameters(**parameters), timeout=30
    )
    tools = McpToolset(connection_params=connection)
    model = LiteLlm(model="openai/scripted", api_base=url, api_key="unused")
    runner = InMemoryRunner(LlmAgent(name="test", model=model, tools=[tools]))
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = Content(role="user", parts=[Part(text="go")])
    said = ""
    try:
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message
        ):
            for part in event.content.parts if event.content and event.content.parts else ():
                said = part.text or said
    finally:
        await tools.close()
    return said


async def test_an_agent_uses_the_frameworks_own_launcher(
    server: Entry, script: Script, model_reads: Reads
) -> None:
    assert await run(server(), script("hello")) == "done"
    model_reads("hello")


async def test_the_same_agent_uses_the_program(
    server: Entry, script: Script, model_reads: Reads, command: str
) -> None:
    host = MCPHost({"servers": {"fx": server()}})
    parameters = host.stdio_parameters("fx", command=command)
    assert await run(dict(parameters), script("hello")) == "done"
    model_reads("hello")


@CRASHES
async def test_a_server_that_crashes_does_not_end_the_agent(
    crashing: Entry,
    script: Script,
    model_reads: Reads,
    command: str,
    crash: tuple[str, ...],
) -> None:
    host = MCPHost(crashing(*crash))
    parameters = host.stdio_parameters("fx", command=command)
    assert await run(dict(parameters), script("1", "2")) == "done"
    model_reads(UNAVAILABLE)

"""An agent of LlamaIndex, with its own launcher and with Innkeeper's program.

Its client starts the server again for every call.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from innkeeper import MCPHost
from scenario import CRASHES, Entry

pytest.importorskip("llama_index.tools.mcp")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def run(parameters: Mapping[str, Any], message: str) -> tuple[str, str]:
    """Runs an agent whose model calls `echo`; returns its answer and what the model read."""
    read: list[str] = []

    def respond(messages: Any, **options: Any) -> ChatMessage:
        read.append(str(messages))
        if len(read) > 1:
            return ChatMessage(role="assistant", blocks=[TextBlock(text="done")])
        call = ToolCallBlock(tool_name="echo", tool_kwargs={"message": message}, tool_call_id="1")
        return ChatMessage(role="assistant", blocks=[call])

    client = BasicMCPClient(parameters["command"], parameters["args"], parameters["env"])
    tools = await McpToolSpec(client, allowed_tools=["echo"]).to_tool_list_async()
    agent = FunctionAgent(tools=tools, llm=MockFunctionCallingLLM(response_generator=respond))
    return str(await agent.run("go")), read[-1]


async def test_an_agent_uses_the_frameworks_own_launcher(server: Entry) -> None:
    answer, read = await run(server(), "hello")
    assert (answer, "hello" in read) == ("done", True)


async def test_the_same_agent_uses_the_program(server: Entry, command: str) -> None:
    host = MCPHost({"servers": {"fx": server()}})
    answer, read = await run(host.stdio_parameters("fx", command=command), "hello")
    assert (answer, "hello" in read) == ("done", True)


@CRASHES
async def test_a_server_that_crashes_does_not_end_the_agent(
    server: Entry, command: str, crash: tuple[str, ...]
) -> None:
    host = MCPHost({"servers": {"fx": server("--crash-after", "1", *crash)}})
    answer, read = await run(host.stdio_parameters("fx", command=command), "hello")
    # The package gives the model no more than this of any error of a call.
    assert (answer, "unhandled errors in a TaskGroup" in read) == ("done", True)

"""Documents 001 and 004 in Python: tool calls in a stream of text, and a model with the tools in its
prompt."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from innkeeper import Chat, MCPHost, PromptHost, intercept

TOOL = {"name": "fx.echo", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}}
CALL = '{"tool": "fx.echo", "params": {"message": "hello"}}'


async def in_chunks(text: str, size: int) -> AsyncIterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_calls_are_found_in_any_chunks(size: int) -> None:
    """Proves: S48."""
    text = f"I will say it.\n{CALL}\nDone."
    events = [event async for event in intercept(in_chunks(text, size), [TOOL])]
    calls = [event for event in events if event.kind == "call"]
    assert [(call.name, call.arguments) for call in calls] == [("fx.echo", {"message": "hello"})]
    shown = "".join(event.text for event in events if event.kind == "text")
    assert shown.startswith("I will say it.") and shown.endswith("Done.") and "tool" not in shown


async def test_a_cut_call_is_incomplete_and_no_call() -> None:
    events = [event async for event in intercept([CALL[:-8]], [TOOL])]
    assert [event.kind for event in events] == ["incomplete"]


async def test_a_chat_runs_the_calls_of_a_response(servers: Any) -> None:
    async with MCPHost(servers()) as host:
        chat = Chat(host)
        assert "echo" in chat.enhance_system_prompt("Be brief.")
        response = chat.read_response(in_chunks(f"Wait.\n{CALL}\n", 5))
        items = [item async for item in response]
        results = [item for item in items if item.kind == "tool_result"]
        assert [(item.tool, item.success, item.result) for item in results] == [("fx.echo", True, "hello")]
        message = await response.results_as_message()
        assert message is not None and "hello" in message


async def test_an_error_of_the_models_stream_reaches_the_application(servers: Any) -> None:
    async def broken() -> AsyncIterator[str]:
        yield "Hello"
        raise ConnectionError("the model is gone")

    async with MCPHost(servers()) as host:
        with pytest.raises(ConnectionError, match="the model is gone"):
            async for _ in Chat(host).read_response(broken()):
                pass


class Scripted:
    """A provider with prepared responses."""

    supports_tools = False

    def __init__(self, *responses: str) -> None:
        self.responses = list(responses)
        self.prompts: list[Any] = []

    async def create_completion(self, messages: Any, tools: Any, **kwargs: Any) -> dict[str, Any]:
        self.prompts.append(messages)
        return {"response": self.responses.pop(0)}


async def test_a_model_without_native_tools_gets_them_in_its_prompt(servers: Any) -> None:
    """Proves: P36."""
    model = Scripted('{"tool": "fx.echo", "params": {"message": 3}}', CALL, "It said hello.")
    async with MCPHost(servers()) as host:
        prompt_host = PromptHost(model, host, retry_delay_ms=1)
        assert await prompt_host.process_message("Say hello.") == "It said hello."
    assert "echo" in str(model.prompts[0])
    assert len(model.prompts) == 3

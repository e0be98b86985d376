"""Models in Python: clients of providers, an application's own provider, names and prompts of tools."""

import json
from typing import Any

import pytest
from scripted import Model, call, text

from innkeeper import (
    ModelError,
    SystemPromptGenerator,
    format_tool_response,
    get_llm_client,
    mcp_ghost,
)
from innkeeper.tools import adapt_tool_name, adapt_tools, tool_name_mapping

TOOL = {"name": "files.read", "description": "Reads.", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "anthropic", "gemini", "ollama"])
async def test_a_completion_has_the_same_form_from_every_provider(
    provider: str, model: Model
) -> None:
    """Proves: G52."""
    started = model(call("files_read", path="a"), text("Done."))
    base_url = started.origin + ("/v1" if provider.startswith("openai") else "")
    client = get_llm_client(provider, "gpt-4o" if provider == "openai" else "m", "key", base_url=base_url)
    user = {"role": "user", "content": "Read a."}
    first = await client.create_completion([user], [TOOL])
    assert first["response"] == ""
    assert first["finish_reason"] == "tool_calls"
    assert first["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    (called,) = first["tool_calls"]
    assert called["function"] == {"name": "files_read", "arguments": '{"path":"a"}'}
    assistant = {"role": "assistant", "content": "", "tool_calls": [called]}
    result = {"role": "tool", "tool_call_id": called["id"], "content": "A."}
    second = await client.create_completion([user, assistant, result], [TOOL])
    assert (second["response"], second["finish_reason"]) == ("Done.", "stop")


def test_an_unknown_provider_and_a_missing_key_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="nobody"):
        get_llm_client("nobody")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
        get_llm_client("anthropic")


async def test_a_message_with_an_unknown_role_is_refused_by_its_number(model: Model) -> None:
    client = get_llm_client("ollama", "m", base_url=model(text("x")).origin)
    with pytest.raises(ModelError, match="message 2: unknown role `narrator`"):
        await client.create_completion(
            [{"role": "user", "content": "x"}, {"role": "narrator", "content": "x"}]
        )


class Parrot:
    """A provider of an application: calls the first tool, then repeats its result."""

    model = "parrot-1"

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def create_completion(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **kwargs: Any
    ) -> dict[str, Any]:
        self.requests.append({"messages": messages, "tools": tools, **kwargs})
        if messages[-1]["role"] == "tool":
            return {"response": messages[-1]["content"], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
        function = {"name": tools[0]["function"]["name"], "arguments": '{"message": "polly"}'}
        return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}


async def test_a_class_of_the_application_can_be_the_provider(servers: Any) -> None:
    """Proves: G-b1."""
    parrot = Parrot()
    result = await mcp_ghost(servers(), "Repeat.", parrot, None, "Say polly.")
    assert result.success, result
    assert result.final_result == "polly"
    assert result.tool_chain[0].tool_name == "fx.echo"
    names = [tool["function"]["name"] for tool in parrot.requests[0]["tools"]]
    assert "fx_echo" in names
    assert parrot.requests[0]["messages"][0] == {"role": "system", "content": "Repeat."}


async def test_a_provider_that_raises_is_an_error_of_the_run(servers: Any) -> None:
    class Broken:
        async def create_completion(self, messages: Any, tools: Any, **kwargs: Any) -> Any:
            raise ValueError("no credit left")

    result = await mcp_ghost(servers(), "", Broken(), None, "Hello.", max_iterations=1)
    assert result.success is False
    assert "no credit left" in json.dumps(result)


def test_names_of_tools_fit_the_provider_and_lead_back() -> None:
    assert adapt_tool_name("stdio.list_tables", "openai") == "stdio_list_tables"
    mapping = tool_name_mapping(["a.b", "a_b", "ä.b"], "openai")
    assert sorted(mapping.values()) == sorted(["a.b", "a_b", "ä.b"])
    assert all(name.isascii() and "." not in name for name in mapping)
    assert "-" not in adapt_tool_name("1-x", "gemini")[:1]
    with pytest.raises(ValueError, match="nobody"):
        adapt_tool_name("a", "nobody")


def test_tools_have_the_form_of_the_provider() -> None:
    assert adapt_tools([TOOL], "openai")[0]["function"]["parameters"]["type"] == "object"
    assert adapt_tools([TOOL], "anthropic")[0]["input_schema"]["type"] == "object"
    assert adapt_tools([TOOL], "gemini")[0]["name"] == "files_read"


def test_the_system_prompt_has_the_words_and_the_tools_once() -> None:
    prompt = SystemPromptGenerator().generate_prompt(
        [{**TOOL, "description": "Not {{ SYSTEM_PROMPT }}."}], "Be brief."
    )
    assert prompt.startswith("Be brief.")
    assert "Not {{ SYSTEM_PROMPT }}." in prompt
    custom = SystemPromptGenerator("{{TOOLS}}|{{ OTHER }}").generate_prompt([])
    assert custom == "[]|{{ OTHER }}"


def test_results_of_tools_are_formatted_as_text() -> None:
    circular: list[Any] = []
    circular.append(circular)
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert format_tool_response(blocks) == "a\nb"
    assert format_tool_response({"content": blocks, "isError": False}) == "a\nb"
    assert format_tool_response({"ä": 1}) == '{\n  "ä": 1\n}'
    assert [format_tool_response(value) for value in (None, 3, [], {}, "")] == ["None", "3", "[]", "{}", ""]
    assert "..." in format_tool_response(circular)
    assert len(format_tool_response(list(range(10_000)))) > 10_000

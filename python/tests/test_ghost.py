"""Document 002's run: its signature, its result, its events, and keys that stay out of sight."""

import inspect
import json
from typing import Any

import pytest
from scripted import Model, hello

import innkeeper
from innkeeper import MCPGhostConfig, mcp_ghost, mcp_ghost_stream

PROMPT = "Say hello with the tool."


def test_the_signature_is_that_of_the_document() -> None:
    """Proves: N5, G1."""
    parameters = list(inspect.signature(mcp_ghost).parameters.values())
    documented = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [p.name for p in documented] == [
        "server_config",
        "system_prompt",
        "provider",
        "api_key",
        "user_prompt",
        "model",
        "namespace",
        "timeout",
        "max_iterations",
        "enable_backtracking",
        "conversation_memory",
    ]
    defaults = {p.name: p.default for p in documented[5:]}
    assert defaults == {
        "model": None,
        "namespace": "mcp_ghost",
        "timeout": 30.0,
        "max_iterations": 10,
        "enable_backtracking": True,
        "conversation_memory": True,
    }
    assert inspect.iscoroutinefunction(mcp_ghost)


async def test_a_run_returns_the_documented_dict(servers: Any, model: Model) -> None:
    started = hello(model)
    result = await mcp_ghost(
        servers(), "Be brief.", "openai-compatible", "sk-test", PROMPT,
        model="m", base_url=started.origin + "/v1",
    )
    assert result["success"] is True, result
    assert result["final_result"] == "It said hello."
    (chained,) = result["tool_chain"]
    assert chained["tool_name"] == "fx.echo"
    assert chained["arguments"] == {"message": "hello"}
    assert result["execution_metadata"]["token_usage"]["total_tokens"] == 42
    assert [message["role"] for message in result["conversation_history"]][:2] == ["system", "user"]
    assert result.execution_metadata.token_usage.prompt_tokens == 30
    assert result.tool_chain[0].success is True


async def test_one_value_has_all_parameters(servers: Any, model: Model) -> None:
    config = MCPGhostConfig(
        server_config=servers(), system_prompt="", provider="openai-compatible", user_prompt=PROMPT,
        api_key="sk-secret", model="m", base_url=hello(model).origin + "/v1",
    )
    assert "sk-secret" not in repr(config)
    assert (await mcp_ghost(config)).final_result == "It said hello."


async def test_a_run_without_key_says_which_variable_is_missing(
    servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = await mcp_ghost(servers(), "", "openai", None, PROMPT)
    assert result.success is False
    assert "OPENAI_API_KEY" in json.dumps(result)


async def test_a_missing_prompt_is_a_type_error(servers: Any) -> None:
    with pytest.raises(TypeError, match="user_prompt"):
        await mcp_ghost(servers(), "", "openai", "key")


async def test_a_stream_yields_what_happens_and_then_the_result(servers: Any, model: Model) -> None:
    events = [
        event
        async for event in mcp_ghost_stream(
            servers(), "", "openai-compatible", "sk-test", PROMPT,
            model="m", base_url=hello(model).origin + "/v1",
        )
    ]
    kinds = [event.kind for event in events[:-1]]
    assert kinds.index("tool_call_started") < kinds.index("tool_call_finished") < kinds.index("text")
    started = next(event for event in events if event.get("kind") == "tool_call_started")
    assert started.arguments == {"message": "hello"}
    assert isinstance(events[-1], innkeeper.GhostResult)
    assert events[-1].final_result == "It said hello."

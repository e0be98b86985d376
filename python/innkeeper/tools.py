"""Names, schemas, prompts and results of tools, as models and programs need them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from innkeeper import _core

__all__ = [
    "SystemPromptGenerator",
    "adapt_tool_name",
    "adapt_tools",
    "format_tool_response",
    "tool_name_mapping",
]


def tool_name_mapping(names: Iterable[str], provider: str) -> dict[str, str]:
    """Returns the name of each tool at a provider, with the tool's own name: the way back.

    A name that the provider doesn't take gets ``_`` for each forbidden character; a name that would be
    ambiguous or too long gets a suffix, so no two tools share a name.
    """
    return dict(_core.tool_names(list(names), provider))


def adapt_tool_name(name: str, provider: str) -> str:
    """Returns the name of one tool at a provider: ``stdio.list_tables`` is ``stdio_list_tables`` at
    OpenAI. For several tools use ``tool_name_mapping``, whose names are unique."""
    ((adapted, _),) = _core.tool_names([name], provider)
    return adapted


def adapt_tools(tools: Iterable[Mapping[str, Any]], provider: str) -> list[dict[str, Any]]:
    """Returns MCP tools in the form of a provider's function calling: ``openai``, ``anthropic``,
    ``gemini`` or ``ollama``."""
    tools = list(tools)
    names = _core.tool_names([str(tool["name"]) for tool in tools], provider)
    adapted = []
    for tool, (name, _) in zip(tools, names, strict=True):
        schema = tool.get("inputSchema") or {"type": "object", "properties": {}}
        parameters = _core.tool_schema(schema, provider)
        function = {"name": name, "description": str(tool.get("description") or "")}
        if provider == "anthropic":
            adapted.append({**function, "input_schema": parameters})
        elif provider == "gemini":
            adapted.append({**function, "parametersJsonSchema": parameters})
        else:
            adapted.append({"type": "function", "function": {**function, "parameters": parameters}})
    return adapted


def format_tool_response(response: Any) -> str:
    """Returns a tool's result as text for a model: the texts of content blocks, one a line, and any other
    value as JSON. What has no JSON, such as a value that contains itself, is shown as Python shows it."""
    if isinstance(response, Mapping) and isinstance(response.get("content"), list):
        response = response["content"]
    if isinstance(response, str):
        return response
    if isinstance(response, list) and response and all(_is_text(block) for block in response):
        return "\n".join(block["text"] for block in response)
    if isinstance(response, (dict, list)):
        try:
            return json.dumps(response, indent=2, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return repr(response)
    return str(response)


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and "text" in block


class SystemPromptGenerator:
    """Writes the system prompt of a run: the application's words and the tools.

    ``template`` has the places ``{{ SYSTEM_PROMPT }}`` and ``{{ TOOLS }}``; each is replaced once, so
    that nothing in a tool's description is taken for a place.
    """

    TEMPLATE = """{{ SYSTEM_PROMPT }}

You can use these tools, described as JSON:

{{ TOOLS }}

Call a tool with arguments that fit its schema. If a call fails, read the error and try another way."""

    DEFAULT_SYSTEM_PROMPT = "You are an assistant that answers with the help of tools."

    def __init__(self, template: str | None = None) -> None:
        self.template = self.TEMPLATE if template is None else template

    def generate_prompt(
        self,
        tools: Iterable[Mapping[str, Any]] | dict[str, Any] = (),
        system_prompt: str | None = None,
        provider: str | None = None,
    ) -> str:
        """Returns the prompt. ``tools`` are MCP tools, or the dict of a ``tools/list`` result; with
        ``provider``, they have the names and schemas that the provider gets."""
        result: Any = tools
        listed: list[Any] = list(result["tools"] if isinstance(tools, dict) else result)
        if provider is not None:
            listed = adapt_tools(listed, provider)
        values = {
            "SYSTEM_PROMPT": system_prompt or self.DEFAULT_SYSTEM_PROMPT,
            "TOOLS": json.dumps(listed, indent=2, ensure_ascii=False),
        }
        return "".join(_filled(self.template, values))


def _filled(template: str, values: Mapping[str, str]) -> Iterable[str]:
    """Yields a template with its places filled, in one pass."""
    rest = template
    while "{{" in rest:
        before, _, after = rest.partition("{{")
        name, closed, behind = after.partition("}}")
        yield before
        yield values[name.strip()] if closed and name.strip() in values else "{{" + name + closed
        rest = behind
    yield rest

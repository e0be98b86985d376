"""Validation of recorded requests against the documented API of their provider.

The schemas come from the providers' own clients; a member that a schema does not name is an error.
"""

import copy
import json
import re
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Annotated, Any, Optional

import pydantic
from pydantic._internal._generate_schema import GenerateSchema
from typing_extensions import is_typeddict

# Lists in the clients' types are iterables, which pydantic validates only during the iteration.
GenerateSchema._iterable_schema = lambda self, kind: self._list_schema(self._get_first_arg_or_any(kind))
# The clients' warnings about deprecated fields.
warnings.simplefilter("ignore")

STRICT = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)

import anthropic.types.beta.message_create_params as anthropic_beta  # noqa: E402
import anthropic.types.message_create_params as anthropic_params  # noqa: E402
import ollama._types as ollama_types  # noqa: E402
import openai.types.chat.completion_create_params as chat_params  # noqa: E402
import openai.types.responses.response_create_params as responses_params  # noqa: E402
from google.genai import interactions as interaction_params  # noqa: E402
from anthropic.lib._parse._transform import transform_schema  # noqa: E402
from google.genai import types as gemini_types  # noqa: E402
from openai.lib._pydantic import _ensure_strict_json_schema  # noqa: E402

for name, module in list(sys.modules.items()):
    if name.startswith(("openai.types", "anthropic.types", "google.genai._gaos.types")):
        for kind in list(vars(module).values()):
            if is_typeddict(kind):
                kind.__pydantic_config__ = STRICT


class GenerateContent(pydantic.BaseModel):
    """Return the body of generateContent; the client has its fields in one flat configuration."""

    model_config = gemini_types.Content.model_config
    contents: list[gemini_types.Content]
    system_instruction: Optional[gemini_types.Content] = None
    tools: Optional[list[gemini_types.Tool]] = None
    tool_config: Optional[gemini_types.ToolConfig] = None
    safety_settings: Optional[list[gemini_types.SafetySetting]] = None
    generation_config: Optional[gemini_types.GenerationConfig] = None
    cached_content: Optional[str] = None
    labels: Optional[dict[str, str]] = None
    service_tier: Optional[str] = None
    store: Optional[bool] = None


class OllamaFunction(ollama_types.Message.ToolCall.Function):
    # The server sends this field with each call; its client does not know the field.
    index: Optional[int] = None


class OllamaCall(ollama_types.Message.ToolCall):
    id: Optional[str] = None
    function: OllamaFunction


class OllamaMessage(ollama_types.Message):
    tool_calls: Optional[list[OllamaCall]] = None
    # The client's type also takes files; the client sends each image as Base64.
    images: Optional[list[Annotated[str, pydantic.Field(pattern="^[A-Za-z0-9+/]+=?=?$")]]] = None
    tool_call_id: Optional[str] = None


class OllamaRequest(ollama_types.ChatRequest):
    messages: list[OllamaMessage]
    options: Optional[ollama_types.Options] = None


# Tool schemas are absent, because they may have any member.
for model in [
    ollama_types.Options,
    ollama_types.Tool.Function,
    ollama_types.Tool,
    OllamaFunction,
    OllamaCall,
    OllamaMessage,
    OllamaRequest,
]:
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)


def documented(kind: Any, field: str, pattern: str) -> int:
    """Return a limit that the client's documentation of a field states."""
    return int(re.search(pattern, kind.model_fields[field].description)[1])


# The limits that Google's client documents.
GEMINI_TOOLS = documented(gemini_types.Tool, "function_declarations", r"Maximum (\d+) function declarations")
GEMINI_NAME = documented(gemini_types.FunctionDeclaration, "name", r"maximum length of (\d+)")
GEMINI_KEY = documented(gemini_types.FunctionDeclaration, "parameters", r"maximum length of (\d+)")

# The limits that the others state in their references and errors.
OPENAI_TOOLS = 128
NAMES = {"openai": r"[a-zA-Z0-9_-]{1,64}", "gemini": rf"[a-zA-Z_][a-zA-Z0-9_.:-]{{0,{GEMINI_NAME - 1}}}"}
KEYS = {"anthropic": r"[a-zA-Z0-9_.-]{1,64}", "gemini": rf"[a-zA-Z_][a-zA-Z0-9_]{{0,{GEMINI_KEY - 1}}}"}


def subschemas(schema: Any) -> Iterator[dict]:
    """Yield a schema and those inside of it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "dependentSchemas", "$defs") and isinstance(value, dict):
            for inside in value.values():
                yield from subschemas(inside)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            for inside in value:
                yield from subschemas(inside)
        elif key not in ("enum", "const", "default", "examples"):
            yield from subschemas(value)


def has_type(schema: dict, name: str) -> bool:
    kind = schema.get("type")
    return kind == name or isinstance(kind, list) and name in kind


def as_client_writes(schema: Any, provider: str) -> Any:
    """Return a schema in the equivalent form that the client of a provider writes.

    OpenAI's client writes an empty `required`; Anthropic's writes no type beside `enum`, and takes a union
    in place of several types.
    """
    if isinstance(schema, list):
        return [as_client_writes(inside, provider) for inside in schema]
    if not isinstance(schema, dict):
        return schema
    written = {key: as_client_writes(value, provider) for key, value in schema.items()}
    if provider == "openai" and isinstance(written.get("properties"), dict):
        written.setdefault("required", [])
    if provider == "anthropic" and isinstance(written.get("enum"), list):
        written.pop("type", None)
    if provider == "anthropic" and isinstance(written.get("type"), list):
        written["anyOf"] = [{"type": kind} for kind in written.pop("type")]
    return written


def tools_of(name: str, body: dict) -> Iterator[tuple[str, dict, bool]]:
    """Yield the name, the schema and the strictness of each tool of a request."""
    for tool in body.get("tools") or []:
        if name == "gemini":
            for function in tool.get("functionDeclarations") or tool.get("function_declarations") or []:
                schema = function.get("parametersJsonSchema") or function.get("parameters_json_schema") or {}
                yield function["name"], schema, False
            continue
        function = tool.get("function") or tool
        if "name" in function:
            schema = function.get("parameters") or function.get("input_schema") or {}
            yield function["name"], schema, function.get("strict") is True


def tool_problems(name: str, body: dict) -> list[str]:
    """Return the tools that the provider rejects, although its types take any schema."""
    tools = list(tools_of(name, body))
    provider = {"chat": "openai", "responses": "openai", "anthropic-beta": "anthropic", "interactions": "gemini"}
    provider = provider.get(name, name)
    most = {"openai": OPENAI_TOOLS, "gemini": GEMINI_TOOLS}.get(provider)
    wrong = [f"{name} /tools: {len(tools)}, at most {most}"] if most and len(tools) > most else []
    for tool, schema, strict in tools:
        if not re.fullmatch(NAMES.get(provider, NAMES["openai"]), tool):
            wrong.append(f"{name}: a tool named `{tool}`")
        for inside in subschemas(schema):
            for key in inside.get("properties") or {}:
                if not re.fullmatch(KEYS.get(provider, ".*"), key, re.DOTALL):
                    wrong.append(f"{name} `{tool}`: a property named `{key}`")
            if provider in ("openai", "gemini") and has_type(inside, "array") and "items" not in inside:
                wrong.append(f"{name} `{tool}`: an array without items")
            if provider == "gemini" and "" in (inside.get("enum") or []):
                wrong.append(f"{name} `{tool}`: an empty value of `enum`")
        try:
            if provider == "gemini":
                gemini_types.JSONSchema.model_validate(schema)
            if strict:
                written = as_client_writes(schema, provider)
                if provider == "openai":
                    sent = _ensure_strict_json_schema(copy.deepcopy(written), path=(), root=written)
                else:
                    sent = transform_schema(written)
                if sent != written:
                    wrong.append(f"{name} `{tool}`: the client changes the strict schema {json.dumps(schema)}")
        except (pydantic.ValidationError, AssertionError, TypeError, ValueError) as error:
            wrong.append(f"{name} `{tool}`: {error}")
    return wrong


SCHEMAS = {
    "chat": pydantic.TypeAdapter(chat_params.CompletionCreateParamsBase),
    "responses": pydantic.TypeAdapter(responses_params.ResponseCreateParamsBase),
    "anthropic": pydantic.TypeAdapter(anthropic_params.MessageCreateParamsBase),
    "anthropic-beta": pydantic.TypeAdapter(anthropic_beta.MessageCreateParamsBase),
    "gemini": pydantic.TypeAdapter(GenerateContent),
    "interactions": pydantic.TypeAdapter(interaction_params.CreateModelInteractionParam),
    "ollama": pydantic.TypeAdapter(OllamaRequest),
}

# Members of both the streaming and the non-streaming schema, but not of their common base.
STREAM = {"chat", "responses", "anthropic", "anthropic-beta"}

# Required headers.
HEADERS = {"anthropic": ["anthropic-version"], "anthropic-beta": ["anthropic-version"]}


def wire(path: str) -> Optional[str]:
    """Return the API of a path."""
    ends = {
        "/chat/completions": "chat",
        "/responses": "responses",
        "/v1/messages": "anthropic",
        "/interactions": "interactions",
        "/api/chat": "ollama",
        ":generateContent": "gemini",
        ":streamGenerateContent": "gemini",
    }
    return next((name for end, name in ends.items() if path.endswith(end)), None)


def pointer(body: Any, place: tuple, missing: bool = True) -> str:
    """Return the location in the body with a missing key, without the branches of a union."""
    keys, at = [], body
    for number, key in enumerate(place):
        if isinstance(at, dict) and key in at or isinstance(at, list) and isinstance(key, int) and key < len(at):
            keys.append(key)
            at = at[key]
        elif missing and isinstance(at, dict) and number + 1 == len(place):
            keys.append(key)
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys) or "/"


def below(place: str, above: str) -> bool:
    return place != above and place.startswith(above.rstrip("/") + "/")


def told(errors: list[dict], body: Any) -> list[str]:
    """Return each problem once, without the problems of unrelated branches of a union."""
    # A branch is unrelated if it requires another `type` or `role`.
    other = [
        error["loc"][:-1]
        for error in errors
        if error["loc"] and error["loc"][-1] in ("type", "role") and error["type"] in ("literal_error", "missing")
    ]
    within = lambda place, of: place[: len(of)] == of
    outermost = [place for place in other if not any(within(place, of) and place != of for of in other)]
    meant = [
        (pointer(body, error["loc"]), error)
        for error in errors
        if not any(within(error["loc"], place) for place in outermost)
    ]
    # A problem of a branch of another JSON type, if other problems exist for or in the value.
    is_type = lambda error: error["type"].endswith("_type") or error["type"] == "none_required"
    unknown = {pointer(body, place, missing=False) for place in outermost}
    real = [
        (place, error)
        for place, error in meant
        if not (is_type(error) and any(below(one, place) for one in unknown))
        and not (is_type(error) and any(below(one, place) or one == place and not is_type(it) for one, it in meant))
    ]
    if real:
        return list(dict.fromkeys(f"{place}: {error['msg']}" for place, error in real))
    innermost = sorted(one for one in unknown if not any(below(other, one) for other in unknown))
    return [f"{place}: it is of no kind that is known there" for place in innermost] or [f"/: {errors}"]


def problems(record: dict, both: bool = False) -> list[str]:
    """Return the problems of a request with `path`, `headers` (lower-case names) and `body`.

    Keys of the body in `beside` are those of a server with the API of another provider. Gemini
    documents its fields in camel case and also accepts snake case: its own client sends some
    fields in snake case, which `both` allows.
    """
    name = wire(record["path"])
    if name is None:
        return [f"`{record['path']}` is no path of a model"]
    headers = record.get("headers", {})
    if name == "anthropic" and "anthropic-beta" in headers:
        name = "anthropic-beta"
    body = record["body"]
    if not isinstance(body, dict):
        return [f"{name} /: the body is no JSON object"]
    missing = [f"{name}: the header `{key}` is missing" for key in HEADERS.get(name, []) if key not in headers]
    rest = {key: value for key, value in body.items() if key not in record.get("beside", [])}
    stream = rest.pop("stream", None) if name in STREAM else None
    wrong = [] if stream is None or isinstance(stream, bool) else [f"{name} /stream: it is no truth value"]
    try:
        schema = SCHEMAS[name]
        names = {"by_alias": True, "by_name": both} if name == "gemini" else {}
        if name == "interactions" and isinstance(rest.get("model"), str):
            # New models appear more often than new clients.
            rest["model"] = "gemini-flash-latest"
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            schema.validate_json(json.dumps(rest), strict=True, **names)
        # Gemini's client leaves further enumeration values to the server.
        wrong += [f"{name}: {note.message}" for note in noted if "is not a valid" in str(note.message)]
        wrong += tool_problems(name, rest)
    except pydantic.ValidationError as error:
        wrong += [f"{name} {line}" for line in told(error.errors(include_url=False), rest)]
    return missing + wrong


def check(lines: list[str], source: str, both: bool = False) -> list[str]:
    """Return the problems of JSON lines; skips requests that address no model."""
    found = []
    for number, line in enumerate(lines, 1):
        record = json.loads(line)
        if record.get("method", "POST") == "POST":
            found += [f"{source}:{number}: {problem}" for problem in problems(record, both)]
    return found

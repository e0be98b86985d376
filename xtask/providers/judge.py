"""Test the scripted model with the providers' clients, and validate requests with their schemas."""

import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# No bytecode files next to the sources.
sys.dont_write_bytecode = True

import clients  # noqa: E402
import schema  # noqa: E402

END = "Five tools were called, dömäne 🦀."


# Requests with one error that a purely structural schema accepts, with the location of the error.
USER = {"role": "user", "content": "x"}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
THOUGHT = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}
CALL = {"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}
TIFF = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "aGk="}}
TOOL_IMAGE = {
    "role": "tool",
    "tool_call_id": "c",
    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
}
ARRAY = {"type": "object", "properties": {"a": {"type": ["array", "null"]}}}
OPEN = {"type": "object", "properties": {"a": {}}}
BRACKETS = {"type": "object", "properties": {"a": {"anyOf": [{"properties": {"b[]": {}}}]}}}
MINIMUM = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
EMPTY = {"type": "object", "properties": {"a": {"type": "string", "enum": ["a", ""]}}}


def chat_tool(name: str, schema: dict, **other) -> dict:
    return {"type": "function", "function": {"name": name, "parameters": schema, **other}}


def claude_tool(schema: dict, **other) -> dict:
    return {"max_tokens": 5, "messages": [USER], "tools": [{"name": "f", "input_schema": schema, **other}]}


def gemini_tools(*schemas: dict) -> dict:
    functions = [{"name": f"f{at}", "parametersJsonSchema": schema} for at, schema in enumerate(schemas)]
    return GEMINI | {"tools": [{"functionDeclarations": functions}]}


WRONG = [
    ("/v1/chat/completions", {"messages": [USER], "tools": [chat_tool("f", ARRAY)]}, "an array without items"),
    ("/v1/chat/completions", {"messages": [USER], "tools": [chat_tool("f" * 65, {})]}, "a tool named"),
    ("/v1/chat/completions", {"messages": [USER], "tools": [chat_tool("f", OPEN, strict=True)]}, "strict schema"),
    (
        "/v1/chat/completions",
        {"messages": [USER], "tools": [chat_tool(f"f{at}", {}) for at in range(129)]},
        "129, at most 128",
    ),
    ("/v1/messages", claude_tool(BRACKETS), "a property named `b[]`"),
    ("/v1/messages", claude_tool(MINIMUM, strict=True), "strict schema"),
    ("/v1/models/m:generateContent", gemini_tools(EMPTY), "an empty value of `enum`"),
    ("/v1/models/m:generateContent", gemini_tools(BRACKETS), "a property named `b[]`"),
    ("/v1/models/m:generateContent", gemini_tools(*[{}] * 513), "513, at most 512"),
    ("/v1/chat/completions", {"messages": [USER], "max_tokens": "5"}, "/max_tokens"),
    ("/v1/chat/completions", {"messages": [USER, {"role": "tool", "content": "x"}]}, "/messages/1/tool_call_id"),
    ("/v1/chat/completions", {"messages": [{"role": "nobody", "content": "x"}]}, "/messages/0"),
    ("/v1/responses", {"input": [CALL]}, "/input/0/arguments"),
    ("/v1/responses", {"input": [USER, {"type": "nothing", "x": 1}]}, "/input/1"),
    ("/v1/responses", {"input": "x", "stop": ["x"]}, "/stop"),
    ("/v1/messages", {"max_tokens": 5, "messages": [THOUGHT]}, "/messages/0/content/0/signature"),
    ("/v1/messages", {"messages": [USER]}, "/max_tokens"),
    ("/v1/models/m:generateContent", GEMINI | {"generation_config": {}}, "/generation_config"),
    ("/v1/models/m:generateContent", GEMINI | {"generationConfig": {"seed": "1"}}, "/generationConfig/seed"),
    (
        "/v1/models/m:generateContent",
        GEMINI | {"toolConfig": {"functionCallingConfig": {"mode": "SOMETIMES"}}},
        "SOMETIMES",
    ),
    ("/v1beta/interactions", {"input": "x", "generation_config": {"tool_choice": "some"}}, "/generation_config/tool_choice"),
    ("/v1beta/interactions", {"input": [{"type": "thought", "x": 1}]}, "/input/0/x"),
    ("/api/chat", {"messages": [USER], "options": {"temprature": 1}}, "/options/temprature"),
    ("/api/chat", {"messages": [{"role": "user", "content": 1}]}, "/messages/0/content"),
    ("/api/chat", {"messages": [USER | {"images": ["no Base64"]}]}, "/messages/0/images/0"),
    ("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": [TIFF]}]}, "/messages/0/content/0/source/media_type"),
    ("/v1/chat/completions", {"messages": [USER, TOOL_IMAGE]}, "/messages/1/content/0"),
]


def passed_wrongly() -> list[str]:
    found = []
    for path, body, place in WRONG:
        record = {"path": path, "headers": {"anthropic-version": "2026-10-21"}, "body": {"model": "m", **body}}
        if path.endswith(":generateContent"):
            del record["body"]["model"]
        said = schema.problems(record)
        if len(said) != 1 or f"{place}" not in said[0]:
            found.append(f"{path}: a request with an error at `{place}` only: reported {said}")
    del record["headers"]["anthropic-version"]
    record |= {"path": "/v1/messages", "body": {"model": "m", "max_tokens": 5, "messages": [USER]}}
    if len(schema.problems(record)) != 1:
        found.append("/v1/messages: a request without its version passes")
    return found


def drive(program: str, wire: str, streams: bool, folder: Path) -> tuple[str, list[str]]:
    """Run a client against a scripted model; return its result and one line per request."""
    script, requests = folder / "script", folder / f"{wire}-{streams}"
    script.write_text(json.dumps({"steps": clients.steps(), "chunks": 5}))
    command = [program, str(script), "--requests", str(requests)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        origin = server.stdout.readline().strip()
        text = clients.CLIENTS[wire](origin, streams)
        server.stdin.close()
    return text, requests.read_text().splitlines()


def spoiled(record: dict) -> list[tuple[str, dict]]:
    """Return the request with one error, and the expected problem."""
    body = record["body"]
    key = next(key for key in ("messages", "input", "contents") if key in body)

    def changed(name: str, change) -> tuple[str, dict]:
        other = copy.deepcopy(record)
        change(other["body"])
        return name, other

    return [
        changed("/surplus", lambda body: body.update(surplus=1)),
        changed(f"/{key}", lambda body: body.update({key: 7})),
        changed(f"/{key}/1", lambda body: body[key][1].update(surplus=1)),
        changed("/tools/0", lambda body: body["tools"][0].update(surplus=1)),
    ]


def judged_clients(program: str) -> list[str]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for wire in clients.CLIENTS:
            for streams in (False, True):
                how = f"{wire}, {'streamed' if streams else 'whole'}"
                text, lines = drive(program, wire, streams, Path(folder))
                if text != END:
                    found.append(f"{how}: ended with `{text}`")
                if len(lines) != len(clients.steps()):
                    found.append(f"{how}: {len(lines)} requests")
                found += schema.check(lines, how, both=True)
                for place, record in spoiled(json.loads(lines[-1])):
                    said = schema.problems(record)
                    if not any(place in problem for problem in said):
                        found.append(f"{how}: a request with an error at `{place}` was accepted: {said}")
    return found


def main() -> int:
    program, *files = sys.argv[1:]
    found = passed_wrongly()
    print(f"schemas: {len(WRONG)} invalid requests, {len(found)} problems")
    clients_found = judged_clients(program)
    print(f"clients: {len(clients.CLIENTS)} APIs, streamed and not, {len(clients_found)} problems")
    found += clients_found
    for file in files:
        lines = Path(file).read_text().splitlines()
        wrong = schema.check(lines, file)
        if not lines:
            wrong.append(f"{file}: no requests")
        print(f"{file}: {len(lines)} requests, {len(wrong)} problems")
        found += wrong
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Conversations of the providers' own clients with five tool calls each."""

import json
from typing import Any, Callable

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

MODEL = "scripted"
NAMES = ["one", "two", "three", "four", "five"]
PROMPT = "Call the tools."
# Limit of a conversation; a model that never stops calling fails the test.
TURNS = 20


def steps() -> list[dict]:
    """Return four replies with five calls, two of them parallel, then a text."""
    call = lambda at: {"tool_call": {"name": NAMES[at], "arguments": {"path": f"ä{at}", "n": 1.5}}}
    turns = [[0], [1, 2], [3], [4]]
    answers = [[{"reasoning": f"Now {turn[0]}."}, *(call(at) for at in turn)] for turn in turns]
    answers[1].insert(1, {"text": "On the way. "})
    answers.append([{"reasoning": "All done."}, {"text": "Five tools were called, dömäne 🦀."}])
    return [{"answer": {"parts": parts, "usage": [40, 10]}} for parts in answers]


def schema() -> dict:
    properties = {"path": {"type": "string"}, "n": {"type": "number"}}
    return {"type": "object", "properties": properties, "required": ["path"]}


def run(name: str, arguments: Any) -> str:
    """Check the arguments of a call and return the tool result."""
    arguments = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    at = NAMES.index(name)
    assert arguments == {"path": f"ä{at}", "n": 1.5}, (name, arguments)
    return f"{name} has run"


def chat(origin: str, streams: bool) -> str:
    client = openai.OpenAI(base_url=f"{origin}/v1", api_key="key", max_retries=0)
    tools = [{"type": "function", "function": {"name": name, "parameters": schema()}} for name in NAMES]
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(TURNS):
        asked = {"model": MODEL, "messages": messages, "tools": tools}
        if streams:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                completion = stream.get_final_completion()
        else:
            completion = client.chat.completions.create(**asked)
        assert completion.usage.total_tokens == 50, completion
        message = completion.choices[0].message
        if not message.tool_calls:
            return message.content
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in message.tool_calls
        ]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for call in message.tool_calls:
            content = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    raise AssertionError("no end")


def responses(origin: str, streams: bool) -> str:
    client = openai.OpenAI(base_url=f"{origin}/v1", api_key="key", max_retries=0)
    tools = [{"type": "function", "name": name, "parameters": schema(), "strict": False} for name in NAMES]
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(TURNS):
        asked = {"model": MODEL, "input": items, "tools": tools, "store": False}
        if streams:
            with client.responses.stream(**asked) as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(**asked)
        assert response.usage.total_tokens == 50, response
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        # `parsed_arguments` is a field of the client's helper, not of the API.
        items += [item.model_dump(exclude_unset=True, exclude={"parsed_arguments"}) for item in response.output]
        for part in (part for item in items for part in item.get("content") or [] if isinstance(part, dict)):
            part.pop("parsed", None)
        items += [
            {"type": "function_call_output", "call_id": call.call_id, "output": run(call.name, call.arguments)}
            for call in calls
        ]
    raise AssertionError("no end")


def messages(origin: str, streams: bool) -> str:
    client = anthropic.Anthropic(base_url=origin, api_key="key", max_retries=0)
    tools = [{"name": name, "input_schema": schema()} for name in NAMES]
    talk: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(TURNS):
        asked = {"model": MODEL, "max_tokens": 1000, "messages": talk, "tools": tools}
        if streams:
            with client.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(**asked)
        assert (message.usage.input_tokens, message.usage.output_tokens) == (40, 10), message
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        talk.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run(call.name, call.input)} for call in calls
        ]
        talk.append({"role": "user", "content": results})
    raise AssertionError("no end")


def generate_content(origin: str, streams: bool) -> str:
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=origin))
    declarations = [types.FunctionDeclaration(name=name, parameters_json_schema=schema()) for name in NAMES]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declarations)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = [types.Content(role="user", parts=[types.Part(text=PROMPT)])]
    for _ in range(TURNS):
        if streams:
            chunks = list(client.models.generate_content_stream(model=MODEL, contents=contents, config=config))
        else:
            chunks = [client.models.generate_content(model=MODEL, contents=contents, config=config)]
        assert chunks[-1].usage_metadata.total_token_count == 50, chunks[-1]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or [] if part.text != ""]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text for part in parts if part.text and not part.thought)
        contents.append(types.Content(role="model", parts=parts))
        results = [
            types.FunctionResponse(id=call.id, name=call.name, response={"result": run(call.name, call.args)})
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=[types.Part(function_response=it) for it in results]))
    raise AssertionError("no end")


def interactions(origin: str, streams: bool) -> str:
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=origin))
    tools = [{"type": "function", "name": name, "parameters": schema()} for name in NAMES]
    said: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": PROMPT}]}]
    for _ in range(TURNS):
        asked = {"model": MODEL, "input": said, "tools": tools, "store": False}
        answer = client.interactions.create(**asked, stream=streams)
        steps, usage = gathered(answer) if streams else (answer.to_dict()["steps"], answer.usage)
        assert usage.total_tokens == 50, usage
        calls = [step for step in steps if step["type"] == "function_call"]
        if not calls:
            texts = [step["content"] for step in steps if step["type"] == "model_output"]
            return "".join(part["text"] for content in texts for part in content)
        said += steps
        said += [
            {"type": "function_result", "call_id": call["id"], "name": call["name"], "result": run(call["name"], call["arguments"])}
            for call in calls
        ]
    raise AssertionError("no end")


def gathered(events: Any) -> tuple[list[dict], Any]:
    """Assemble the steps of a stream; the client does not assemble them."""
    steps: list[dict] = []
    usage, arguments = None, {}
    for event in events:
        if event.event_type == "step.start":
            steps.append(event.step.to_dict())
            assert event.index == len(steps) - 1
        elif event.event_type == "step.delta":
            step, delta = steps[event.index], event.delta
            if delta.type == "text":
                step.setdefault("content", [{"type": "text", "text": ""}])[0]["text"] += delta.text
            elif delta.type == "thought_summary":
                step.setdefault("summary", [{"type": "text", "text": ""}])[0]["text"] += delta.content.text
            elif delta.type == "thought_signature":
                step["signature"] = delta.signature
            else:
                assert delta.type == "arguments_delta", delta
                arguments[event.index] = arguments.get(event.index, "") + delta.arguments
        elif event.event_type == "interaction.completed":
            usage = event.interaction.usage
    for index, text in arguments.items():
        steps[index]["arguments"] = json.loads(text)
    return steps, usage


def ollama_chat(origin: str, streams: bool) -> str:
    client = ollama.Client(host=origin)
    tools = [{"type": "function", "function": {"name": name, "parameters": schema()}} for name in NAMES]
    talk: list[Any] = [{"role": "user", "content": PROMPT}]
    for _ in range(TURNS):
        answer = client.chat(model=MODEL, messages=talk, tools=tools, stream=streams, options={"num_ctx": 8192})
        lines = list(answer) if streams else [answer]
        assert (lines[-1].prompt_eval_count, lines[-1].eval_count) == (40, 10), lines[-1]
        content = "".join(line.message.content or "" for line in lines)
        thinking = "".join(line.message.thinking or "" for line in lines)
        calls = [call for line in lines for call in line.message.tool_calls or []]
        if not calls:
            return content
        talk.append(ollama.Message(role="assistant", content=content, thinking=thinking, tool_calls=calls))
        for call in calls:
            text = run(call.function.name, call.function.arguments)
            talk.append({"role": "tool", "tool_name": call.function.name, "content": text})
    raise AssertionError("no end")


CLIENTS: dict[str, Callable[[str, bool], str]] = {
    "chat": chat,
    "responses": responses,
    "anthropic": messages,
    "gemini": generate_content,
    "interactions": interactions,
    "ollama": ollama_chat,
}

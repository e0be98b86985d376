"""Answers a prompt with the OpenAI SDK, calls tools with the official Python client, and prints the answer.

Arguments: an `mcp.json` with the server `innkeeper`, then the prompt. Needs OPENAI_API_KEY;
OPENAI_BASE_URL says where the model is. The wire is Chat Completions, streamed.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState


def function(tool):
    description = tool.description or ""
    fields = {"name": tool.name, "description": description, "parameters": tool.input_schema}
    return {"type": "function", "function": fields}


async def call(client, tool_call):
    name, arguments = tool_call.function.name, json.loads(tool_call.function.arguments)
    result = await client.call_tool(name, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return {"role": "tool", "tool_call_id": tool_call.id, "content": text}


async def main(config, prompt):
    with open(config) as file:
        server = json.load(file)["mcpServers"]["innkeeper"]
    async with AsyncOpenAI() as openai, Client(StdioServerParameters(**server)) as client:
        tools = [function(tool) for tool in (await client.list_tools()).tools]
        messages = [{"role": "user", "content": prompt}]
        request = {"model": "gpt-5-mini", "messages": messages, "tools": tools, "stream": True}
        while True:
            state = ChatCompletionStreamState()
            async for chunk in await openai.chat.completions.create(**request):
                state.handle_chunk(chunk)
            message = state.get_final_completion().choices[0].message
            if not message.tool_calls:
                return message.content
            # Only a stream has an index of a tool call; a request doesn't.
            stream_only = {"tool_calls": {"__all__": {"index"}}}
            messages.append(message.model_dump(exclude_none=True, exclude=stream_only))
            for tool_call in message.tool_calls:
                messages.append(await call(client, tool_call))


print(asyncio.run(main(*sys.argv[1:])))

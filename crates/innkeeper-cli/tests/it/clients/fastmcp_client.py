"""Uses a gateway with FastMCP's client, and prints one line of JSON.

Arguments: the era, then a URL, or a program with its arguments.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

seen = {"asked": 0, "sampled": 0, "progressed": False}
changed = asyncio.Event()


async def elicit(*_):
    seen["asked"] += 1
    return ElicitResult(action="decline")


async def sample(*_):
    seen["sampled"] += 1
    return "sampled"


async def progress(*_):
    seen["progressed"] = True


async def on_message(message):
    if "list_changed" in str(message):
        changed.set()


async def main(era, *target):
    to = target[0] if target[0].startswith("http") else StdioTransport(target[0], list(target[1:]))
    handlers = {"elicitation_handler": elicit, "sampling_handler": sample, "message_handler": on_message}
    async with Client(to, mode=era, roots=[], progress_handler=progress, **handlers) as client:
        tools = await client.list_tools()
        seen["tools"] = len(tools)
        echo = await client.call_tool("everything.echo", {"message": "hi"})
        seen["echo"] = echo.content[0].text
        await client.call_tool("everything.trigger-elicitation-request", {}, raise_on_error=False)
        sampled = await client.call_tool("everything.trigger-sampling-request", {"prompt": "p", "maxTokens": 5})
        seen["sample"] = "sampled" in str(sampled.content)
        await client.call_tool("everything.trigger-long-running-operation", {"duration": 1, "steps": 4})
        slow = client.call_tool("everything.trigger-long-running-operation", {"duration": 60, "steps": 2})
        try:
            await asyncio.wait_for(slow, 0.1)
        except TimeoutError:
            seen["aborted"] = True
        uri = (await client.list_resources())[0].uri
        seen["read"] = str((await client.read_resource(uri))[0].uri) == str(uri)
        prompts = await client.list_prompts()
        seen["prompt"] = len((await client.get_prompt(prompts[0].name, {})).messages) > 0
        if era == "legacy":
            await client.call_tool("a.grow", {"what": "tools"})
            await asyncio.wait_for(changed.wait(), 20)
            seen["grown"] = len(await client.list_tools()) - len(tools)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))

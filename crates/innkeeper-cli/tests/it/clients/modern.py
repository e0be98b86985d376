"""Uses a gateway with the official Python client, and prints one line of JSON."""

import asyncio
import json
import sys

from mcp import Client


async def main(url):
    async with Client(url) as client:
        tools = (await client.list_tools()).tools
        echo = await client.call_tool("everything.echo", {"message": "hi"})
        resources = (await client.list_resources()).resources
        contents = (await client.read_resource(resources[0].uri)).contents
        print(json.dumps({
            "revision": str(client.protocol_version),
            "tools": len(tools),
            "echo": echo.content[0].text,
            "read": str(contents[0].uri) == str(resources[0].uri),
        }))


asyncio.run(main(sys.argv[1]))

"""The adapter that runs the benchmark with `innkeeper serve --stdio` in front of each server.

front.py FIXTURE INVOCATIONS     the server behind the gateway: it announces its changed tools
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from mcp.types import ToolListChangedNotification
from mcp_defense_bench.adapters import stdio, stdio_server
from mcp_defense_bench.adapters._fixture import listing

# The task copies this file into a directory next to that of the programs.
GATEWAY = Path(__file__).resolve().parent.parent / "debug/innkeeper"
# Each audit line of the gateway is a finding about the server.
FINDING = r'"security":true'
# Seconds until clients see a change that the server announced.
CHANGE_TIMEOUT = 20
# The members of a tool that the benchmark compares.
MEMBERS = ("name", "description", "inputSchema")


def wrap(mode):
    """Returns the function that places a gateway with this guard in front of a server."""

    def command(server, folder):
        config = folder / "mcp.json"
        behind = {"command": server[0], "args": [__file__, *server[-2:]], "cwd": str(folder)}
        config.write_text(json.dumps({"host": {"guard": mode}, "servers": {"behind": behind}}))
        line = [GATEWAY, "serve", "--stdio", "--names", "flat", "--config", config, "--log-format", "json"]
        return [str(part) for part in line], {}

    return command


def adapter(name, mode):
    stdio._traffic = traffic
    return stdio.StdioProxyAdapter(name, wrap=wrap(mode), warn_pattern=FINDING)


def default():
    """The default configuration, without a guard."""
    return adapter("default", "off")


def refuse():
    """The gateway with `"guard": "refuse"`."""
    return adapter("refuse", "refuse")


benchmark_traffic = stdio._traffic


async def traffic(fixture, client, calls, steps):
    """The traffic of the benchmark; a changed list is read when the change has arrived."""
    if fixture.get("type") != "definition-change":
        return await benchmark_traffic(fixture, client, calls, steps)
    async with client:
        first = listing(await client.list_tools())
        listed(calls).touch()
        second = listing(await client.list_tools())
        start = time.monotonic()
        while changes(fixture) and second == first != []:
            if time.monotonic() > start + CHANGE_TIMEOUT:
                # An exception would count as a block.
                sys.exit("a changed list did not reach the client")
            await asyncio.sleep(0.1)
            second = listing(await client.list_tools())
        steps += ({"op": "tools/list", "tools": tools} for tools in (first, second))


def changes(fixture):
    """Whether the list differs after the change."""
    return any(fixture["before"].get(key) != fixture["after"].get(key) for key in MEMBERS)


def listed(calls):
    """The file that exists when the client has the first list."""
    return Path(calls).with_name("listed")


class Announcing(stdio_server._RugPull):
    """Announces the change, as the protocol requires, and makes it when the client has the first list."""

    async def on_list_tools(self, context, call_next):
        while self.lists == 1 and not listed(self.log_path).exists():
            await asyncio.sleep(0.05)
        tools = await super().on_list_tools(context, call_next)
        if self.lists == 1:
            await context.fastmcp_context.send_notification(ToolListChangedNotification())
        return tools


if __name__ == "__main__":
    stdio_server._RugPull = Announcing
    stdio_server.main()

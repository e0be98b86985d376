"""Replays parser requests through `innkeeper.intercept`, for xtask/toolcalls/judge.py.

Reads and writes what crates/innkeeper-toolcall/examples/replay.rs does.
"""

import asyncio
import json
import sys
from typing import Any

from innkeeper import intercept


async def respond(request: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, str] = {"text": "", "reasoning": ""}
    calls = []
    events = intercept(
        request["pieces"],
        request["tools"],
        model=request["model"] or None,
        prompt=request["prompt"],
        finish_reason=request["finish"],
    )
    async for event in events:
        if event.kind == "call":
            calls.append({"name": event.name, "arguments": json.dumps(event["arguments"])})
        elif event.kind in parts:
            parts[event.kind] += event.text
    return {
        "content": parts["text"].strip("\n") or None,
        "reasoning": parts["reasoning"].strip("\n") or None,
        "calls": calls,
    }


async def main() -> None:
    for line in sys.stdin:
        print(json.dumps(await respond(json.loads(line))), flush=True)


asyncio.run(main())

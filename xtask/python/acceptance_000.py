"""The acceptance test of document 000 with the published servers: `acceptance_000.py NODE_MODULES/.bin`.

Both servers must start, offer the recorded tools, and stop with exit code 0.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from innkeeper import MCPHost

RECORDINGS = Path(__file__).parents[2] / "crates/innkeeper-testkit/recordings"


async def main(programs: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        servers = {
            "filesystem": {"command": str(programs / "mcp-server-filesystem"), "args": [directory]},
            "brave-search": {
                "command": str(programs / "brave-search-mcp-server"),
                "args": ["--transport", "stdio"],
                "env": {"BRAVE_API_KEY": "no-key"},
            },
        }
        file = Path(directory) / "mcp.json"
        file.write_text(json.dumps({"servers": servers}))
        host = MCPHost()
        await host.initialize(str(file))
        for name, offered in host.get_tools().items():
            recorded = json.loads((RECORDINGS / f"{name}.json").read_text())["tools"]
            names = [tool["name"] for tool in offered["tools"]]
            assert names == [tool["name"] for tool in recorded], names
            for tool, record in zip(offered["tools"], recorded, strict=True):
                for parameter, schema in record["inputSchema"].get("properties", {}).items():
                    assert tool["inputSchema"]["properties"][parameter].get("type") == schema.get("type")
            print(f"{name}: {len(names)} tools with the recorded parameters")
        await host.shutdown()


asyncio.run(main(Path(sys.argv[1])))

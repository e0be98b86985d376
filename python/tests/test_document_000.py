"""The acceptance test of document 000: an application starts the servers of its mcp.json, checks their
tools with the names and types of their parameters, and stops them.

The two published servers are fixture servers with recorded tools. `xtask/python/acceptance_000.py` does the
same with the packages themselves.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from innkeeper import ConfigurationError, MCPHost

RECORDINGS = Path(__file__).parents[2] / "crates/innkeeper-testkit/recordings"


@pytest.fixture
def application(tmp_path: Path, fixture_server: str) -> Path:
    """The directory of an application with its mcp.json, in which the key is a variable."""
    servers = {}
    for name in ("filesystem", "brave-search"):
        recording = json.loads((RECORDINGS / f"{name}.json").read_text())
        tools = tmp_path / f"{name}.tools.json"
        tools.write_text(json.dumps(recording["tools"]))
        servers[name] = {
            "type": "stdio",
            "command": fixture_server,
            "args": ["--tools", str(tools)],
            "env": {"BRAVE_API_KEY": "${BRAVE_API_KEY}"},
        }
    (tmp_path / "mcp.json").write_text(json.dumps({"servers": servers}))
    (tmp_path / ".env").write_text("BRAVE_API_KEY=key-of-the-application\n")
    return tmp_path


async def test_an_application_gets_the_tools_of_its_servers_and_stops_them(application: Path) -> None:
    """Proves: N31, TR12.2."""
    host = MCPHost()
    await host.initialize(str(application / "mcp.json"))
    offered = host.get_tools()
    assert list(offered) == ["filesystem", "brave-search"]
    tools = {
        server: {tool["name"]: tool["inputSchema"] for tool in capabilities["tools"]}
        for server, capabilities in offered.items()
    }
    assert (len(tools["filesystem"]), len(tools["brave-search"])) == (14, 8)
    read = tools["filesystem"]["read_text_file"]
    assert read["properties"]["path"]["type"] == "string"
    assert read["required"] == ["path"]
    assert tools["brave-search"]["brave_web_search"]["properties"]["count"]["type"] == "integer"
    assert all(capabilities["state"] == "ready" for capabilities in offered.values())
    await host.shutdown()
    assert not host.is_initialized


async def test_two_servers_of_one_name_are_a_configuration_error(application: Path) -> None:
    file = application / "mcp.json"
    file.write_text('{"servers": {"a": {"command": "true"}, "a": {"command": "true"}}}')
    with pytest.raises(ConfigurationError, match="mcp.json"):
        await MCPHost(file).initialize()


def test_the_methods_are_those_of_the_document() -> None:
    """Proves: TR12.1."""
    documented: dict[str, Any] = {}
    # The block of the document, with a body for each method.
    exec(
        "from collections.abc import Callable\n"
        "class MCPHost:\n"
        "    async def initialize(self, config_path: str) -> None: ...\n"
        "    async def shutdown(self) -> None: ...\n"
        "    async def call_tool(self, tool_name: str, parameters: dict) -> dict: ...\n"
        "    async def get_prompt(self, prompt_name: str, arguments: dict = None) -> dict: ...\n"
        "    async def get_resource(self, resource_uri: str) -> dict: ...\n"
        "    def get_tools(self) -> dict: ...\n"
        "    def get_metrics(self) -> dict: ...\n"
        "    def register_callback(self, callback: Callable) -> None: ...\n",
        documented,
    )
    for name, method in vars(documented["MCPHost"]).items():
        if name.startswith("_"):
            continue
        ours = getattr(MCPHost, name).__code__
        names = method.__code__.co_varnames[: method.__code__.co_argcount]
        assert ours.co_varnames[: len(names)] == names
        assert ours.co_flags & 0x80 == method.__code__.co_flags & 0x80, f"{name} is no coroutine"

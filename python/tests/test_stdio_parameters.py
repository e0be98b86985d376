"""The launch parameters for frameworks that start their server themselves."""

import gc
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from innkeeper import ConfigurationError, MCPHost

Servers = Callable[..., dict[str, Any]]


def config_of(parameters: Any) -> Any:
    return json.loads(Path(parameters["args"][-1]).read_text())


def test_a_file_is_passed_as_a_path(tmp_path: Path, servers: Servers) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(servers()))
    parameters = MCPHost(str(file)).stdio_parameters(command="innkeeper")
    expected = ["serve", "--stdio", "--names", "prefixed", "--config", str(file)]
    assert parameters["args"] == expected
    assert parameters["command"] == "innkeeper"
    assert parameters["env"]["PATH"] == os.environ["PATH"]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory")
def test_a_dict_is_not_written_to_disk(servers: Servers) -> None:
    host = MCPHost(servers())
    parameters = host.stdio_parameters(command="innkeeper")
    file = parameters["args"][-1]
    assert file.startswith(f"/proc/{os.getpid()}/fd/")
    assert config_of(parameters) == servers()
    del host
    gc.collect()
    assert not os.path.exists(file)


def test_one_server_is_chosen_by_the_program(tmp_path: Path) -> None:
    file = str(tmp_path / "mcp.json")
    parameters = MCPHost(file).stdio_parameters("a", command="innkeeper")
    expected = ["serve", "--stdio", "--names", "flat", "--server", "a", "--config", file]
    assert parameters["args"] == expected


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory")
def test_the_paths_of_a_dict_are_absolute() -> None:
    entry = {"command": "a", "cwd": "work", "envFile": "a.env", "env": {"cwd": "x"}}
    host = MCPHost({"mcp": {"servers": {"a": entry}}})
    config = config_of(host.stdio_parameters(command="innkeeper"))
    expected = {**entry, "cwd": os.path.abspath("work"), "envFile": os.path.abspath("a.env")}
    assert config == {"mcp": {"servers": {"a": expected}}}


def test_a_dict_that_is_no_json_is_refused_by_its_place() -> None:
    host = MCPHost({"servers": {"a": {"command": "a", "timeout": float("nan")}}})
    with pytest.raises(ConfigurationError, match="servers.a.timeout"):
        host.stdio_parameters(command="innkeeper")


def test_pins_that_the_program_would_not_apply_are_refused(
    tmp_path: Path, servers: Servers
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(servers()))
    beside = tmp_path / "mcp.lock"
    assert MCPHost(str(file), lock=beside).stdio_parameters(command="innkeeper")
    for host in (MCPHost(str(file), lock=tmp_path / "other"), MCPHost(servers(), lock=beside)):
        with pytest.raises(ConfigurationError):
            host.stdio_parameters(command="innkeeper")


def test_without_the_program_the_error_says_what_to_do(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(ConfigurationError, match="pass `command`"):
        MCPHost(servers()).stdio_parameters()


def test_the_program_serves_one_server_with_these_parameters(
    servers: Servers, command: str, tmp_path: Path
) -> None:
    journal = tmp_path / "other.jsonl"
    other = servers("--journal", str(journal), name="other")["servers"]
    host = MCPHost({"servers": {**servers()["servers"], **other}})
    parameters = host.stdio_parameters("fx", command=command)
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    served = subprocess.run(
        [parameters["command"], *parameters["args"]],
        env=parameters["env"],
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert '"name":"echo"' in served.stdout
    assert not journal.exists(), "a server started that nobody asked for"

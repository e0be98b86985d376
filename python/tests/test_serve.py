"""The gateway inside the process."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import innkeeper
import pytest
from connection_client import CONNECT, post
from innkeeper import CapabilityRegistry, ConfigurationError, NotInitializedError

Servers = Callable[..., dict[str, Any]]

DEADLINE = 30
"""Seconds after which a test fails."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_a_script_serves_and_stops(servers: Servers) -> None:
    """Proves: B51"""
    server = innkeeper.serve(servers())
    try:
        status, _, body = post(server.url, INITIALIZE)
        assert (status, "serverInfo" in body) == (200, True)
        assert server.url == server.base_url + "/mcp"
    finally:
        url = server.url
        server.close()
    server.close()
    with pytest.raises(urllib.error.URLError):
        post(url, INITIALIZE)
    with pytest.raises(NotInitializedError):
        server.url  # noqa: B018


async def test_on_a_loop_the_loop_goes_on_while_the_servers_start(servers: Servers) -> None:
    """Proves: B51"""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    async with innkeeper.serve(servers("--init-delay", "200")) as server:
        ticking.cancel()
        assert ticks > 5
        status, _, _ = await asyncio.to_thread(post, server.url, INITIALIZE)
        assert status == 200


async def test_on_a_loop_it_does_not_run_before_await(servers: Servers) -> None:
    server = innkeeper.serve(servers())
    with pytest.raises(NotInitializedError, match="await"):
        server.url  # noqa: B018
    assert (await server).url.startswith("http://127.0.0.1:")
    await server.aclose()


async def test_two_tasks_do_not_start_one_gateway_twice(servers: Servers) -> None:
    server = innkeeper.serve(servers())

    async def start() -> Any:
        return await server

    first, second = await asyncio.gather(start(), start(), return_exceptions=True)
    assert first is server
    assert isinstance(second, NotInitializedError) and "starting" in str(second)
    await server.aclose()


def test_connections_go_through_their_life(servers: Servers) -> None:
    with innkeeper.serve(servers()) as server:
        url = server.connections_url
        assert url == server.base_url + "/api/v1/mcp"
        capabilities = {**CONNECT["capabilities"], "tools": True}
        status, headers, body = post(f"{url}/initialize", {**CONNECT, "capabilities": capabilities})
        assert (status, json.loads(body)["server"]["name"]) == (200, "beam-mcp-server")
        connection = headers["x-mcp-connection-id"]
        assert post(f"{url}/initialized", None, x_mcp_connection_id=connection)[0] == 204
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        status, _, body = post(f"{url}/jsonrpc", call, x_mcp_connection_id=connection)
        assert (status, "fx.echo" in body) == (200, True)
        assert post(f"{url}/shutdown", None, x_mcp_connection_id=connection)[0] == 200
        assert post(f"{url}/exit", None, x_mcp_connection_id=connection)[0] == 204
        assert post(f"{url}/jsonrpc", call, x_mcp_connection_id=connection)[0] == 401
        assert post(f"{url}/jsonrpc", call)[0] == 401


def test_settings_of_connections_come_from_arguments_and_variables(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_SERVER_NAME", "from-variable")
    monkeypatch.setenv("MCP_PREFIX", "/variable")
    with innkeeper.serve(servers(), prefix="/argument", server_version="2.0") as server:
        assert server.connections_url == server.base_url + "/argument"
        _, _, body = post(f"{server.connections_url}/initialize", CONNECT)
        assert json.loads(body)["server"] == {"name": "from-variable", "version": "2.0"}
    monkeypatch.setenv("MCP_ENABLED", "off")
    with innkeeper.serve(servers()) as server:
        assert server.connections_url is None
    monkeypatch.setenv("MCP_ENABLED", "maybe")
    with pytest.raises(ConfigurationError, match="MCP_ENABLED"):
        innkeeper.serve(servers())


def test_a_feature_of_the_application_is_declared_and_required(servers: Servers) -> None:
    registry = CapabilityRegistry()
    registry.register_feature("tool.job_management", level="required", version="2.0")
    with pytest.raises(ConfigurationError, match="already"):
        registry.register_feature("tool.job_management")
    with innkeeper.serve(servers(), registry=registry) as server:
        url = f"{server.connections_url}/initialize"
        status, _, body = post(url, CONNECT)
        assert (status, "tool.job_management" in body) == (400, True)
        capabilities = {**CONNECT["capabilities"], "tool.job_management": {"version": "2.1"}}
        status, _, body = post(url, {**CONNECT, "capabilities": capabilities})
        assert status == 200
        declared = json.loads(body)["capabilities"]
        assert declared["tool.job_management"]["version"] == "2.0.0"
        assert "core.jsonrpc" in declared


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"listen": "nowhere"}, "listen"),
        ({"listen": "0.0.0.0:0"}, "authentication"),
        ({"listen": "0.0.0.0:0", "allow_unauthenticated": True}, "authentication"),
        ({"prefix": "no/slash"}, "prefix"),
        ({"store": "http://x"}, "store"),
        ({"lock": "/nonexistent/mcp.lock"}, "innkeeper lock"),
    ],
)
def test_a_wrong_setting_is_a_configuration_error(
    servers: Servers, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        innkeeper.serve(servers(), **arguments)


def test_an_address_in_use_is_an_error_before_a_server_starts(
    servers: Servers, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    with (
        innkeeper.serve(servers()) as server,
        pytest.raises(ConfigurationError, match="cannot listen"),
    ):
        innkeeper.serve(servers("--journal", str(journal)), listen=server.address)
    assert not journal.exists()


def test_a_server_that_does_not_start_does_not_take_the_others(servers: Servers) -> None:
    config = servers()
    config["servers"]["broken"] = {"command": "/nonexistent/program"}
    with innkeeper.serve(config) as server:
        assert post(server.url, INITIALIZE)[0] == 200


def test_the_servers_of_the_gateway_end_with_close(servers: Servers) -> None:
    with innkeeper.serve(servers()):
        assert children()
    assert not children()


def test_the_gateway_ends_with_its_object(servers: Servers) -> None:
    server = innkeeper.serve(servers())
    assert children()
    del server
    gc.collect()
    deadline = time.monotonic() + DEADLINE
    while children():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children() -> list[str]:
    """Returns the fixture servers under this process, through their supervisors."""
    parents, names = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            stat = (process / "stat").read_text()
            names[process.name] = (process / "cmdline").read_text()
        except OSError:
            continue
        parents[process.name] = stat.rsplit(")", 1)[1].split()[1]
    found = []
    for process in parents:
        ancestor = process
        while ancestor in parents and ancestor != str(os.getpid()):
            ancestor = parents[ancestor]
        if ancestor == str(os.getpid()) and "innkeeper-fixture-server" in names[process]:
            found.append(process)
    return found


def test_a_program_that_does_not_close_ends_at_once_and_leaves_nothing(
    servers: Servers, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    nonce = f"nonce-{os.getpid()}-{time.monotonic_ns()}"
    config.write_text(json.dumps(servers(env={"NONCE": nonce})))
    program = f"import innkeeper; print(innkeeper.serve({str(config)!r}).url)"
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert ended.stdout.startswith("http://127.0.0.1:")
    assert ended.stderr == ""
    assert time.monotonic() - started < 10
    deadline = time.monotonic() + DEADLINE
    while left := [p for p in Path("/proc").glob("[0-9]*") if has(p, nonce)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def has(process: Path, nonce: str) -> bool:
    try:
        return nonce in (process / "environ").read_text()
    except (OSError, UnicodeDecodeError):
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_after_a_fork_leaves_the_parents_gateway_alone(
    servers: Servers, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(servers()))
    program = f"""
import os, sys, urllib.request, innkeeper
with innkeeper.serve({str(config)!r}) as server:
    pid = os.fork()
    if pid == 0:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(urllib.request.urlopen(server.base_url + "/healthz").status)
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n200\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_serves_after_its_parent(servers: Servers, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(servers()))
    program = f"""
import os, urllib.request, innkeeper
parent = innkeeper.serve({str(config)!r})
pid = os.fork()
with innkeeper.serve({str(config)!r}) as own:
    status = urllib.request.urlopen(own.base_url + "/healthz").status
    os.write(1, str(status).encode() + bytes([10]))
if pid == 0:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
parent.close()
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "200\n200\n0\n", "")

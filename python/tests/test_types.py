"""The types of results: dicts with declared keys, enums, dataclasses; and the type checker's view."""

import enum
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import innkeeper
from innkeeper import MCPHost, ServerMetrics, ServerRequest, ServerState, ServerStatus

Servers = Callable[..., dict[str, Any]]


def test_a_server_state_is_an_enum_of_words() -> None:
    """Proves: TR5.3"""
    assert issubclass(ServerState, enum.Enum)
    assert ServerState.READY.value == "ready"
    assert ServerState("unavailable") is ServerState.UNAVAILABLE
    assert [state.value for state in ServerState] == ["starting", "ready", "unavailable", "shutdown"]


async def test_states_of_the_host_are_values_of_the_enum(servers: Servers) -> None:
    """Proves: TR5.3"""
    async with MCPHost(servers()) as host:
        assert ServerState(host.get_tools()["fx"]["state"]) is ServerState.READY
        assert ServerState(host.get_status()["fx"]["state"]) is ServerState.READY


def test_a_request_of_a_server_is_a_dataclass_with_item_access() -> None:
    """Proves: TR5.1"""
    assert is_dataclass(ServerRequest)
    request = ServerRequest("fx", "roots/list", {"a": 1})
    assert request["server"] == request.server == "fx"
    assert [field.name for field in fields(request)] == ["server", "method", "params", "call", "key"]
    with pytest.raises(KeyError):
        request["other"]


async def test_results_have_the_keys_of_their_types(servers: Servers) -> None:
    """Proves: TR12.4, TR5.1, FR9.6"""
    async with MCPHost(servers()) as host:
        await host.call_tool("fx.echo", {"message": "a"})
        assert set(host.get_metrics()["fx"]) == set(ServerMetrics.__annotations__)
        assert set(host.get_status()["fx"]) == set(ServerStatus.__annotations__)


async def test_a_status_has_a_process_id_and_no_handle(servers: Servers) -> None:
    """Proves: TR5.2"""
    async with MCPHost(servers()) as host:
        status = host.get_status()["fx"]
        assert isinstance(status["pid"], int) and status["in_flight"] == 0
        plain = (str, int, float, bool, list, dict, type(None))
        assert all(isinstance(value, plain) for value in status.values())
        text = str((host.get_tools(), host.get_metrics(), status))
        assert "object at 0x" not in text


USER = '''
import asyncio
from typing import Any, Optional

import innkeeper.sync
from innkeeper import HostEvent, MCPHost, ServerRequest, ToolResult


async def answer(request: ServerRequest) -> dict[str, Any]:
    return {"model": "m", "role": "assistant", "content": {"type": "text", "text": request.server}}


def answer_at_once(request: ServerRequest) -> dict[str, Any]:
    return {"roots": []}


async def main() -> None:
    host = MCPHost("mcp.json", allow_bare_names=True)
    host.register_callback(answer)
    host.register_callback(answer_at_once)
    host.register_callback(None)
    async with host:
        result: ToolResult = await host.call_tool("files.read", {"path": "a"}, timeout=3)
        content: list[dict[str, Any]] = result["content"]
        schema: Any = host.get_tools()["files"]["tools"][0]["inputSchema"]
        average: float = host.get_metrics()["files"]["avg_latency"]
        pid: Optional[int] = host.get_status()["files"]["pid"]
        prompt = await host.get_prompt("files.p")
        messages: list[dict[str, Any]] = prompt["messages"]
        resource = await host.get_resource("file:///a", use_cache=False)
        event: HostEvent
        async for event in host.events():
            kind: str = event["kind"]
            print(kind)
        print(content, schema, average, pid, messages, resource["contents"])
    with innkeeper.sync.MCPHost({"servers": {}}) as waiting:
        other: ToolResult = waiting.call_tool("a.b")
        print(other)


asyncio.run(main())
'''

WRONG = '''
from innkeeper import MCPHost
host = MCPHost(3)
host.call_tool("a.b", [1])
host.get_metrics()["a"]["average"]
'''


def mypy(path: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(path)]
    return subprocess.run(
        command, capture_output=True, text=True, env=with_package(), cwd=path.parent
    )


def with_package() -> dict[str, str]:
    """Returns the environment in which mypy finds the package; it finds an installed one itself."""
    package = Path(innkeeper.__file__).parent.parent
    installed = package.name == "site-packages"
    return dict(os.environ) if installed else {**os.environ, "MYPYPATH": str(package)}


def test_a_users_program_passes_the_strict_type_checker(tmp_path: Path) -> None:
    """Proves: TR1.4, TR5.4"""
    program = tmp_path / "user.py"
    program.write_text(USER)
    checked = mypy(program)
    assert checked.stdout == "" and checked.returncode == 0
    program.write_text(WRONG)
    errors = mypy(program).stdout
    assert [part in errors for part in ("int", "list[int]", "average")] == [True] * 3


def test_the_stub_of_the_native_module_matches_it(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # PyO3 makes `__all__`, and the stub needs none; a debug build has a function for a test.
    (tmp_path / "allowed").write_text("innkeeper._core.__all__\ninnkeeper._core.panicking_operation\n")
    command = [sys.executable, "-m", "mypy.stubtest", "innkeeper._core"]
    checked = subprocess.run(
        [*command, "--allowlist", str(tmp_path / "allowed"), "--ignore-unused-allowlist"],
        capture_output=True,
        text=True,
        env=with_package(),
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_package_and_a_users_program_pass_pyright(tmp_path: Path) -> None:
    """Skipped where pyright is not installed: it is a program of Node.js."""
    pyright = shutil.which("pyright") or Path(sys.executable).with_name("pyright")
    if not Path(pyright).exists():
        pytest.skip("pyright is not installed")
    package = Path(innkeeper.__file__).parent
    shutil.copytree(package, tmp_path / "innkeeper", ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "user.py").write_text(USER)
    # These files are for packages that are not installed here.
    optional = ["innkeeper/fastapi.py", "innkeeper/integrations", "innkeeper/pytest_plugin.py"]
    optional.append("innkeeper/transport.py")
    strict = {"pythonVersion": "3.10", "strict": ["user.py"], "ignore": optional}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"include": ["."], **strict}))
    checked = subprocess.run([str(pyright)], capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout

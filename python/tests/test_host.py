"""The host: configurations, calls, prompts, resources, the catalog, metrics, events, reload."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from innkeeper import ConfigurationError, MCPHost, NotInitializedError, ProtocolError
from support import received, until_async

Servers = Callable[..., dict[str, Any]]


def write(path: Path, config: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(config))
    return path


async def answer(host: MCPHost, name: str = "fx.echo", text: str = "a") -> str:
    result = await host.call_tool(name, {"message": text})
    told: str = result["content"][0]["text"]
    return told


# Configurations


@pytest.mark.parametrize("kind", ["str", "path", "dict", "mapping"])
async def test_a_configuration_is_a_path_or_a_dict(
    servers: Servers, tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path / "mcp.json", servers())
    config = {
        "str": str(path),
        "path": path,
        "dict": servers(),
        "mapping": MappingProxyType(servers()),
    }[kind]
    async with MCPHost(config) as host:  # type: ignore[arg-type]
        assert await answer(host) == "a"
    other = MCPHost({"servers": {}})
    await other.initialize(config)  # type: ignore[arg-type]
    assert await answer(other) == "a"
    await other.shutdown()


async def test_the_default_is_mcp_json_in_the_working_directory(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mcp.json", servers())
    monkeypatch.chdir(tmp_path)
    async with MCPHost() as host:
        assert await answer(host) == "a"


async def test_a_string_is_never_a_program(tmp_path: Path) -> None:
    """`MCPHost("server.py")` of other libraries starts a program; here it is a configuration file."""
    program = tmp_path / "server.py"
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ConfigurationError):
        await MCPHost(str(program)).initialize()
    assert not (tmp_path / "ran").exists()


async def test_a_duplicate_name_is_a_configuration_error(tmp_path: Path) -> None:
    """Proves: FR1.4"""
    path = tmp_path / "mcp.json"
    path.write_text('{"servers": {\n"a": {"command": "true"},\n"a": {"command": "true"}}}')
    with pytest.raises(ConfigurationError) as raised:
        await MCPHost(path).initialize()
    assert raised.value.config_path == str(path)
    assert raised.value.field == "servers.a"
    assert raised.value.problems[0]["line"] == 3


async def test_a_dict_that_changes_later_changes_nothing(servers: Servers) -> None:
    config = servers()
    host = MCPHost(config)
    config["servers"]["fx"]["command"] = "/changed"
    config.clear()
    async with host:
        assert await answer(host) == "a"


# Calls


async def test_a_name_is_a_server_and_a_tool_with_its_dots(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        assert (await host.call_tool("fx.a.b"))["content"]
        assert (await host.call_tool("fx.a.b", {}))["content"]


async def test_bare_names_are_an_option(servers: Servers) -> None:
    async with MCPHost(servers(), allow_bare_names=True) as host:
        assert await answer(host, "echo") == "a"


async def test_the_result_has_every_member_that_the_server_sent(servers: Servers) -> None:
    async with MCPHost(servers("--odd-result")) as host:
        result = await host.call_tool("fx.echo", {"message": "a"})
        assert set(result) - {"content", "structuredContent", "isError", "_meta"}


async def test_a_failure_that_the_tool_reports_is_a_result(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        assert (await host.call_tool("fx.fail"))["isError"] is True


async def test_a_prompt_is_filled_in(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        prompt = await host.get_prompt("fx.greet", {"name": "Ada"})
        assert "Ada" in prompt["messages"][0]["content"]["text"]
        assert (await host.get_prompt("fx.plain"))["messages"]


async def test_the_cache_of_resources_and_prompts_can_be_passed_by(
    servers: Servers, tmp_path: Path
) -> None:
    """Proves: FR8.4"""
    journal = tmp_path / "journal"
    async with MCPHost(servers("--journal", str(journal))) as host:
        for use_cache in (True, True, False):
            await host.get_resource("fx://fx/static", use_cache=use_cache)
            await host.get_prompt("fx.plain", use_cache=use_cache)
        assert len(received(journal, "resources/read")) == 2
        assert len(received(journal, "prompts/get")) == 2


async def test_a_resource_of_several_servers_needs_the_server(servers: Servers) -> None:
    config = servers()
    config["servers"]["other"] = servers("--name", "other")["servers"]["fx"]
    async with MCPHost(config) as host:
        with pytest.raises(Exception, match="fx://shared"):
            await host.get_resource("fx://shared")
        resource = await host.get_resource("fx://shared", server="other")
        assert "other" in resource["contents"][0]["text"]


async def test_a_blob_is_bytes(servers: Servers) -> None:
    data = bytes(range(256)) * 100
    contents = [
        {"uri": "fx://fx/static", "blob": base64.b64encode(data).decode(), "_meta": {"blob": "QQ=="}},
        {"uri": "fx://fx/static", "text": "blob"},
        {"uri": "fx://fx/static", "blob": "not Base64!"},
    ]
    result = json.dumps({"contents": contents, "blob": "QQ=="})
    async with MCPHost(servers("--read-result", result)) as host:
        resource = await host.get_resource("fx://fx/static")
    assert resource["contents"][0]["blob"] == data
    assert resource["contents"][0]["_meta"] == {"blob": "QQ=="}
    assert resource["contents"][1]["text"] == "blob"
    assert resource["contents"][2]["blob"] == "not Base64!"
    assert resource["blob"] == "QQ=="  # type: ignore[typeddict-item]


@pytest.mark.parametrize("use", ["call_tool", "get_prompt", "get_resource", "get_tools", "events"])
async def test_a_host_without_servers_says_so(use: str) -> None:
    host = MCPHost({"servers": {}})
    with pytest.raises(NotInitializedError, match="initialize") as raised:
        called = getattr(host, use)(*(["a.b"] if use.startswith(("call", "get_p", "get_r")) else []))
        await called
    assert isinstance(raised.value, RuntimeError)


# Time


async def test_a_cancelled_task_cancels_the_call_at_the_server(
    servers: Servers, tmp_path: Path
) -> None:
    """Proves: FR4.11, TR4.4"""
    journal = tmp_path / "journal"
    async with MCPHost(servers("--hang-calls", "--journal", str(journal))) as host:
        task = asyncio.create_task(answer(host))
        await until_async(lambda: received(journal, "tools/call"), "the call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer(host), 0.1)
        await until_async(lambda: len(received(journal, "notifications/cancelled")) == 2)
        calls = {message["id"] for message in received(journal, "tools/call")}
        ended = received(journal, "notifications/cancelled")
        assert {message["params"]["requestId"] for message in ended} == calls
        await until_async(lambda: host.get_metrics()["fx"]["cancelled_count"] == 2)


async def test_a_late_answer_to_a_cancelled_call_is_nobodys(servers: Servers) -> None:
    """Proves: FR4.11"""
    async with MCPHost(servers("--slow", "150", "--ignore-cancel")) as host:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer(host, text="first"), 0.02)
        assert await answer(host, text="second") == "second"


@pytest.mark.parametrize("timeout", [-1, 0, float("nan"), float("-inf")])
async def test_an_impossible_timeout_is_refused(servers: Servers, timeout: float) -> None:
    async with MCPHost(servers()) as host:
        with pytest.raises(ValueError, match="`timeout`"):
            await host.call_tool("fx.echo", {"message": "a"}, timeout=timeout)


@pytest.mark.parametrize("timeout", [5, 0.5, 1e12, 1e300, float("inf")])
async def test_a_long_timeout_is_a_timeout(servers: Servers, timeout: float) -> None:
    async with MCPHost(servers()) as host:
        assert await host.call_tool("fx.echo", {"message": "a"}, timeout=timeout)


async def test_a_call_adds_less_than_ten_milliseconds(servers: Servers) -> None:
    """Proves: TR9.1"""
    times = []
    async with MCPHost(servers()) as host:
        for _ in range(200):
            start = time.perf_counter()
            await answer(host)
            times.append(time.perf_counter() - start)
    # The whole round trip, the server's own time too.
    assert sorted(times)[100] < 0.01


def test_the_import_and_an_idle_host_need_little_memory(fixture_server: str) -> None:
    """Proves: TR9.5"""
    program = """
import os, sys, json, asyncio
def resident():
    # Without the pages of files: the text of a debug build is several times that of a release build.
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 2**10
bare = resident()
import innkeeper
imported = resident()
async def main():
    config = {"servers": {"fx": {"command": sys.argv[1]}}}
    async with innkeeper.MCPHost(config) as host:
        await host.call_tool("fx.echo", {"message": "a"})
        print(json.dumps([imported - bare, resident()]))
asyncio.run(main())
"""
    command = [sys.executable, "-c", program, fixture_server]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    added, whole = json.loads(done.stdout)
    assert added < 10 and whole < 50, done.stdout


# The catalog, metrics, status


async def test_the_catalog_has_every_server_with_every_member(servers: Servers) -> None:
    tool = {
        "name": "odd",
        "title": "Odd",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"a": [1]},
        "unknown": [1, None],
    }
    config = servers("--tools", json.dumps([tool]))
    config["servers"]["other"] = servers()["servers"]["fx"]
    async with MCPHost(config) as host:
        catalog = host.get_tools()
        assert list(catalog) == ["fx", "other"]
        assert tool in catalog["fx"]["tools"]
        assert catalog["other"]["resourceTemplates"][0]["uriTemplate"] == "fx://fx/item/{id}"
        assert catalog["other"]["prompts"][0]["arguments"][0]["required"] is True
        # A copy: nobody changes another's.
        catalog["fx"]["tools"].clear()
        assert host.get_tools()["fx"]["tools"]


async def test_metrics_are_counts_rates_and_seconds(servers: Servers) -> None:
    """Proves: FR9.6"""
    async with MCPHost(servers("--slow", "50")) as host:
        for _ in range(4):
            await answer(host)
        await host.call_tool("fx.fail")
        metrics = host.get_metrics()["fx"]
    assert (metrics["request_count"], metrics["tool_error_count"]) == (5, 1)
    assert metrics["success_rate"] + metrics["error_rate"] == pytest.approx(1)
    for key in ("avg_latency", "min_latency", "max_latency", "p50_latency", "p95_latency"):
        assert 0.045 < metrics[key] < 5, key


# Events and changes


async def test_events_are_an_iterator_from_the_call_on(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        events = host.events()
        await answer(host)
        event = await anext(events)
        assert event.kind == event["kind"] == "call_finished"
        assert (event.server, event.item, event.outcome) == ("fx", "echo", "ok")
        with pytest.raises(AttributeError):
            event.absent
        pending = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        pending.cancel()
        await answer(host)
        assert (await anext(events)).kind == "call_finished"
    kinds = [event.kind async for event in events]
    assert "stopped" in kinds


async def test_a_cancelled_wait_for_an_event_loses_none(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        events = host.events()
        calls = asyncio.ensure_future(_calls(host, 100))
        seen = 0
        while seen < 100:
            try:
                seen += (await asyncio.wait_for(anext(events), 0.0005)).kind == "call_finished"
            except asyncio.TimeoutError:
                pass
        await calls


async def _calls(host: MCPHost, count: int) -> None:
    for _ in range(count):
        await answer(host)


async def test_a_crash_is_an_event_and_a_server_starts_again(servers: Servers) -> None:
    async with MCPHost(servers("--crash-after", "2")) as host:
        events = host.events()
        await answer(host)
        with pytest.raises(Exception):
            await answer(host)
        async for event in events:
            if event.kind == "unavailable":
                break
        assert "fx" not in host.get_tools()
        assert host.get_status()["fx"]["state"] == "unavailable"
        await host.restart_server("fx")
        assert await answer(host) == "a"
        await host.stop_server("fx")
        assert host.get_status()["fx"]["state"] == "shutdown"


async def test_a_changed_file_is_applied(servers: Servers, tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", servers())
    config = servers()
    config["servers"]["new"] = servers()["servers"]["fx"]
    async with MCPHost(path) as host:
        pid = host.get_status()["fx"]["pid"]
        write(path, config)
        assert (await host.reload())["added"] == ["new"]
        assert host.get_status()["fx"]["pid"] == pid
        report = await host.reload({"servers": {"new": config["servers"]["new"]}})
        assert report["removed"] == ["fx"]
        path.write_text("{")
        with pytest.raises(ConfigurationError):
            await host.reload(path)
        assert await answer(host, "new.echo") == "a"


async def test_a_watched_file_is_applied_by_itself(servers: Servers, tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", servers())
    config = servers()
    config["servers"]["new"] = servers()["servers"]["fx"]
    async with MCPHost(path, watch=True) as host:
        events = host.events()
        write(path, config)
        async for event in events:
            if event.kind == "reloaded":
                assert event.added == ["new"]
                break


async def test_a_hundred_calls_at_once_get_their_own_answers(servers: Servers) -> None:
    async with MCPHost(servers("--out-of-order", "5")) as host:
        texts = [str(index) for index in range(100)]
        assert await asyncio.gather(*(answer(host, text=text) for text in texts)) == texts


async def test_a_lock_withholds_what_differs(servers: Servers, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="innkeeper lock"):
        await MCPHost(servers(), lock=tmp_path / "absent.lock").initialize()


def test_no_environment_variable_is_changed() -> None:
    program = "import os; a = dict(os.environ); import innkeeper; assert dict(os.environ) == a"
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))


async def test_a_malformed_result_is_a_protocol_error_and_the_host_lives(servers: Servers) -> None:
    async with MCPHost(servers("--malformed", "wrongtypes")) as host:
        with pytest.raises(ProtocolError):
            await answer(host)
        assert host.get_tools()


@pytest.mark.parametrize("kind", [None, 32 << 20])
async def test_a_big_result_needs_a_host_that_takes_it(servers: Servers, kind: int | None) -> None:
    async with MCPHost(servers(), max_message_bytes=kind) as host:
        called = host.call_tool("fx.big", {"bytes": 20_000_000})
        if kind is None:
            with pytest.raises(ProtocolError, match="16777216"):
                await called
        else:
            assert len((await called)["content"][0]["text"]) == 20_000_000


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_message_bytes"):
        MCPHost(max_message_bytes=0)

"""The log: records of Python's `logging` with fields, levels and causes."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import innkeeper.sync
from innkeeper import MCPHost, ServerUnavailableError, _core
from support import until, until_async

Servers = Callable[..., dict[str, Any]]


ONCE = {"initTimeout": 1.2}
"""A server that does not start is started a second time, after a second."""


class Records(logging.Handler):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__(0)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def levels(self) -> set[int]:
        return {record.levelno for record in self.records}


@pytest.fixture
def records() -> Iterator[Records]:
    logger = logging.getLogger("innkeeper")
    handler = Records()
    level = logger.level
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def use_level(level: int) -> None:
    logging.getLogger("innkeeper").setLevel(level)


async def test_a_record_has_fields_as_attributes(servers: Servers, records: Records) -> None:
    """Proves: FR9.4"""
    use_level(logging.INFO)
    async with MCPHost(servers("--stderr", "hello")) as host:
        await until_async(lambda: any("hello" in r.getMessage() for r in records.records))
        await host.call_tool("fx.echo", {"message": "a"})
    assert all(record.name.startswith("innkeeper.") for record in records.records)
    with_server = [r for r in records.records if getattr(r, "innkeeper_server", None) == "fx"]
    assert with_server
    record = with_server[0]
    fields = getattr(record, "innkeeper")
    assert fields["server"] == "fx"
    # A formatter that writes JSON has all it needs.
    json.dumps({"message": record.getMessage(), "level": record.levelname, **fields})


@pytest.mark.parametrize("name", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
async def test_the_level_of_the_logger_is_the_level_of_the_log(
    servers: Servers, records: Records, name: str
) -> None:
    """Proves: FR9.5"""
    level: int = getattr(logging, name)
    use_level(level)
    async with MCPHost(servers("--crash-after", "1")) as host:
        assert _core.log_level() == level
        with pytest.raises(ServerUnavailableError):
            await host.call_tool("fx.echo", {"message": "a"})
    assert all(record.levelno >= level for record in records.records)
    assert bool(records.records) == (level <= logging.ERROR)


async def test_a_run_has_records_of_all_severities(
    servers: Servers, records: Records, tmp_path: Path
) -> None:
    """Proves: FR7.4"""
    use_level(logging.DEBUG)
    with pytest.raises(innkeeper.ServerStartupError):
        await MCPHost({"servers": {"bad": {"command": "false", **ONCE}}}).initialize()
    config = servers("--crash-after", "1")
    config["servers"]["absent"] = {"command": str(tmp_path / "absent"), "required": False}
    config["servers"]["later"] = {"command": "false", "required": False, **ONCE}
    async with MCPHost(config) as host:
        await host.get_resource("fx://fx/static")
        await host.get_resource("fx://fx/static")
        with pytest.raises(ServerUnavailableError):
            await host.call_tool("fx.echo", {"message": "a"})
    every = {logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL}
    assert records.levels() == every


async def test_a_critical_event_is_a_critical_record(servers: Servers, records: Records) -> None:
    """Proves: FR7.4"""
    use_level(logging.CRITICAL)
    with pytest.raises(innkeeper.ServerStartupError):
        await MCPHost({"servers": {"bad": {"command": "false", **ONCE}}}).initialize()
    await until_async(lambda: records.records)
    assert records.levels() == {logging.CRITICAL}


async def test_a_callback_that_fails_is_logged_with_its_traceback(
    servers: Servers, records: Records
) -> None:
    """Proves: TR6.6"""

    def fail(request: innkeeper.ServerRequest) -> dict[str, Any]:
        raise ValueError("broken")

    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(fail)
    async with host:
        await host.call_tool("fx.echo", {"message": "a"})
    (record,) = [r for r in records.records if r.name == "innkeeper.callback"]
    assert record.exc_info is not None and record.exc_info[0] is ValueError
    assert record.exc_text is None or "broken" in record.exc_text


async def test_the_records_of_a_call_precede_its_result(servers: Servers, records: Records) -> None:
    use_level(logging.DEBUG)
    async with MCPHost(servers()) as host:
        for _ in range(20):
            before = len(records.records)
            await host.call_tool("fx.echo", {"message": "a"})
            assert len(records.records) > before


async def test_a_handler_that_calls_the_host_does_not_call_itself(
    servers: Servers, records: Records
) -> None:
    """A handler that calls a tool for each record gets the records of its own calls later."""
    use_level(logging.DEBUG)
    host = innkeeper.sync.MCPHost(servers())
    depth, deepest, calls = 0, 0, 0

    class Calls(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal depth, deepest, calls
            depth += 1
            deepest = max(deepest, depth)
            if calls < 30 and host.is_initialized:
                calls += 1
                host.call_tool("fx.echo", {"message": "a"})
            depth -= 1

    handler = Calls()
    with host:
        logging.getLogger("innkeeper").addHandler(handler)
        try:
            await asyncio.to_thread(host.call_tool, "fx.echo", {"message": "a"})
            await until_async(lambda: calls == 30)
        finally:
            logging.getLogger("innkeeper").removeHandler(handler)
    # The thread of the log and the calling thread may both be inside.
    assert deepest <= 3


def test_a_handler_that_fails_loses_only_its_record(
    servers: Servers, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_level(logging.DEBUG)
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)

    class Fails(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError("no disk")

    handler = Fails()
    logging.getLogger("innkeeper").addHandler(handler)
    try:
        with innkeeper.sync.MCPHost(servers()) as host:
            assert host.call_tool("fx.echo", {"message": "a"})["content"]
    finally:
        logging.getLogger("innkeeper").removeHandler(handler)
    until(lambda: records.records)


def test_an_interrupt_while_the_level_is_read_is_not_lost(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises Ctrl-C in whatever code runs, also in that of a logger."""

    def interrupted() -> int:
        raise KeyboardInterrupt

    with innkeeper.sync.MCPHost(servers()) as host:
        with monkeypatch.context() as patched:
            patched.setattr(logging.getLogger("innkeeper"), "getEffectiveLevel", interrupted)
            with pytest.raises(KeyboardInterrupt):
                host.call_tool("fx.echo", {"message": "a"})
        assert host.call_tool("fx.echo", {"message": "a"})["content"]

"""Callbacks: the application answers sampling, elicitation and roots requests of servers."""

import asyncio
import contextvars
import functools
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import innkeeper.sync
from innkeeper import CallbackError, MCPHost, ServerRequest
from support import received, until, until_async

Servers = Callable[..., dict[str, Any]]

ANSWER = {"model": "m", "role": "assistant", "content": {"type": "text", "text": "told"}}


async def asked(host: MCPHost) -> dict[str, Any]:
    """Calls a tool during which the server asks; returns what the server got."""
    result = await host.call_tool("fx.echo", {"message": "a"})
    (answer,) = json.loads(result["content"][0]["text"])
    got: dict[str, Any] = answer
    return got


def function(request: ServerRequest) -> dict[str, Any]:
    return ANSWER


async def coroutine(request: ServerRequest) -> dict[str, Any]:
    await asyncio.sleep(0)
    return ANSWER


class Callable1:
    def __call__(self, request: ServerRequest) -> dict[str, Any]:
        return ANSWER


class Callable2:
    async def __call__(self, request: ServerRequest) -> dict[str, Any]:
        return ANSWER


KINDS: dict[str, Any] = {
    "function": function,
    "coroutine function": coroutine,
    "callable object": Callable1(),
    "asynchronous callable object": Callable2(),
    "partial": functools.partial(coroutine),
    "lambda": lambda request: coroutine(request),
    "method": Callable1().__call__,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_callback_is_anything_that_can_be_called(servers: Servers, kind: str) -> None:
    """Proves: FR5.2"""
    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(KINDS[kind])
    async with host:
        assert (await asked(host))["result"] == ANSWER


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_works_without_await(servers: Servers, kind: str) -> None:
    """Proves: FR5.2"""
    host = innkeeper.sync.MCPHost(servers("--ask-sampling"))
    host.register_callback(KINDS[kind])
    with host:
        result = host.call_tool("fx.echo", {"message": "a"})
        assert json.loads(result["content"][0]["text"])[0]["result"] == ANSWER


async def test_a_callback_can_be_registered_replaced_and_removed_while_servers_run(
    servers: Servers,
) -> None:
    """Proves: FR5.2"""
    async with MCPHost(servers("--ask-sampling")) as host:
        assert "error" in await asked(host)
        host.register_callback(function)
        assert (await asked(host))["result"] == ANSWER
        host.register_callback(lambda request: {**ANSWER, "model": "second"})
        assert (await asked(host))["result"]["model"] == "second"
        host.register_callback(None)
        assert "error" in await asked(host)
        # A thread without a loop registers for the loop that started the host.
        await asyncio.to_thread(host.register_callback, coroutine)
        assert (await asked(host))["result"] == ANSWER


@pytest.mark.parametrize(
    ("switch", "method"),
    [
        ("--ask-sampling", "sampling/createMessage"),
        ("--ask-elicit", "elicitation/create"),
        ("--ask-roots", "roots/list"),
    ],
)
async def test_a_request_says_who_asks_and_why(servers: Servers, switch: str, method: str) -> None:
    seen: list[ServerRequest] = []

    def answer(request: ServerRequest) -> dict[str, Any]:
        seen.append(request)
        answers: dict[str, dict[str, Any]] = {
            "sampling/createMessage": ANSWER,
            "elicitation/create": {"action": "decline"},
            "roots/list": {"roots": []},
        }
        return answers[request.method]

    host = MCPHost(servers(switch))
    host.register_callback(answer)
    async with host:
        assert "result" in await asked(host)
    (request,) = seen
    assert (request.server, request.method) == ("fx", method)
    assert isinstance(request.params, dict)
    assert request.call is None or request.call["item"] == "echo"


async def test_a_callback_that_raises_is_an_error_of_the_server_and_the_host_lives(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    """Proves: TR4.6"""

    async def answer(request: ServerRequest) -> dict[str, Any]:
        raise ValueError("a secret of the application")

    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(answer)
    async with host:
        with caplog.at_level(logging.ERROR, "innkeeper"):
            error = (await asked(host))["error"]
        assert error["code"] == -32603 and "ValueError" in error["message"]
        assert "secret" not in error["message"]
        assert "a secret of the application" in caplog.text
        assert "error" in await asked(host)


async def test_a_callback_error_is_the_error_that_the_server_gets(servers: Servers) -> None:
    """Proves: TR4.6"""

    def answer(request: ServerRequest) -> dict[str, Any]:
        raise CallbackError("not today", code=-1)

    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(answer)
    async with host:
        error = (await asked(host))["error"]
        assert (error["code"], error["message"]) == (-1, "not today")


@pytest.mark.parametrize("result", [None, 3, {"x": b"y"}, {1: 2}])
async def test_an_answer_that_is_no_json_object_is_an_error(servers: Servers, result: Any) -> None:
    """Proves: TR4.6"""
    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(lambda request: result)
    async with host:
        assert "error" in await asked(host)


name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="none")


async def test_context_variables_are_those_of_the_registration(servers: Servers) -> None:
    def answer(request: ServerRequest) -> dict[str, Any]:
        model = name.get()
        # A change stays with the request.
        name.set("changed")
        return {**ANSWER, "model": model}

    host = MCPHost(servers("--ask-sampling"))
    name.set("registered")
    host.register_callback(answer)
    name.set("later")
    async with host:
        assert (await asked(host))["result"]["model"] == "registered"
        assert (await asked(host))["result"]["model"] == "registered"
    waiting = innkeeper.sync.MCPHost(servers("--ask-sampling"))
    waiting.register_callback(answer)
    with waiting:
        for _ in range(2):
            result = await asyncio.to_thread(waiting.call_tool, "fx.echo", {"message": "a"})
            assert json.loads(result["content"][0]["text"])[0]["result"]["model"] == "later"


async def test_a_request_that_nobody_waits_for_cancels_the_callback(servers: Servers) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def answer(request: ServerRequest) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()
        return ANSWER

    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(answer)
    async with host:
        call = asyncio.ensure_future(host.call_tool("fx.echo", {"message": "a"}))
        await asyncio.wait_for(started.wait(), 10)
        await host.stop_server("fx")
        await asyncio.wait_for(ended.wait(), 10)
        with pytest.raises(innkeeper.MCPHostError):
            await call


async def test_a_server_that_takes_its_request_back_cancels_the_callback(servers: Servers) -> None:
    ended = asyncio.Event()

    async def answer(request: ServerRequest) -> dict[str, Any]:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.set()
        return ANSWER

    host = MCPHost(servers("--ask-sampling", "--ask-count", "1"))
    host.register_callback(answer)
    async with host:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asked(host), 0.3)
        await host.restart_server("fx")
        await asyncio.wait_for(ended.wait(), 10)


async def test_a_callback_calls_the_host(servers: Servers) -> None:
    config = servers("--ask-sampling")
    config["servers"]["other"] = servers()["servers"]["fx"]
    host = MCPHost(config)

    async def answer(request: ServerRequest) -> dict[str, Any]:
        result = await host.call_tool("other.echo", {"message": "inner"})
        return {**ANSWER, "model": result["content"][0]["text"]}

    host.register_callback(answer)
    async with host:
        assert (await asked(host))["result"]["model"] == "inner"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_callback_without_await_calls_the_host_that_asks_again(
    servers: Servers, asynchronous: bool
) -> None:
    """The inner call makes the server ask again: two callbacks at once, and no deadlock."""
    host = innkeeper.sync.MCPHost(servers("--ask-sampling"))
    inner = threading.Lock()

    def answer(request: ServerRequest) -> dict[str, Any]:
        if inner.acquire(blocking=False):
            host.call_tool("fx.echo", {"message": "inner"})
        return ANSWER

    async def answer_later(request: ServerRequest) -> dict[str, Any]:
        return await asyncio.to_thread(answer, request)

    host.register_callback(answer_later if asynchronous else answer)
    with host:
        result = host.call_tool("fx.echo", {"message": "outer"}, timeout=20)
        assert json.loads(result["content"][0]["text"])[0]["result"] == ANSWER


async def test_many_requests_at_once_get_their_own_answers(servers: Servers) -> None:
    host = MCPHost(servers("--ask-sampling", "--ask-count", "20"))
    running = 0

    async def answer(request: ServerRequest) -> dict[str, Any]:
        nonlocal running
        running += 1
        await until_async(lambda: running >= 2)
        return ANSWER

    host.register_callback(answer)
    async with host:
        result = await host.call_tool("fx.echo", {"message": "a"})
        answers = json.loads(result["content"][0]["text"])
        assert [entry["result"] for entry in answers] == [ANSWER] * 20


async def test_capabilities_are_declared_only_with_a_callback(
    servers: Servers, tmp_path: Path
) -> None:
    for register in (False, True):
        journal = tmp_path / str(register)
        host = MCPHost(servers("--journal", str(journal)))
        if register:
            host.register_callback(function)
        async with host:
            (message,) = received(journal, "initialize")
            assert ("sampling" in message["params"]["capabilities"]) is register


def test_an_eager_task_factory_changes_nothing(servers: Servers) -> None:
    factory = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        pytest.skip("Python 3.12 has it")

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(factory)
        host = MCPHost(servers("--ask-sampling"))
        host.register_callback(function)
        async with host:
            assert (await asked(host))["result"] == ANSWER
            host.register_callback(coroutine)
            assert (await asked(host))["result"] == ANSWER

    asyncio.run(main())


def test_the_thread_of_the_callbacks_ends_with_the_host(servers: Servers) -> None:
    def names() -> list[str]:
        threads = [thread.name for thread in threading.enumerate()]
        return [name for name in threads if name.startswith("innkeeper-callback")]

    host = innkeeper.sync.MCPHost(servers("--ask-sampling"))
    host.register_callback(function)
    with host:
        host.call_tool("fx.echo", {"message": "a"})
        assert "innkeeper-callbacks" in names()
    until(lambda: names() == [], "the end of the threads")
    broken = innkeeper.sync.MCPHost({"servers": {"a": {"command": "/absent"}}})
    broken.register_callback(function)
    with pytest.raises(innkeeper.MCPHostError):
        broken.initialize()
    until(lambda: names() == [], "the end of the threads")


class Unprintable(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException) -> Callable[[ServerRequest], Any]:
    async def callback(request: ServerRequest) -> Any:
        raise error

    return callback


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        CallbackError(cast(str, Unprintable())),
        CallbackError("no", code=cast(int, "400")),
        CallbackError("half \ud800"),
        Unprintable(),
    ],
    ids=["cancelled", "no text", "no number", "no unicode", "no text either"],
)
async def test_a_server_gets_an_answer_however_a_callback_ends(
    servers: Any, error: BaseException
) -> None:
    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(raising(error))
    async with host:
        called = host.call_tool("fx.echo", {"message": "a"})
        result = await asyncio.wait_for(called, 10)
        assert "error" in result["content"][0]["text"]


def test_an_interrupt_in_the_queue_of_a_loop_ends_its_run_and_keeps_the_other_messages(
    servers: Servers,
) -> None:
    """Python raises Ctrl-C in whatever code runs, also while a loop takes requests of servers."""
    interrupts = [KeyboardInterrupt()]

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if interrupts and coroutine.__name__ == "_answer":
            coroutine.close()
            raise interrupts.pop()
        return asyncio.Task(coroutine, loop=loop, **options)

    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(function)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(host.initialize())
        loop.set_task_factory(factory)
        calls = [loop.create_task(asked(host)) for _ in range(3)]
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(calls))
        answers = [loop.run_until_complete(asyncio.wait_for(call, 10)) for call in calls]
        assert sorted("error" in answer for answer in answers) == [False, False, True]
        loop.run_until_complete(host.shutdown())
    finally:
        loop.close()

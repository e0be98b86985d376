"""The life of a host in tasks, loops and threads, and its end without a shutdown."""

import asyncio
import copy
import gc
import json
import pickle
import signal
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import innkeeper.sync
from innkeeper import MCPHost, NotInitializedError
from support import echo, marked, none_left, processes, received, until, until_async

Servers = Callable[..., dict[str, Any]]


# Tasks and loops


async def test_a_host_opens_in_one_task_and_closes_in_another(servers: Servers) -> None:
    host = MCPHost(servers())
    await asyncio.create_task(host.initialize())
    assert await asyncio.create_task(echo(host)) == "a"
    await asyncio.create_task(host.shutdown())
    assert not host.is_initialized


async def test_hosts_close_in_any_order(servers: Servers) -> None:
    hosts = [MCPHost(servers()) for _ in range(4)]
    await asyncio.gather(*(host.initialize() for host in hosts))
    for index in (1, 0, 3, 2):
        await hosts[index].shutdown()
        for other in hosts:
            if other.is_initialized:
                assert await echo(other) == "a"


async def test_two_starts_of_one_host_at_once_start_one_host(servers: Servers) -> None:
    config, mark = marked(servers("--start-delay", "100"))
    host = MCPHost(config)
    results = await asyncio.gather(host.initialize(), host.initialize(), return_exceptions=True)
    assert results[0] is None
    assert isinstance(results[1], innkeeper.MCPHostError)
    assert await echo(host) == "a"
    await host.shutdown()
    none_left(mark)


async def test_a_host_starts_again_after_its_end_and_after_a_failed_start(servers: Servers) -> None:
    host = MCPHost({"servers": {"fx": {"command": "/absent/program"}}})
    with pytest.raises(innkeeper.MCPHostError):
        await host.initialize()
    for _ in range(2):
        await host.initialize(servers())
        assert await echo(host) == "a"
        await host.shutdown()
        await host.shutdown()


async def test_a_cancelled_start_leaves_no_process(servers: Servers) -> None:
    config, mark = marked(servers("--hang-init"))
    host = MCPHost(config)
    task = asyncio.create_task(host.initialize())
    await until_async(lambda: processes(mark), "a process")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_async(lambda: not processes(mark), "no process")
    await host.initialize(servers())
    await host.shutdown()


def test_a_host_goes_on_in_a_second_run_of_asyncio(servers: Servers) -> None:
    host = MCPHost(servers())
    asyncio.run(host.initialize())
    assert asyncio.run(echo(host)) == "a"
    asyncio.run(host.shutdown())


async def test_a_host_works_on_a_second_loop_in_a_thread(servers: Servers) -> None:
    """Proves: TR4.1"""
    async with MCPHost(servers()) as host:
        other = asyncio.to_thread(asyncio.run, echo(host, "b"))
        assert list(await asyncio.gather(echo(host), other)) == ["a", "b"]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "stopped"])
def test_a_callback_follows_to_the_next_loop_when_its_own_has_ended(
    servers: Servers, closed: bool
) -> None:
    host = MCPHost(servers("--ask-sampling"))

    async def answer(request: innkeeper.ServerRequest) -> dict[str, Any]:
        return {"model": "m", "role": "assistant", "content": {"type": "text", "text": "mine"}}

    host.register_callback(answer)
    first = asyncio.new_event_loop()
    first.run_until_complete(host.initialize())
    if closed:
        first.close()
    assert "mine" in asyncio.run(asyncio.wait_for(echo(host), 20))
    assert "mine" in asyncio.run(asyncio.wait_for(echo(host), 20))
    asyncio.run(host.shutdown())
    first.close()


async def test_a_request_for_a_closed_loop_gets_an_error(servers: Servers) -> None:
    """The server is answered though the loop of the callback is gone and nobody calls on a loop."""
    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(lambda request: {})
    await asyncio.to_thread(asyncio.run, host.initialize())
    gc.collect()
    # The call itself must not bring a loop.
    call = host._host.call_tool("fx.echo", {"message": "a"}, 10.0)
    result = await asyncio.to_thread(call.wait)
    assert "application's callback is closed" in json.loads(result["content"][0]["text"])[0]["error"]["message"]
    await host.shutdown()


class Bare(asyncio.SelectorEventLoop):
    """A loop that watches no file descriptors, as the one of Windows."""

    def add_reader(self, *arguments: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_a_loop_that_watches_no_sockets_works(servers: Servers) -> None:
    host = MCPHost(servers("--ask-sampling"))
    host.register_callback(lambda request: {"roots": []})
    loop = Bare()
    loop.run_until_complete(host.initialize())

    async def many() -> list[str]:
        return await asyncio.gather(*(echo(host, str(index)) for index in range(50)))

    assert len(set(loop.run_until_complete(many()))) >= 1
    loop.run_until_complete(host.shutdown())
    gone = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("loop_class", [asyncio.SelectorEventLoop, Bare])
def test_a_loop_closed_with_calls_in_flight_is_freed_and_its_calls_cancelled(
    servers: Servers, tmp_path: Path, loop_class: type[asyncio.SelectorEventLoop]
) -> None:
    """Proves: FR4.11"""
    journal = tmp_path / "journal"
    host = innkeeper.sync.MCPHost(servers("--hang-calls", "--journal", str(journal)))
    host.initialize()
    asking = MCPHost()
    asking._started(host._host)
    loop = loop_class()
    tasks = [loop.create_task(echo(asking)) for _ in range(3)]

    async def wait() -> None:
        await until_async(lambda: len(received(journal, "tools/call")) == 3)

    loop.run_until_complete(wait())
    loop.close()
    for task in tasks:
        # Not the loop's complaint about tasks that are destroyed, which is right here.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    gone = weakref.ref(loop)
    del loop, tasks, task, wait
    gc.collect()
    assert gone() is None
    until(lambda: len(received(journal, "notifications/cancelled")) == 3)
    host.shutdown()


def test_uvloop_works(servers: Servers) -> None:
    """Proves: TR2.5"""
    uvloop = pytest.importorskip("uvloop")
    config, mark = marked(servers("--ask-sampling"))

    async def main() -> None:
        host = MCPHost(config)
        host.register_callback(lambda request: {"roots": []})
        async with host:
            await asyncio.gather(*(echo(host) for _ in range(100)))

    loop = uvloop.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    none_left(mark)


async def test_a_big_result_and_many_small_ones_do_not_stall_the_loop(servers: Servers) -> None:
    """Slices of a conversion don't add up while other results arrive.

    Proves: TR1.3
    """
    config = servers("--verbatim")
    config["servers"]["small"] = servers()["servers"]["fx"]
    big = [{"name": f"item {index}", "value": index} for index in range(60_000)]
    lags = []

    async def watch() -> None:
        while True:
            before = asyncio.get_running_loop().time()
            await asyncio.sleep(0)
            lags.append(asyncio.get_running_loop().time() - before)

    async with MCPHost(config) as host:
        watching = asyncio.create_task(watch())

        async def call() -> None:
            await host.call_tool("small.echo", {"message": "a"})

        arguments = {"message": "", "result": json.dumps({"content": [], "items": big})}
        result = asyncio.create_task(host.call_tool("fx.echo", arguments))
        while not result.done():
            await asyncio.gather(*(call() for _ in range(50)))
        watching.cancel()
        assert (await result)["sent"]["items"] == big  # type: ignore[typeddict-item]
    # One slice is 4 ms; a machine under load may stop the thread in between.
    assert sorted(lags)[len(lags) * 98 // 100] < 0.05


# Threads


def test_threads_share_one_host(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers()) as host:
        answers: list[str] = []

        def work(number: int) -> None:
            for index in range(20):
                text = f"{number}.{index}"
                result = host.call_tool("fx.echo", {"message": text})
                assert result["content"][0]["text"] == text
                answers.append(text)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(answers)) == 160


async def test_threads_of_the_library_take_no_signals_and_servers_take_all(servers: Servers) -> None:
    """An application may wait for its signals with `sigwait`; a server must not inherit our mask."""

    def blocked(task: Path) -> int:
        status = (task / "status").read_text()
        return int(status.split("SigBlk:")[1].split()[0], 16)

    async with MCPHost(servers()) as host:
        ours = [
            task
            for task in Path("/proc/self/task").iterdir()
            if (task / "comm").read_text().strip() == "innkeeper"
        ]
        assert ours
        for task in ours:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
                assert blocked(task) & 1 << number - 1
        assert blocked(Path(f"/proc/{host.get_status()['fx']['pid']}")) == 0
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


# The end of a host without a shutdown


@pytest.mark.parametrize("kind", [MCPHost, innkeeper.sync.MCPHost])
def test_a_host_that_nobody_has_stops_its_servers(servers: Servers, kind: Any) -> None:
    config, mark = marked(servers())
    host = kind(config)
    started = host.initialize()
    if started is not None:
        asyncio.run(started)
    assert processes(mark)
    del host
    gc.collect()
    none_left(mark)


@pytest.mark.parametrize("kind", [MCPHost, innkeeper.sync.MCPHost])
def test_a_host_whose_callback_refers_to_it_stops_its_servers(servers: Servers, kind: Any) -> None:
    config, mark = marked(servers())

    class Application:
        def __init__(self) -> None:
            self.host = kind(config)
            self.host.register_callback(self.answer)
            started = self.host.initialize()
            if started is not None:
                asyncio.run(started)

        def answer(self, request: innkeeper.ServerRequest) -> dict[str, Any]:
            return {}

    threads = threading.active_count()
    application = Application()
    assert processes(mark)
    del application
    gc.collect()
    none_left(mark)
    until(lambda: threading.active_count() <= threads + 1, "the callback thread's end")


def test_a_host_copies_and_pickles_its_configuration(servers: Servers) -> None:
    config, mark = marked(servers())
    host = innkeeper.sync.MCPHost(config, allow_bare_names=True)
    host.register_callback(lambda request: {})
    with host:
        for other in (copy.copy(host), copy.deepcopy(host), pickle.loads(pickle.dumps(host))):
            assert not other.is_initialized
            with pytest.raises(NotInitializedError):
                other.get_tools()
            with other:
                assert other.call_tool("echo", {"message": "a"})["content"][0]["text"] == "a"
        assert host.call_tool("echo", {"message": "a"})["content"]
    asynchronous = pickle.loads(pickle.dumps(MCPHost("some.json")))
    assert "some.json" in repr(asynchronous)
    none_left(mark)

"""The life of a host: tasks, loops, threads, signals, processes, and the end of the program."""

import asyncio
import copy
import gc
import json
import os
import pickle
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import innkeeper.sync
from innkeeper import MCPHost, NotInitializedError, _core
from support import LONG, RUNS, Script, nonce, none_left, processes, received, run, until, until_async

Servers = Callable[..., dict[str, Any]]


async def echo(host: MCPHost, text: str = "a") -> str:
    result = await host.call_tool("fx.echo", {"message": text})
    answer: str = result["content"][0]["text"]
    return answer


def marked(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns the configuration with a mark in the environment of its servers."""
    mark = nonce()
    for server in config["servers"].values():
        server["env"] = {"MARK": mark}
    return config, mark


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


def test_a_callback_follows_to_the_next_loop_when_its_own_is_closed(servers: Servers) -> None:
    host = MCPHost(servers("--ask-sampling"))

    async def answer(request: innkeeper.ServerRequest) -> dict[str, Any]:
        return {"model": "m", "role": "assistant", "content": {"type": "text", "text": "mine"}}

    host.register_callback(answer)
    asyncio.run(host.initialize())
    assert "mine" in asyncio.run(echo(host))
    assert "mine" in asyncio.run(echo(host))
    asyncio.run(host.shutdown())


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


# Programs


def test_a_program_that_ends_without_closing_ends_at_once() -> None:
    assert run(
        """
async def main():
    host = MCPHost(config("--ignore-eof", "--grandchild", "--daemon"))
    await host.initialize()
    print(len((await host.call_tool("fx.echo", {"message": "a"}))["content"]))
start = time.monotonic()
asyncio.run(main())
import atexit
atexit.register(lambda: print(time.monotonic() - start < 5))
"""
    ) == "1\nTrue\n"


def test_a_program_without_await_that_ends_without_closing_ends_at_once() -> None:
    run(
        """
host = innkeeper.sync.MCPHost(config("--ask-sampling", "--ignore-eof"))
host.register_callback(lambda request: {"roots": []})
host.initialize()
host.call_tool("fx.echo", {"message": "a"})
"""
    )


def test_a_program_ends_while_a_callback_waits_for_ever() -> None:
    run(
        """
host = innkeeper.sync.MCPHost(config("--ask-sampling"))
host.register_callback(lambda request: time.sleep(1000))
host.initialize()
def end(number, frame):
    raise InterruptedError
signal.signal(signal.SIGALRM, end)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    host.call_tool("fx.echo", {"message": "a"})
except InterruptedError:
    print("interrupted")
"""
    )


def test_a_program_ends_with_futures_in_flight() -> None:
    """The loop is closed, hundreds of calls are not; the interpreter must survive its own end."""
    for _ in range(RUNS):
        run(
            """
async def main():
    host = MCPHost(config("--slow", "20"))
    await host.initialize()
    calls = [asyncio.ensure_future(host.call_tool("fx.echo", {"message": "a"})) for _ in range(300)]
    await asyncio.sleep(0.03)
asyncio.run(main())
"""
        )


def test_a_program_ends_while_threads_of_its_own_call() -> None:
    for _ in range(max(1, RUNS // 3)):
        run(
            """
host = innkeeper.sync.MCPHost(config())
host.initialize()
def work():
    for _ in range(300):
        host.call_tool("fx.echo", {"message": "a"})
for _ in range(4):
    threading.Thread(target=work).start()
"""
        )


def test_a_program_with_a_stderr_without_fileno_works() -> None:
    run(
        """
import io
sys.stderr = io.StringIO()
sys.__stderr__ = sys.stderr
with innkeeper.sync.MCPHost(config("--stderr", "hello")) as host:
    host.call_tool("fx.echo", {"message": "a"})
"""
    )


def test_a_programs_own_handler_of_sigchld_changes_nothing() -> None:
    """Proves: TR2.5"""
    assert "3\n" in run(
        """
import subprocess
def reap(number, frame):
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return
signal.signal(signal.SIGCHLD, reap)
with innkeeper.sync.MCPHost(config("--crash-after", "2")) as host:
    host.call_tool("fx.echo", {"message": "a"})
    try:
        host.call_tool("fx.echo", {"message": "a"})
    except innkeeper.ServerUnavailableError:
        print(3)
    host.restart_server("fx")
    host.call_tool("fx.echo", {"message": "a"})
def zombies():
    found = 0
    for entry in os.listdir("/proc"):
        try:
            fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        found += fields[0] == "Z" and fields[1] == str(os.getpid())
    return found
assert zombies() == 0
"""
    ).replace("\r", "")


def test_a_program_with_sigpipe_by_default_survives_a_dead_server() -> None:
    run(
        """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
async def main():
    host = MCPHost(config("--crash-after", "1"))
    await host.initialize()
    results = await asyncio.gather(
        *(host.call_tool("fx.echo", {"message": "a" * 100_000}) for _ in range(20)),
        return_exceptions=True)
    loop = asyncio.get_running_loop()
    return host
host = asyncio.run(main())
asyncio.run(host.shutdown())
"""
    )


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


INTERRUPTED = {
    "await": """
async def main():
    async with MCPHost(config("--hang-calls")) as host:
        print("ready", flush=True)
        await host.call_tool("fx.echo", {"message": "a"})
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
""",
    "wait": """
try:
    with innkeeper.sync.MCPHost(config("--hang-calls")) as host:
        print("ready", flush=True)
        host.call_tool("fx.echo", {"message": "a"})
except KeyboardInterrupt:
    print("interrupted")
""",
    "start": """
threading.Timer(0.3, lambda: print("ready", flush=True)).start()
try:
    innkeeper.sync.MCPHost(config("--hang-init")).initialize()
except KeyboardInterrupt:
    print("interrupted")
""",
}


@pytest.mark.parametrize("place", INTERRUPTED)
def test_ctrl_c_ends_a_wait(place: str) -> None:
    script = Script(INTERRUPTED[place])
    assert script.line() == "ready"
    # The call may not have begun: the interpreter handles the signal in either case.
    script.process.send_signal(signal.SIGINT)
    code, output, errors = script.finish()
    assert (code, output, errors) == (0, "interrupted\n", "")
    none_left(script.mark)


def test_a_killed_interpreter_leaves_no_process() -> None:
    script = Script(
        """
host = innkeeper.sync.MCPHost(config("--ignore-eof", "--grandchild", "--daemon"))
host.initialize()
print("ready", flush=True)
time.sleep(60)
"""
    )
    assert script.line() == "ready"
    assert len(script.servers()) >= 3
    script.process.kill()
    script.finish()
    none_left(script.mark)


def test_a_panic_is_an_internal_error_and_a_critical_record() -> None:
    """Proves: TR4.6"""
    if not hasattr(_core, "panicking_operation"):
        pytest.skip("only a debug build has a panic to offer")
    assert run(
        """
import logging
class Told(logging.Handler):
    def emit(self, record):
        print(record.levelname)
logging.getLogger("innkeeper").addHandler(Told())
from innkeeper import _core, _logging
_logging.start()
async def main():
    try:
        await _core.panicking_operation().future()
    except innkeeper.InternalError as error:
        print("report" in str(error), "as the test asked" in str(error))
asyncio.run(main())
try:
    _core.panicking_operation().wait()
except innkeeper.InternalError:
    print("waited")
"""
    ) == "CRITICAL\nTrue True\nCRITICAL\nwaited\n"


# Forks


def test_a_child_after_a_fork_has_hosts_of_its_own() -> None:
    assert run(
        """
host = innkeeper.sync.MCPHost(config())
host.initialize()
pid = os.fork()
if pid == 0:
    code = 1
    try:
        assert not host.is_initialized
        for use in (host.get_tools, host.get_metrics, lambda: host.call_tool("fx.echo", {"message": "a"})):
            try:
                use()
            except innkeeper.NotInitializedError as error:
                assert "another process" in str(error), error
            else:
                raise AssertionError("the parent's servers answered")
        with innkeeper.sync.MCPHost(config()) as own:
            own.call_tool("fx.echo", {"message": "a"})
        # The parent's host starts again in the child.
        host.initialize()
        host.call_tool("fx.echo", {"message": "a"})
        code = 0
    finally:
        sys.stdout.flush(); sys.stderr.flush()
        sys.exit(code)
_, status = os.waitpid(pid, 0)
print(status)
print(host.call_tool("fx.echo", {"message": "alive"})["content"][0]["text"])
host.shutdown()
"""
    ) == "0\nalive\n"


def test_a_child_in_a_with_block_leaves_the_parents_servers_alone() -> None:
    assert run(
        """
with innkeeper.sync.MCPHost(config()) as host:
    pid = os.fork()
    if pid == 0:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(host.call_tool("fx.echo", {"message": "alive"})["content"][0]["text"])
"""
    ) == "7\nalive\n"


def test_many_forks_under_load_end() -> None:
    """Threads of the parent hold locks at the moment of a fork; no child may wait for them."""
    run(
        f"""
import logging
class Quiet(logging.Handler):
    # A handler with a file would have the file's lock, which `io` does not free in a child.
    def emit(self, record):
        pass
logging.getLogger().addHandler(Quiet())
logging.getLogger("innkeeper").setLevel(logging.DEBUG)
host = innkeeper.sync.MCPHost(config())
host.initialize()
end = False
def work():
    while not end:
        host.call_tool("fx.echo", {{"message": "a"}})
        # A busy machine must leave time to the children.
        time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range({40 if LONG else 12}):
    pid = os.fork()
    if pid == 0:
        signal.alarm(25)
        with innkeeper.sync.MCPHost(config()) as own:
            own.call_tool("fx.echo", {{"message": "a"}})
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        print("a child hung")
        os._exit(1)
end = True
for thread in threads:
    thread.join()
host.shutdown()
"""
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing, os, sys
import innkeeper, innkeeper.sync
CONFIG = {{"servers": {{"fx": {{"command": os.environ["INNKEEPER_FIXTURE_SERVER"],
                                "env": {{"MARK": os.environ["TEST_MARK"]}}}}}}}}

def work(host):
    # A host comes through a pickle with its configuration.
    with host:
        return host.call_tool("fx.pid")["content"][0]["text"]

if __name__ == "__main__":
    host = innkeeper.sync.MCPHost(CONFIG)
    with host:
        context = multiprocessing.get_context({method!r})
        with context.Pool(2) as pool:
            pids = pool.map(work, [host] * 4)
            pool.close(); pool.join()
        assert len(set(pids)) == 4
        assert host.call_tool("fx.pid")["content"][0]["text"] not in pids
    print("done")
"""
    )
    import subprocess

    mark = nonce()
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TEST_MARK": mark},
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
    none_left(mark)


def test_workers_of_a_preloaded_application_start_the_host_themselves() -> None:
    """As gunicorn with `preload_app`: the master has a host, its workers are forks."""
    script = Script(
        """
host = MCPHost(config())
asyncio.run(host.initialize())
workers = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        async def serve():
            await host.initialize()
            await host.call_tool("fx.echo", {"message": "a"})
            print("served", flush=True)
            await asyncio.sleep(60)
        try:
            asyncio.run(serve())
        finally:
            os._exit(0)
    workers.append(pid)
print("started", flush=True)
time.sleep(60)
"""
    )
    lines = sorted(script.line() for _ in range(4))
    assert lines == ["served", "served", "served", "started"]
    # A killed master: its own servers end although its workers have copies of the pipes.
    before = set(processes(script.mark))
    script.process.kill()
    script.process.wait()
    workers = [
        pid for pid in before if pid != script.process.pid and "-X" in _arguments(pid)
    ]
    assert len(workers) == 3
    until(lambda: len(set(processes(script.mark)) - set(workers)) <= 6, "the master's servers' end")
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    none_left(script.mark)


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


# Growth


def _resources() -> tuple[int, int, int]:
    """Returns the resident memory in KiB, the threads and the open descriptors."""
    text = Path("/proc/self/statm").read_text().split()
    resident = int(text[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return resident, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


async def test_hosts_leave_nothing_behind(servers: Servers) -> None:
    """Proves: TR2.5"""
    rounds = 250 if LONG else 15

    async def some() -> None:
        hosts = [MCPHost(servers()) for _ in range(4)]
        for host in hosts:
            host.register_callback(lambda request: {})
        await asyncio.gather(*(host.initialize() for host in hosts))
        await asyncio.gather(*(echo(host) for host in hosts))
        await asyncio.gather(*(host.shutdown() for host in hosts))

    for _ in range(5):
        await some()
    gc.collect()
    memory, threads, descriptors = _resources()
    for _ in range(rounds):
        await some()
    gc.collect()
    await until_async(lambda: _resources()[2] <= descriptors, "the descriptors' end")
    assert _resources()[1] <= threads + 8
    assert _resources()[0] - memory < (8_000 if LONG else 4_000)


async def test_calls_leave_nothing_behind(servers: Servers) -> None:
    calls = 100_000 if LONG else 5_000
    async with MCPHost(servers()) as host:
        for _ in range(20):
            await asyncio.gather(*(echo(host) for _ in range(50)))
        gc.collect()
        memory, threads, descriptors = _resources()
        for _ in range(calls // 50):
            await asyncio.gather(*(echo(host) for _ in range(50)))
        gc.collect()
        assert _resources()[1] <= threads + 8
        assert _resources()[2] <= descriptors
        assert _resources()[0] - memory < 3_000


def test_loops_leave_nothing_behind(servers: Servers) -> None:
    with innkeeper.sync.MCPHost(servers()) as host:
        asking = MCPHost()
        asking._started(host._host)
        for _ in range(10):
            asyncio.run(echo(asking))
        gc.collect()
        _, threads, descriptors = _resources()
        for _ in range(100):
            asyncio.run(echo(asking))
        gc.collect()
        assert _resources()[2] <= descriptors and _resources()[1] <= threads

"""Whole programs: how they end, their signals, their streams, and what they leave behind."""

import signal

import pytest

from innkeeper import _core
from support import RUNS, Script, none_left, run


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
    # Whoever runs the tests in the background ignores the signal, and children inherit that.
    taken = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script = Script(taken + INTERRUPTED[place])
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
levels = []
class Told(logging.Handler):
    def emit(self, record):
        levels.append(record.levelname)
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
# The log's own thread may still have the second record.
end = time.monotonic() + 20
while len(levels) < 2 and time.monotonic() < end:
    time.sleep(0.01)
print(levels)
"""
    ) == "True True\nwaited\n['CRITICAL', 'CRITICAL']\n"


def test_a_future_that_an_interrupt_kept_from_its_await_is_not_reported() -> None:
    script = Script(
        """
import gc
async def main():
    host = MCPHost(config("--hang-calls"))
    await host.initialize()
    call = host._calls.call_tool("fx.echo", {"message": "a"}, None).future()
    await host.shutdown()
    while not call.done():
        await asyncio.sleep(0)
    del call
asyncio.run(main())
gc.collect()
"""
    )
    assert script.finish() == (0, "", "")

"""Processes that fork: whose servers are whose, and that no child waits for a lock of its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import LONG, Script, nonce, none_left, processes, run, until


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
            os.write(1, b"served" + bytes([10]))
            await asyncio.sleep(60)
        try:
            asyncio.run(serve())
        finally:
            os._exit(0)
    workers.append(pid)
os.write(1, b"started" + bytes([10]))
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

"""An interpreter with an agent is killed while its tool works."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import DEADLINE, processes

TESTS = "INNKEEPER_FRAMEWORK_TESTS"
"""The variable with the file of a framework's tests."""

IMPORT_SECONDS = 120
"""After this time, an agent that has called nothing fails the test; some packages import slowly."""


def test_a_killed_interpreter_leaves_no_server(nonce: str, tmp_path: Path) -> None:
    tests = os.environ.get(TESTS)
    if tests is None:
        pytest.skip(f"{TESTS} is not set: run `cargo xtask python --frameworks`")
    journal = tmp_path / "journal"
    # The server never ends by itself, and has a child.
    switches = f"--hang-calls --ignore-eof --grandchild --journal {journal}"
    agent = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-k", "the_same", tests],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "INNKEEPER_TEST_NONCE": nonce, "INNKEEPER_TEST_SWITCHES": switches},
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + IMPORT_SECONDS
        while not (journal.exists() and "tools/call" in journal.read_text()):
            assert agent.poll() is None and time.monotonic() < deadline, "no call"
            time.sleep(0.05)
        assert len(processes(nonce)) >= 2
    finally:
        agent.kill()
        agent.wait(DEADLINE)

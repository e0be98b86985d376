"""Goldens: runs of ``mcp_ghost`` that are recorded once and replayed as tests.

The files are those of ``innkeeper golden`` and ``innkeeper ask --record``, read by the same code.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from innkeeper import _core
from innkeeper.ghost import (
    GhostResult,
    Recording,
    RecordingState,
    restore_recording,
    set_recording,
)
from innkeeper.record import Record

__all__ = [
    "Golden",
    "assert_matches_golden",
    "load_golden",
    "mock_llm_with_golden",
    "record_goldens",
    "save_golden",
]


class Golden(Record):
    """A recorded run: the file's content as a dict. The members of its ``golden_output``, for example
    ``tool_chain`` and ``conversation_history``, are attributes too."""

    def __init__(self, native: "_core.Golden") -> None:
        super().__init__(native.content())
        self.__dict__["native"] = native

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return super().__getattr__(name)
        return getattr(Record(self.get("golden_output", {})), name)

    def __copy__(self) -> "Golden":
        return Golden(self.__dict__["native"])

    def __deepcopy__(self, memo: dict[int, Any]) -> "Golden":
        return Golden(self.__dict__["native"])


def load_golden(path: str | os.PathLike[str]) -> Golden:
    """Reads a golden. Rules in ``NAME.rules.json`` next to it take the place of its own."""
    return Golden(_core.Golden.load(path))


def save_golden(path: str | os.PathLike[str], result: GhostResult) -> None:
    """Writes the recording of a run, for its owner only and without secrets.

    The run must have been recorded: in a test with the marker ``record_golden``, or inside of
    ``record_goldens()``.
    """
    if result._golden is None:
        reason = result._no_golden or (
            "the run was not recorded: mark the test with `@pytest.mark.record_golden`, or make the run "
            "in `with record_goldens():`"
        )
        raise ValueError(f"cannot save `{os.fspath(path)}`: {reason}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    result._golden.save(path)


@contextlib.contextmanager
def record_goldens(test_name: str = "golden") -> Iterator[None]:
    """Records the runs of this block. Recording calls the real model, so it refuses to under ``CI``."""
    if os.environ.get("CI"):
        raise RuntimeError("goldens are not recorded under continuous integration (`CI` is set)")
    before = set_recording(Recording(test_name=test_name))
    try:
        yield
    finally:
        restore_recording(before)


class _Mock(contextlib.AbstractContextManager["_Mock"]):
    """Ends the replay at the end of a block."""

    def __init__(self, before: RecordingState) -> None:
        self._before = before

    def __exit__(self, *_: object) -> None:
        restore_recording(self._before)


def mock_llm_with_golden(golden: Golden) -> contextlib.AbstractContextManager[Any]:
    """Has the golden answer the runs of ``mcp_ghost`` from now on, the model's side and the servers'.

    The real loop runs over the recorded bytes: no network, no server, no key. A run that asks for something
    that was not recorded raises ``ReplayError``, which names what changed. In a test it ends with the test;
    in a fixture and outside of pytest, use it as ``with mock_llm_with_golden(golden):``.
    """
    return _Mock(set_recording(Recording(golden=golden.__dict__["native"])))


def assert_matches_golden(result: GhostResult, golden: Golden) -> None:
    """Fails with a report of what differs, by the golden's rules. Without rules, everything must be equal
    but what differs from run to run, such as times."""
    __tracebackhide__ = True
    unused = getattr(result, "_unused", ())
    if unused:
        raise AssertionError(f"nothing asked for {', '.join(unused)}")
    report = golden.__dict__["native"].compare(dict(result))
    if report is not None:
        raise AssertionError(report)

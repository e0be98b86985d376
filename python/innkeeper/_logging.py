"""Passes the log of the native module to ``logging``."""

import atexit
import logging
import os
import threading

from innkeeper import _core

# A library says nothing on stderr unless the application configures `logging`.
logging.getLogger("innkeeper").addHandler(logging.NullHandler())

_WAIT_SECONDS = 3600.0

_lock = threading.Lock()
_thread: threading.Thread | None = None
_thread_pid: int | None = None


def emit(level: int, target: str, message: str, fields: dict[str, str]) -> None:
    """Logs one record under ``innkeeper``; its fields are attributes of the record."""
    name = target.replace("::", ".")
    if name.startswith("innkeeper_"):
        name = "innkeeper." + name.removeprefix("innkeeper_")
    logger = logging.getLogger(name)
    if not logger.isEnabledFor(level):
        return
    text = " ".join([message, *(f"{key}={value}" for key, value in fields.items())])
    extra = {"innkeeper": fields, **{f"innkeeper_{key}": value for key, value in fields.items()}}
    record = logger.makeRecord(name, level, "(innkeeper)", 0, text, (), None, extra=extra)
    logger.handle(record)


def start() -> None:
    """Starts the thread that takes the records, once per process."""
    global _thread, _thread_pid
    with _lock:
        if _thread_pid == os.getpid():
            return
        _thread = threading.Thread(target=_run, name="innkeeper-log", daemon=True)
        _thread_pid = os.getpid()
        _thread.start()


def _run() -> None:
    while _core.next_log_records(_WAIT_SECONDS):
        pass


def _after_fork() -> None:
    """A thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_core.before_fork,
        after_in_parent=_core.after_fork_in_parent,
        after_in_child=_after_fork,
    )


@atexit.register
def _at_exit() -> None:
    """Ends all hosts, then the log: a thread must not wait for the interpreter when it is gone."""
    _core.shut_down()
    _core.stop_logging()
    if _thread is not None and _thread_pid == os.getpid():
        _thread.join(1.0)

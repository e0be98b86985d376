"""Launch parameters for frameworks that start their server themselves.

The framework starts the program ``innkeeper serve --stdio``, which starts the servers with their life
cycle, limits and logs. It is a host of its own: it shares no process with the host in Python.

A configuration that is not a file is never written to disk where the system
has files in memory (Linux): the program reads it from this process, which must live as long as the
program starts. Elsewhere, it is a file that only the user can read, removed at exit.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, TypedDict

from innkeeper._base import native_config
from innkeeper.errors import ConfigurationError

__all__ = ["StdioParameters", "stdio_parameters"]

PATH_KEYS = ("cwd", "envFile", "idTokenFile")
"""The keys of a server that are relative to the directory of its configuration."""


class StdioParameters(TypedDict):
    """What ``mcp.StdioServerParameters`` takes."""

    command: str
    args: list[str]
    env: dict[str, str]


def stdio_parameters(
    host: Any,
    config: str | dict[str, Any],
    server: str | None,
    names: str,
    lock: str | os.PathLike[str] | None,
    command: str | None,
) -> StdioParameters:
    """Returns the parameters; ``host`` is whose lifetime a file in memory has."""
    file = config if isinstance(config, str) else None
    _check_pins(file, lock)
    if isinstance(config, dict):
        # Refuses what JSON cannot express, by its place.
        native_config(config)
        file = _private_file(host, json.dumps(_with_absolute_paths(config)))
    args = ["serve", "--stdio", "--names", names]
    if server is not None:
        args += ["--server", server]
    return {
        "command": command or _program(),
        "args": [*args, "--config", os.path.abspath(str(file))],
        # A framework passes few variables on, and the configuration may need any.
        "env": dict(os.environ),
    }


def _check_pins(file: str | None, lock: str | os.PathLike[str] | None) -> None:
    """Refuses parameters with which the program would not apply the pins of the host."""
    if lock is None:
        return
    if file is not None and Path(lock).absolute() == Path(file).absolute().with_name("mcp.lock"):
        return
    raise ConfigurationError(
        "`innkeeper serve` reads pins only from `mcp.lock` beside a configuration file: "
        "use a file and this lock"
    )


def _with_absolute_paths(config: Any) -> Any:
    """Returns a configuration whose paths don't depend on the directory of its file."""
    if not isinstance(config, dict):
        return config
    return {
        key: os.path.abspath(value)
        if key in PATH_KEYS and isinstance(value, str)
        else value
        if key in ("env", "headers")
        else _with_absolute_paths(value)
        for key, value in config.items()
    }


def _private_file(owner: Any, text: str) -> str:
    if sys.platform == "linux":
        descriptor = os.memfd_create("mcp.json")
        with open(os.dup(descriptor), "w", encoding="utf-8") as file:
            file.write(text)
        weakref.finalize(owner, os.close, descriptor)
        return f"/proc/{os.getpid()}/fd/{descriptor}"
    descriptor, path = tempfile.mkstemp(prefix="innkeeper-", suffix=".json")
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    atexit.register(Path(path).unlink, missing_ok=True)
    return path


def _program() -> str:
    beside = Path(sys.executable).parent
    found = shutil.which("innkeeper", path=str(beside)) or shutil.which("innkeeper")
    if found is None:
        raise ConfigurationError(
            f"no program `innkeeper` beside `{Path(sys.executable).name}` and none in PATH: install "
            "the package's command, or pass `command`"
        )
    return found

"""Launch parameters for frameworks that start their server themselves.

The framework starts the program ``innkeeper serve --stdio``, which starts the servers with their life
cycle, limits and logs. It is a host of its own: it shares no process with the host in Python.

A configuration that is not a file, or only a part of one, is never written to disk where the system
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from innkeeper.errors import ConfigurationError, RoutingError

__all__ = ["StdioParameters", "stdio_parameters"]

PATH_KEYS = ("cwd", "envFile", "idTokenFile")
"""The keys of a server that are relative to the configuration's directory."""


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
    directory = Path(config).parent if isinstance(config, str) else Path()
    file = config if isinstance(config, str) and server is None else None
    _check_pins(file, lock)
    if file is None:
        content = _read(config) if isinstance(config, str) else config
        if server is not None:
            content = _only(content, server, directory.absolute())
        file = _private_file(host, json.dumps(content))
    return {
        "command": command or _program(),
        "args": ["serve", "--stdio", "--names", names, "--config", os.path.abspath(file)],
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
        "`innkeeper serve` reads pins only from `mcp.lock` beside a complete configuration file: "
        "use a file, no server name, and this lock"
    )


def _read(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot take one server from `{path}`: {error}; a file with comments has to be used "
            "without a server name"
        ) from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"`{path}` has no object")
    return content


def _only(content: Mapping[str, Any], server: str, directory: Path) -> dict[str, Any]:
    """Returns the configuration of one server and of what it depends on."""
    key = next((key for key in ("servers", "mcpServers") if key in content), "servers")
    entries: Mapping[str, Any] = content.get(key, {})
    if server not in entries:
        raise RoutingError(f"no server `{server}`", target=server, reason="server_not_found")
    needed: dict[str, Any] = {}
    missing = [server]
    while missing:
        name = missing.pop()
        if name in needed or name not in entries:
            continue
        entry = needed[name] = dict(entries[name])
        for path_key in PATH_KEYS:
            if isinstance(entry.get(path_key), str):
                entry[path_key] = str(directory / entry[path_key])
        missing += entry.get("dependencies", [])
    return {**content, key: needed}


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

"""What both hosts share, with and without ``await``."""

import os
from collections.abc import Mapping
from typing import Any, cast

from innkeeper import _callbacks, _core, _logging
from innkeeper.errors import NotInitializedError
from innkeeper.types import ServerCallback, ServerCapabilities, ServerMetrics, ServerStatus

ConfigSource = str | os.PathLike[str] | Mapping[str, Any]
"""The path of an ``mcp.json``, or its content as a dict."""


class HostBase:
    """A host with its configuration, before, during and after its life.

    A copy of a host, and a pickled host, have its configuration and its options, not its servers and
    not its callback: call ``initialize`` on the copy to start servers of its own.
    """

    def __init__(
        self,
        config: ConfigSource | None = None,
        *,
        allow_bare_names: bool = False,
        watch: bool = False,
        lock: str | os.PathLike[str] | None = None,
    ) -> None:
        self._config = _checked(config)
        self._allow_bare_names = allow_bare_names
        self._watch = watch
        self._lock = lock
        self._callback: ServerCallback | None = None
        self._running: _core.Host | None = None

    def get_tools(self) -> dict[str, ServerCapabilities]:
        """Returns the servers that accept calls, by name, each with all that it offers.

        A snapshot, without waiting and without traffic. The definitions have every member that the
        server sent. Raises ``NotInitializedError`` before ``initialize``.
        """
        return cast("dict[str, ServerCapabilities]", self._host.get_tools())

    def get_metrics(self) -> dict[str, ServerMetrics]:
        """Returns the counts and latencies of every server since the start, by name.

        Latencies are in seconds, rates from 0 to 1. Without waiting and without traffic.
        """
        return cast("dict[str, ServerMetrics]", self._host.get_metrics())

    def get_status(self) -> dict[str, ServerStatus]:
        """Returns the state of every server of the configuration, by name, also of those that don't
        run, with the reason."""
        return cast("dict[str, ServerStatus]", self._host.get_status())

    @property
    def is_initialized(self) -> bool:
        """Whether the servers have been started and not been shut down."""
        return self._running is not None

    @property
    def _host(self) -> _core.Host:
        if self._running is None:
            raise NotInitializedError("the host has no servers: call `initialize` first")
        return self._running

    def _start(self, config: ConfigSource | None, queue: _core.LoopQueue | None) -> _core.Operation:
        """Prepares the start of all servers."""
        if self._running is not None:
            raise NotInitializedError("the host has started already: call `shutdown` first")
        if config is not None:
            self._config = _checked(config)
        source = "mcp.json" if self._config is None else self._config
        _logging.start()
        return _core.Host.start(
            _core.Config(source),
            respond=None if self._callback is None else _callbacks.responder(self._callback),
            queue=queue,
            allow_bare_names=self._allow_bare_names,
            watch=self._watch,
            lock=self._lock,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_running"] = None
        state["_callback"] = None
        return state

    def __repr__(self) -> str:
        source = "a dict" if isinstance(self._config, dict) else (self._config or "mcp.json")
        state = "running" if self.is_initialized else "not running"
        return f"<{type(self).__module__}.{type(self).__name__} of {source}, {state}>"


def _checked(config: ConfigSource | None) -> str | dict[str, Any] | None:
    """Returns a path as a string and a mapping as a dict of its own."""
    if config is None:
        return None
    if isinstance(config, Mapping):
        return dict(config)
    return os.fspath(config)

"""What both hosts share, with and without ``await``."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from innkeeper import _core, _logging
from innkeeper._callbacks import Registration, Responder
from innkeeper.errors import MCPHostError, NotInitializedError
from innkeeper.types import ServerCapabilities, ServerMetrics, ServerStatus

if TYPE_CHECKING:
    from innkeeper.integrations.fastmcp import FastMCPTransport
    from innkeeper.integrations.stdio import StdioParameters
    from innkeeper.transport import HostTransport, Names

ConfigSource = str | os.PathLike[str] | Mapping[str, Any]
"""The path of an ``mcp.json``, or its content as a dict."""

_MAX_DEPTH = 20


class HostBase:
    """A host with its configuration, before, during and after its life.

    A copy of a host, and a pickled host, have its configuration and its options, not its servers and
    not its callback: call ``initialize`` on the copy to start servers of its own. The same holds for
    a host in a child process after a fork: the servers belong to the process that started them.

    A daemon thread should not use a host when the program ends: before 3.14, Python ends such threads
    in the middle of whatever they do. Close the host first, or use a thread that is no daemon.
    """

    def __init__(
        self,
        config: ConfigSource | None = None,
        *,
        allow_bare_names: bool = False,
        watch: bool = False,
        lock: str | os.PathLike[str] | None = None,
        max_message_bytes: int | None = None,
    ) -> None:
        if max_message_bytes is not None and max_message_bytes < 1:
            raise ValueError(f"`max_message_bytes` is {max_message_bytes}: use 1 or more")
        self._max_message_bytes = max_message_bytes
        self._config = _checked(config)
        self._allow_bare_names = allow_bare_names
        self._watch = watch
        self._lock = lock
        self._registration: Registration | None = None
        self._running: _core.Host | None = None
        self._running_pid: int | None = None

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
        """Whether this process has started the servers, and has not shut them down."""
        return self._running is not None and self._running_pid == os.getpid()

    @property
    def _host(self) -> _core.Host:
        if self._running is None:
            raise NotInitializedError("the host has no servers: call `initialize` first")
        return self._running

    def _start(
        self,
        config: ConfigSource | None,
        respond: Responder | None,
        queue: _core.LoopQueue | None,
    ) -> _core.Operation:
        """Prepares the start of all servers. ``_started`` or ``_not_started`` must follow."""
        source = self._config if config is None else _checked(config)
        operation = _core.Host.start(
            native_config("mcp.json" if source is None else source),
            respond=respond,
            queue=queue,
            allow_bare_names=self._allow_bare_names,
            watch=self._watch,
            lock=self._lock,
            max_message_bytes=self._max_message_bytes,
        )
        # Only one thread gets its own object back.
        claim = object()
        is_first = self.__dict__.setdefault("_starting", claim) is claim
        if not is_first or self.is_initialized:
            if is_first:
                self._not_started()
            raise MCPHostError("the host has started already: call `shutdown` first")
        self._config = source
        _logging.start()
        return operation

    def _started(self, running: _core.Host) -> None:
        self._running = running
        self._running_pid = os.getpid()
        self._not_started()

    def _not_started(self) -> None:
        self.__dict__.pop("_starting", None)

    def _ended(self, running: _core.Host) -> None:
        """Forgets a host that has been shut down, unless another one has started since."""
        if self._running is running:
            self._running = None

    def _to_shut_down(self) -> _core.Host | None:
        """Returns the running host if this process must stop it."""
        if "_starting" in self.__dict__:
            raise MCPHostError("the host is starting: cancel `initialize`, or wait for its end")
        if not self.is_initialized or _core.has_shut_down():
            # The servers of another process are not this one's to stop.
            self._running = None
        return self._running

    def transport(
        self, server_name: str | None = None, *, names: "Names" = "prefixed"
    ) -> "HostTransport":
        """Returns a transport for ``mcp.Client``, over the servers that this host runs.

        With ``server_name``, the client sees that server under its own names, otherwise all servers
        as ``SERVER.TOOL``; with ``names="flat"`` without the server in front, for models that allow
        no dot in a name. Needs the package ``mcp``. A question of a server (sampling, elicitation,
        roots) goes to the client if the server says for which call it asks, otherwise to the host's
        callback; servers ask only if the host has one.
        """
        from innkeeper.transport import HostTransport

        return HostTransport(self._host, server_name, names)

    def fastmcp_transport(
        self, server_name: str | None = None, *, names: "Names" = "prefixed"
    ) -> "FastMCPTransport":
        """Returns ``transport`` for ``fastmcp.Client``. Needs the package ``fastmcp``."""
        from innkeeper.integrations.fastmcp import FastMCPTransport

        return FastMCPTransport(self._host, server_name, names)

    def stdio_parameters(
        self,
        server_name: str | None = None,
        *,
        names: "Names | None" = None,
        command: str | None = None,
    ) -> "StdioParameters":
        """Returns ``command``, ``args`` and ``env`` for a framework that starts its server itself.

        The framework then starts ``innkeeper serve --stdio`` with this host's configuration, or only
        ``server_name`` and what it depends on, under its own names unless ``names`` says otherwise.
        The servers of this host are others, so it needn't be initialized. ``command`` is the path of
        the program ``innkeeper``; the default is the one beside the interpreter or in ``PATH``.
        """
        from innkeeper.integrations.stdio import stdio_parameters

        config = "mcp.json" if self._config is None else self._config
        if names is None:
            names = "prefixed" if server_name is None else "flat"
        return stdio_parameters(self, config, server_name, names, self._lock, command)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.update(_running=None, _running_pid=None, _registration=None)
        state.pop("_starting", None)
        return state

    def __repr__(self) -> str:
        source = "a dict" if isinstance(self._config, dict) else (self._config or "mcp.json")
        state = "running" if self.is_initialized else "not running"
        return f"<{type(self).__module__}.{type(self).__name__} of {source}, {state}>"


def native_config(config: ConfigSource) -> _core.Config:
    """Returns a configuration for the native module."""
    checked = _checked(config)
    assert checked is not None
    return _core.Config(checked)


def _checked(config: ConfigSource | None) -> str | dict[str, Any] | None:
    """Returns a path as a string and a mapping as a dict of its own."""
    if config is None:
        return None
    if isinstance(config, Mapping):
        return {key: _copied(value) for key, value in config.items()}
    return os.fspath(config)


def _copied(value: Any, depth: int = 0) -> Any:
    """Returns a copy of nested dicts and lists: the caller may change them before the start."""
    if depth == _MAX_DEPTH:
        # No configuration is this deep: what the native module refuses needs no copy.
        return value
    if isinstance(value, Mapping):
        return {key: _copied(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, depth + 1) for item in value]
    return value

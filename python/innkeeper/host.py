"""The host for asyncio programs."""

import weakref
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from innkeeper import _callbacks, _core
from innkeeper._base import ConfigSource, HostBase, native_config
from innkeeper._events import AsyncEvents
from innkeeper.types import (
    HostEvent,
    PromptResult,
    ReloadReport,
    ResourceResult,
    ServerCallback,
    ToolResult,
)


# `asyncio` is slow to import, and is there when a loop runs: functions import it.
if TYPE_CHECKING:
    import asyncio


class MCPHost(HostBase):
    """Starts MCP servers, routes calls to them, and stops them without leaving a process behind.

    The host belongs to the process, not to a task or a loop: you can open it in one task, call it
    from another loop or thread, and close it in a third. ``async with`` starts and stops the
    servers. A program that ends without ``shutdown`` ends at once, and its servers with it.

    ``config`` is the path of an ``mcp.json`` or its content as a dict; the default is ``mcp.json``
    in the working directory. With ``allow_bare_names``, a name that only one server has needs no
    server in front. With ``watch``, a change of the file is applied as ``reload`` does. ``lock`` is
    the path of an ``mcp.lock``: items that differ from their pins are withheld. A result may have
    ``max_message_bytes``, by default 16 MiB.
    """

    _queue: "weakref.ref[_core.LoopQueue] | None" = None
    """The queue of the loop on which callbacks run."""

    _loop: "weakref.ref[asyncio.AbstractEventLoop] | None" = None
    """That loop."""

    async def initialize(self, config_path: ConfigSource | None = None) -> None:
        """Starts all servers in dependency order.

        ``config_path`` replaces the constructor's configuration. Raises ``ConfigurationError``, with
        no server started, or ``ServerStartupError``, with all servers stopped again. To cancel stops
        the servers that have started.
        """
        # Callbacks run on the loop that starts the host.
        queue = _core.LoopQueue.running()
        respond = None if self._registration is None else self._responder()
        operation = self._start(config_path, respond, queue)
        try:
            running = await operation.future()
        except BaseException:
            self._not_started()
            raise
        self._remember(queue)
        self._started(running)

    async def shutdown(self) -> None:
        """Stops all servers, dependents first, and waits until no process of them is left.

        Calls in flight get a second. A second call does nothing. A cancelled shutdown goes on by itself.
        """
        running = self._to_shut_down()
        if running is None:
            return
        try:
            await running.shutdown().future()
        finally:
            self._ended(running)

    async def call_tool(
        self,
        tool_name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> ToolResult:
        """Calls the tool ``SERVER.TOOL`` and returns the server's result object.

        A failure that the tool reports is a result with ``isError``, not an exception. ``timeout`` is
        in seconds without a response or progress; the default is the server's. To cancel the call, or
        a timeout, tells the server. Never sends a call twice. Raises ``RoutingError``,
        ``ValidationError`` (nothing was sent), ``ServerUnavailableError``, ``TimeoutError``,
        ``ProtocolError``, ``ServerError`` or ``ResultWithheldError``.
        """
        call = self._calls.call_tool(tool_name, {} if parameters is None else parameters, timeout)
        return cast(ToolResult, await call.future())

    async def get_prompt(
        self,
        prompt_name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        use_cache: bool = True,
    ) -> PromptResult:
        """Gets the prompt ``SERVER.PROMPT`` with its arguments filled in.

        The result may come from the cache. With ``use_cache=False`` the server is asked.
        """
        arguments = {} if arguments is None else arguments
        request = self._calls.get_prompt(prompt_name, arguments, timeout, use_cache)
        return cast(PromptResult, await request.future())

    async def get_resource(
        self,
        resource_uri: str,
        *,
        server: str | None = None,
        timeout: float | None = None,
        use_cache: bool = True,
    ) -> ResourceResult:
        """Reads a resource from the server that offers it; ``server`` names one of several.

        A ``blob`` of the contents is ``bytes``. The result may come from the cache. With
        ``use_cache=False`` the server is asked.
        """
        request = self._calls.get_resource(resource_uri, server, timeout, use_cache)
        return cast(ResourceResult, await request.future())

    def register_callback(self, callback: ServerCallback | None) -> None:
        """Registers the function that answers requests of servers (sampling, elicitation, roots).

        ``callback`` takes a ``ServerRequest`` and returns the result object, or is a coroutine function
        that does. It runs on the loop that started the host, in a copy of the current context; when
        that loop no longer runs, on the loop of the next call. Register it before ``initialize``: only then
        do servers learn that they can ask. A later registration applies to servers that ask anyway,
        and to servers that start later. ``None`` removes the callback.
        """
        self._registration = None if callback is None else _callbacks.Registration(callback)
        if not self.is_initialized:
            return
        if callback is None:
            self._host.set_callback(None, None)
            return
        try:
            queue = _core.LoopQueue.running()
        except RuntimeError:
            # A thread without a loop registers for the loop that started the host.
            known = None if self._queue is None else self._queue()
            if known is None:
                raise
            self._host.set_callback(self._responder(), known)
            return
        self._host.set_callback(self._responder(), queue)
        self._remember(queue)

    def _responder(self) -> _callbacks.Responder:
        return _callbacks.Responder(self, _callbacks.on_loop)

    def _remember(self, queue: _core.LoopQueue) -> None:
        """Remembers the queue of the running loop, on which callbacks run."""
        import asyncio

        self._queue = weakref.ref(queue)
        self._loop = weakref.ref(asyncio.get_running_loop())

    @property
    def _calls(self) -> _core.Host:
        """The running host, for a call. Its servers may ask back: a loop must run to answer."""
        host = self._host
        if self._registration is not None and self._loop is not None:
            loop = self._loop()
            if loop is None or not loop.is_running():
                queue = _core.LoopQueue.running()
                host.set_callback(self._responder(), queue)
                self._remember(queue)
        return host

    async def reload(
        self, config: ConfigSource | None = None, *, restart_changed: bool = False
    ) -> ReloadReport:
        """Applies the changed configuration file, or another configuration.

        New servers start, removed ones stop, and unchanged ones stay as they are. Changed servers keep
        running with their old settings until they restart, at once with ``restart_changed``. After an
        error the old configuration stays.
        """
        source = None if config is None else native_config(config)
        report = self._host.reload(source, restart_changed).future()
        return cast(ReloadReport, await report)

    async def restart_server(self, server_name: str) -> None:
        """Stops a server in any state and starts it again. Its calls in flight fail."""
        await self._host.restart_server(server_name).future()

    async def stop_server(self, server_name: str) -> None:
        """Stops one server; ``restart_server`` starts it again."""
        await self._host.stop_server(server_name).future()

    def events(self) -> AsyncIterator[HostEvent]:
        """Returns what happens from now on, until the host ends: starts, crashes, calls, changed lists,
        notifications. A reader that lags more than 1,024 events gets one event ``lagged``."""
        return AsyncEvents(self._host.events())

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_queue": None, "_loop": None}

    async def __aenter__(self) -> "MCPHost":
        await self.initialize()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.shutdown()

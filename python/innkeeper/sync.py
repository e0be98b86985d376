"""The host without ``await``: for scripts, Celery, Alembic, Flask and other code without a loop."""

import asyncio
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, cast

from innkeeper import _callbacks, _core
from innkeeper._base import ConfigSource, HostBase, native_config
from innkeeper._events import events
from innkeeper.types import (
    HostEvent,
    PromptResult,
    ReloadReport,
    ResourceResult,
    ServerCallback,
    ToolResult,
)

__all__ = ["MCPHost"]


class MCPHost(HostBase):
    """``innkeeper.MCPHost`` without ``await``.

    Each method waits on the calling thread without holding the interpreter, so other threads go on,
    and Ctrl-C ends the wait. Any thread may call.
    """

    _callback_loop: "_CallbackLoop | None" = None

    def initialize(self, config_path: ConfigSource | None = None) -> None:
        """Starts all servers; see ``innkeeper.MCPHost.initialize``."""
        respond, queue = None, None
        if self._registration is not None:
            respond, queue = self._responder(), self._loop().queue
        operation = self._start(config_path, respond, queue)
        try:
            running = operation.wait()
        except BaseException:
            self._not_started()
            self._stop_loop()
            raise
        self._started(running)

    def shutdown(self) -> None:
        """Stops all servers; see ``innkeeper.MCPHost.shutdown``."""
        running = self._to_shut_down()
        if running is not None:
            try:
                running.shutdown().wait()
            finally:
                self._ended(running)
        self._stop_loop()

    def call_tool(
        self,
        tool_name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> ToolResult:
        """Calls a tool; see ``innkeeper.MCPHost.call_tool``."""
        call = self._host.call_tool(tool_name, {} if parameters is None else parameters, timeout)
        return cast(ToolResult, call.wait())

    def get_prompt(
        self,
        prompt_name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        use_cache: bool = True,
    ) -> PromptResult:
        """Gets a prompt; see ``innkeeper.MCPHost.get_prompt``."""
        arguments = {} if arguments is None else arguments
        request = self._host.get_prompt(prompt_name, arguments, timeout, use_cache)
        return cast(PromptResult, request.wait())

    def get_resource(
        self,
        resource_uri: str,
        *,
        server: str | None = None,
        timeout: float | None = None,
        use_cache: bool = True,
    ) -> ResourceResult:
        """Reads a resource; see ``innkeeper.MCPHost.get_resource``."""
        request = self._host.get_resource(resource_uri, server, timeout, use_cache)
        return cast(ResourceResult, request.wait())

    def register_callback(self, callback: ServerCallback | None) -> None:
        """Registers the answer to requests of servers; see ``innkeeper.MCPHost.register_callback``.

        A function runs on a thread of its own, so it may call the host; a coroutine runs on a loop of
        the host's own.
        """
        self._registration = None if callback is None else _callbacks.Registration(callback)
        if not self.is_initialized:
            return
        if callback is None:
            self._host.set_callback(None, None)
        else:
            self._host.set_callback(self._responder(), self._loop().queue)

    def reload(
        self, config: ConfigSource | None = None, *, restart_changed: bool = False
    ) -> ReloadReport:
        """Applies a changed configuration; see ``innkeeper.MCPHost.reload``."""
        source = None if config is None else native_config(config)
        return cast(ReloadReport, self._host.reload(source, restart_changed).wait())

    def restart_server(self, server_name: str) -> None:
        """Stops a server and starts it again."""
        self._host.restart_server(server_name).wait()

    def stop_server(self, server_name: str) -> None:
        """Stops one server; ``restart_server`` starts it again."""
        self._host.stop_server(server_name).wait()

    def events(self) -> Iterator[HostEvent]:
        """Yields what happens from now on, until the host ends."""
        return events(self._host.events())

    def _responder(self) -> _callbacks.Responder:
        return _callbacks.Responder(self, _callbacks.in_thread)

    def _loop(self) -> "_CallbackLoop":
        if self._callback_loop is None or self._callback_loop.pid != os.getpid():
            self._callback_loop = _CallbackLoop()
            # Also at the exit of the interpreter: the thread must not outlive it.
            weakref.finalize(self, self._callback_loop.stop)
        return self._callback_loop

    def _stop_loop(self) -> None:
        if self._callback_loop is not None:
            self._callback_loop.stop()
            self._callback_loop = None

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_callback_loop", None)
        return state

    def __enter__(self) -> "MCPHost":
        self.initialize()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()


class _CallbackLoop:
    """A thread with an event loop, on which callbacks are awaited."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="innkeeper-callbacks", daemon=True)
        self._thread.start()
        running = asyncio.run_coroutine_threadsafe(_running_queue(), self._loop)
        self.queue = running.result()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self._loop.close()

    def stop(self) -> None:
        """Ends the thread; waits for at most a second, because a callback may block it."""
        if self.pid != os.getpid():
            return
        try:
            self._loop.call_soon_threadsafe(self._loop.stop)
        except RuntimeError:
            # It has ended.
            return
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)


async def _running_queue() -> _core.LoopQueue:
    return _core.LoopQueue.running()

"""The servers of a running host as a transport of the official SDK's ``mcp.Client``.

No process starts and nothing is serialized twice: the messages pass through a gateway in this
process, which uses the host's running servers. Each transport is a client of its own.

A response becomes Python objects once, in slices between other work of the loop, so a result of
50 MB doesn't stall it. Importing this module imports ``mcp``, version 1.9 or later.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Literal, cast

import anyio
from mcp import types
from mcp.shared.message import SessionMessage

from innkeeper import _core

IS_MCP_1 = isinstance(types.JSONRPCMessage, type)
"""Before version 2, a message was a model around the request or response."""

__all__ = ["HostTransport", "Names", "ReadStream", "WriteStream"]

Names = Literal["prefixed", "flat"]
"""``SERVER.TOOL``, or the servers' own names."""


class HostTransport:
    """The transport that ``MCPHost.transport`` returns: ``async with`` yields the two streams.

    It can be opened on any event loop of asyncio, closed in another task, and opened again after
    that. To close it cancels the calls in flight at their servers.
    """

    def __init__(self, host: _core.Host, server: str | None, names: Names) -> None:
        if names not in ("prefixed", "flat"):
            raise ValueError(f"`names` is {names!r}: use \"prefixed\" or \"flat\"")
        self._host = host
        self._server = server
        self._names = names
        self._is_open = False
        self._pipe: _core.Pipe | None = None

    async def __aenter__(self) -> "tuple[ReadStream, WriteStream]":
        if self._is_open:
            raise RuntimeError("the transport is open: create another one for another client")
        self._is_open = True
        try:
            opened = _core.Pipe.open(self._host, self._server, self._names == "flat").future()
            self._pipe = pipe = await opened
        except BaseException:
            self._is_open = False
            raise
        return ReadStream(pipe), WriteStream(pipe)

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is None:
            return
        try:
            # The end of a cancelled task must not leave the connection open.
            await asyncio.shield(pipe.close().future())
        finally:
            self._is_open = False


class _Stream:
    """What both directions share: each belongs to one session."""

    def __init__(self, pipe: _core.Pipe) -> None:
        self._pipe = pipe
        self._is_closed = False

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class ReadStream(_Stream):
    """The messages from the servers."""

    def __init__(self, pipe: _core.Pipe) -> None:
        super().__init__(pipe)
        self._arrived: deque[dict[str, Any]] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """Waits for the next message. Raises ``anyio.EndOfStream`` after the last."""
        self._check_open()
        if not self._arrived:
            messages = await self._pipe.receive().future()
            if messages is None:
                raise anyio.EndOfStream
            self._arrived.extend(messages)
        return _session_message(self._arrived.popleft())

    def __aiter__(self) -> "ReadStream":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WriteStream(_Stream):
    """The messages to the servers."""

    async def send(self, item: SessionMessage) -> None:
        """Sends one message. Raises ``anyio.BrokenResourceError`` when the connection has ended."""
        self._check_open()
        text = item.message.model_dump_json(
            by_alias=True, exclude_none=IS_MCP_1, exclude_unset=not IS_MCP_1
        )
        if not await self._pipe.send(text.encode()).future():
            raise anyio.BrokenResourceError


def _session_message(message: dict[str, Any]) -> SessionMessage | Exception:
    """Wraps a message without validating it: the session validates what is in it."""
    envelope: Any
    if "result" in message:
        envelope = types.JSONRPCResponse.model_construct(**message)
    elif "error" in message:
        try:
            envelope = types.JSONRPCError.model_validate(message)
        except ValueError as error:
            return error
    elif "id" in message:
        envelope = types.JSONRPCRequest.model_construct(**message)
    else:
        envelope = types.JSONRPCNotification.model_construct(**message)
    if IS_MCP_1:
        envelope = cast(Any, types.JSONRPCMessage).model_construct(root=envelope)
    return SessionMessage(envelope)

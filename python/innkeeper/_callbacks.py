"""Answers requests of servers with the application's callback."""

import contextvars
import inspect
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from innkeeper import _core
from innkeeper.errors import CallbackError
from innkeeper.types import ServerCallback, ServerRequest

# `asyncio` is slow to import, and is there when a loop runs: functions import it.
if TYPE_CHECKING:
    import asyncio

    from innkeeper._base import HostBase

logger = logging.getLogger("innkeeper.callback")

_INTERNAL_ERROR = -32603

_Call = Callable[[ServerCallback, ServerRequest], Awaitable[Any]]


class Registration:
    """A callback, with the context variables at its registration."""

    def __init__(self, callback: ServerCallback) -> None:
        if not callable(callback):
            raise TypeError(f"the callback is `{type(callback).__name__}`, which cannot be called")
        self.callback = callback
        self.context = contextvars.copy_context()


class Responder:
    """What the native module calls on the loop for each request of a server.

    Knows its host weakly. A callback is often a method of the object that has the host; with a strong
    reference here, which Python's garbage collector cannot see in native code, the two would keep each
    other and their servers for ever.
    """

    def __init__(self, host: "HostBase", call: _Call) -> None:
        self._host = weakref.ref(host)
        self._call = call

    def __call__(
        self, request: dict[str, Any], reply: _core.Reply
    ) -> "asyncio.Task[None] | None":
        import asyncio

        host = self._host()
        registration = None if host is None else host._registration
        if registration is None:
            reply.error(_INTERNAL_ERROR, "the application has no callback")
            return None
        request["params"] = request["params"] or {}
        answer = _answer(self._call, registration.callback, ServerRequest(**request), reply)
        # Each request has a copy of the context in which the callback was registered.
        task: asyncio.Task[None] = registration.context.copy().run(asyncio.ensure_future, answer)
        return task


async def on_loop(callback: ServerCallback, request: ServerRequest) -> Any:
    """Calls the callback on the loop's thread."""
    result = callback(request)
    return await result if inspect.isawaitable(result) else result


async def in_thread(callback: ServerCallback, request: ServerRequest) -> Any:
    """Calls the callback on a thread of its own, so that it can wait for the host and for other
    callbacks. The thread is a daemon: a callback that waits for a user must not keep the program from
    its end."""
    import asyncio

    loop = asyncio.get_running_loop()
    called: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def finish(result: Any, error: Exception | None) -> None:
        if called.done():
            return
        if error is None:
            called.set_result(result)
        else:
            called.set_exception(error)

    def run() -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = context.run(callback, request)
        except BaseException as raised:
            # The others end a thread, not a server's wait; a future takes no `StopIteration`.
            is_plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            error = cast(Exception, raised) if is_plain else RuntimeError(type(raised).__name__)
        try:
            loop.call_soon_threadsafe(finish, result, error)
        except RuntimeError:
            # The loop is closed: nobody waits.
            if inspect.iscoroutine(result):
                result.close()

    threading.Thread(target=run, name="innkeeper-callback", daemon=True).start()
    result = await called
    return await result if inspect.isawaitable(result) else result


async def _answer(
    call: _Call, callback: ServerCallback, request: ServerRequest, reply: _core.Reply
) -> None:
    try:
        reply.result(await call(callback, request))
    except BaseException as error:
        # Whatever happens next, the server must not wait for an answer.
        if isinstance(error, CallbackError):
            refuse(reply, error.message, error.code)
            return
        # The text may not be meant for a server.
        refuse(reply, f"the application's callback raised {type(error).__name__}")
        if not isinstance(error, Exception):
            raise
        logger.exception("the callback failed for `%s` of `%s`", request.method, request.server)


def refuse(reply: _core.Reply, message: Any, code: Any = _INTERNAL_ERROR) -> None:
    """Answers with an error, however odd its parts are."""
    try:
        text = str(message).encode("utf-8", "replace").decode()
    except Exception:
        text = type(message).__name__
    reply.error(code if isinstance(code, int) and abs(code) < 2**31 else _INTERNAL_ERROR, text)

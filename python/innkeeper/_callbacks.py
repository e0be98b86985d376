"""Answers requests of servers with the application's callback."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable
from typing import Any

from innkeeper import _core
from innkeeper.errors import CallbackError
from innkeeper.types import ServerCallback, ServerRequest

logger = logging.getLogger("innkeeper.callback")

_INTERNAL_ERROR = -32603


def responder(callback: ServerCallback) -> Callable[[dict[str, Any], _core.Reply], Any]:
    """Returns the function that the native module calls on the loop for each request."""
    context = contextvars.copy_context()

    def respond(request: dict[str, Any], reply: _core.Reply) -> "asyncio.Task[None]":
        request["params"] = request["params"] or {}
        answer = _answer(callback, ServerRequest(**request), reply)
        # Each request has a copy of the context in which the callback was registered.
        task: asyncio.Task[None] = context.copy().run(asyncio.ensure_future, answer)
        return task

    return respond


async def _answer(callback: ServerCallback, request: ServerRequest, reply: _core.Reply) -> None:
    try:
        result = callback(request)
        if inspect.isawaitable(result):
            result = await result
        reply.result(result)
    except CallbackError as error:
        reply.error(error.code, error.message)
    except Exception as error:
        logger.exception("the callback failed for `%s` of `%s`", request.method, request.server)
        # The text may not be meant for a server.
        reply.error(_INTERNAL_ERROR, f"the application's callback raised {type(error).__name__}")

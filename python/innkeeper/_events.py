"""The events of a host as iterators."""

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from innkeeper import _core
from innkeeper.types import HostEvent

# `asyncio` is slow to import, and is there when a loop runs: functions import it.
if TYPE_CHECKING:
    import asyncio


def events(stream: _core.EventStream) -> Iterator[HostEvent]:
    """Yields the events of a subscription until the host ends."""
    while (event := stream.next().wait()) is not None:
        yield HostEvent(event)


class AsyncEvents(AsyncIterator[HostEvent]):
    """The events of a subscription until the host ends.

    A cancelled wait loses no event: the next one goes on with it. Several tasks share the events.
    """

    def __init__(self, stream: _core.EventStream) -> None:
        self._stream = stream
        # Waits that were cancelled, each of which gets the next event.
        self._left: "deque[asyncio.Future[Any]]" = deque()

    async def __anext__(self) -> HostEvent:
        import asyncio

        waiting = self._waiting()
        try:
            event = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not waiting.cancelled():
                self._left.append(waiting)
            raise
        if event is None:
            raise StopAsyncIteration
        return HostEvent(event)

    def _waiting(self) -> "asyncio.Future[Any]":
        import asyncio

        running = asyncio.get_running_loop()
        while self._left:
            left = self._left.popleft()
            if left.get_loop() is running:
                return left
            # Nobody waits on that loop any more, and this wait would stand behind it.
            with contextlib.suppress(RuntimeError):
                left.get_loop().call_soon_threadsafe(left.cancel)
        return self._stream.next().future()

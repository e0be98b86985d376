"""The events of a host as iterators."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from innkeeper import _core
from innkeeper.types import HostEvent


def events(stream: _core.EventStream) -> Iterator[HostEvent]:
    """Yields the events of a subscription until the host ends."""
    while (event := stream.next().wait()) is not None:
        yield HostEvent(event)


class AsyncEvents(AsyncIterator[HostEvent]):
    """The events of a subscription until the host ends.

    A cancelled wait loses no event: the next one goes on with it.
    """

    def __init__(self, stream: _core.EventStream) -> None:
        self._stream = stream
        self._next: asyncio.Future[Any] | None = None

    async def __anext__(self) -> HostEvent:
        waiting = self._next
        if waiting is None or waiting.get_loop() is not asyncio.get_running_loop():
            waiting = self._next = self._stream.next().future()
        event = await asyncio.shield(waiting)
        self._next = None
        if event is None:
            raise StopAsyncIteration
        return HostEvent(event)

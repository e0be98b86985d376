"""A host as a ``ClientTransport`` of FastMCP 4, which Pydantic AI and LangChain take, too."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client.transports.base import ClientTransport, TransportOptions
from mcp import ClientSession

from innkeeper import _core
from innkeeper.transport import HostTransport, Names

__all__ = ["FastMCPTransport"]


class FastMCPTransport(ClientTransport):
    """The transport that ``MCPHost.fastmcp_transport`` returns. Each session has a connection of
    its own, so several clients can share one transport."""

    def __init__(self, host: _core.Host, server: str | None, names: Names) -> None:
        self._host = host
        self._server = server
        self._names = names

    @asynccontextmanager
    async def connect_session(
        self,
        *,
        transport_options: TransportOptions | None = None,
        **session_kwargs: Any,
    ) -> AsyncGenerator[ClientSession, None]:
        """Opens a session that is not initialized yet."""
        session_class = (transport_options or TransportOptions()).session_class
        transport = HostTransport(self._host, self._server, self._names)
        async with (
            transport as (read_stream, write_stream),
            session_class(read_stream, write_stream, **session_kwargs) as session,
        ):
            yield session

    def __repr__(self) -> str:
        return f"<FastMCPTransport of {self._server or 'all servers'}>"

"""FastAPI endpoints for the clients of a running gateway's connection service.

    server = innkeeper.serve("mcp.json", registry=registry)
    app = FastAPI()
    innkeeper.fastapi.setup(app, server)

    @app.get("/hello")
    async def hello(connection=Depends(get_mcp_connection_dependency())):
        return {"hello": connection.client_info.name}

The gateway checks each request as it checks its own: host, origin, credential, and the id in the
header ``X-MCP-Connection-ID`` or the cookie ``mcp_connection_id``. Everything fails closed: without a
gateway, without a connection of this user, and without the feature, no endpoint runs.

Importing this module imports ``fastapi``.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response

from innkeeper.connections import *  # noqa: F403
from innkeeper.connections import (
    ConnectionState,
    ErrorCode,
    JsonRpcError,
    connection_from_json,
    only_running_server,
)
from innkeeper.connections import __all__ as _connection_names
from innkeeper.errors import MCPHostError
from innkeeper.serving import GatewayServer

__all__ = [
    *_connection_names,
    "ConnectionRejected",
    "FeatureRouter",
    "create_mcp_feature_router",
    "get_feature_dependency",
    "get_mcp_connection_dependency",
    "setup",
]


class ConnectionRejected(HTTPException):
    """The gateway's response to a request without a usable connection."""

    def __init__(self, status: int, body: str, headers: dict[str, str]) -> None:
        super().__init__(status, detail=body, headers=headers)
        self.body = body


def setup(app: FastAPI, server: GatewayServer | None = None) -> None:
    """Connects an application with a gateway; by default, the only one that runs in this process.

    Rejected requests then get the connection service's own responses. Call it before the
    application starts.
    """
    if server is not None:
        app.state.innkeeper = server
    app.add_exception_handler(ConnectionRejected, _respond)


async def _respond(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConnectionRejected)
    return Response(error.body, error.status_code, error.headers)


def get_mcp_connection_dependency() -> Callable[..., Any]:
    """Returns a dependency that is the active connection of the request: use it in ``Depends``."""
    return _dependency(None)


def get_feature_dependency(feature_name: str) -> Any:
    """Returns the default of an argument that is the connection of the request, which has the
    feature. A request without it gets the status 501."""
    return Depends(_dependency(feature_name))


def create_mcp_feature_router(
    app: FastAPI,
    feature_name: str,
    prefix: str = "",
    tags: Sequence[str] | None = None,
) -> "FeatureRouter":
    """Returns a router whose routes need a feature. Include ``get_router()`` in the application."""
    setup(app)
    return FeatureRouter(feature_name, prefix, tags)


class FeatureRouter:
    """Routes that need a feature; the check runs before each endpoint, whatever its arguments."""

    def __init__(self, feature_name: str, prefix: str, tags: Sequence[str] | None) -> None:
        self.feature_name = feature_name
        dependencies = [get_feature_dependency(feature_name)]
        self._router = APIRouter(prefix=prefix, tags=list(tags or ()), dependencies=dependencies)

    def add_api_route(
        self,
        path: str,
        endpoint: Callable[..., Any] | None = None,
        *,
        methods: Sequence[str] = ("GET",),
        **options: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Adds a route. Without ``endpoint``, the result decorates the endpoint."""
        if endpoint is not None:
            self._router.add_api_route(path, endpoint, methods=list(methods), **options)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            if endpoint is None:
                self._router.add_api_route(path, function, methods=list(methods), **options)
            return function

        return decorate

    def get_router(self) -> APIRouter:
        """Returns the router for ``app.include_router``; also for decorators such as ``get``."""
        return self._router


def _dependency(feature_name: str | None) -> Callable[..., Any]:
    async def find_connection(request: Request) -> ConnectionState:
        server = getattr(request.app.state, "innkeeper", None) or only_running_server()
        if server is None:
            raise _unavailable("no gateway runs: call `innkeeper.fastapi.setup`")
        headers = [(bytes(name), bytes(value)) for name, value in request.headers.raw]
        try:
            lookup = server._native.find_connection(headers, feature_name)
            found = await lookup.future()
        except MCPHostError:
            raise _unavailable("the gateway has ended") from None
        if "connection" not in found:
            raise ConnectionRejected(found["status"], found["body"], dict(found["headers"]))
        return connection_from_json(found["connection"], server)

    return find_connection


def _unavailable(reason: str) -> ConnectionRejected:
    error = JsonRpcError(ErrorCode.TRANSPORT_ERROR, reason)
    return ConnectionRejected(
        503, json.dumps(error.to_dict()), {"content-type": "application/json"}
    )

"""The gateway inside this process: all servers of a configuration as one MCP server over HTTP."""

import asyncio
import os
import weakref
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, Literal

from innkeeper import _core, _logging
from innkeeper._base import ConfigSource, native_config
from innkeeper.errors import ConfigurationError, NotInitializedError

__all__ = [
    "CapabilityRegistry",
    "FeatureCapabilityLevel",
    "GatewayServer",
    "VersionCompatibility",
    "serve",
]


class FeatureCapabilityLevel(str, Enum):
    """How much a server needs a feature."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OPTIONAL = "optional"
    EXPERIMENTAL = "experimental"


class VersionCompatibility(str, Enum):
    """Which versions of a client fit the server's version of a feature."""

    EXACT = "exact"
    COMPATIBLE = "compatible"
    ANY = "any"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"


@dataclass(frozen=True)
class _Feature:
    name: str
    version: str | None
    level: str
    version_compatibility: str
    properties: dict[str, Any]
    required_properties: list[str]


class CapabilityRegistry:
    """The features that an application adds to those of the connection service.

    A feature with the name of one of the service's own (``core.jsonrpc``, ``core.transport.http``,
    ``core.transport.sse``, ``tools``, ``prompts``, ``resources``) replaces it.
    """

    def __init__(self) -> None:
        self._features: dict[str, _Feature] = {}

    def register_feature(
        self,
        name: str,
        *,
        properties: Mapping[str, Any] | None = None,
        level: FeatureCapabilityLevel = FeatureCapabilityLevel.OPTIONAL,
        version_compatibility: VersionCompatibility = VersionCompatibility.COMPATIBLE,
        required_properties: Sequence[str] = (),
        version: str | None = None,
    ) -> None:
        """Adds a feature, once for each name.

        The version is ``version``, otherwise ``version`` of the properties, otherwise ``1.0.0``.
        ``required_properties`` names what a client's feature must have.
        """
        if name in self._features:
            raise ConfigurationError(f"feature `{name}` is already registered")
        self._features[name] = _Feature(
            name,
            version,
            FeatureCapabilityLevel(level).value,
            VersionCompatibility(version_compatibility).value,
            dict(properties or {}),
            list(required_properties),
        )


@dataclass(frozen=True)
class _Settings:
    """What the native module takes."""

    listen: str | None
    allow_unauthenticated: bool
    names: str | None
    store: str | None
    connections: dict[str, Any] | None = field(default=None)


def serve(
    config: ConfigSource | None = None,
    *,
    listen: str | None = "127.0.0.1:0",
    names: Literal["prefixed", "flat"] | None = None,
    allow_unauthenticated: bool = False,
    lock: str | os.PathLike[str] | None = None,
    registry: CapabilityRegistry | None = None,
    connections: bool | None = None,
    server_name: str | None = None,
    server_version: str | None = None,
    prefix: str | None = None,
    connection_expiry: float | None = None,
    cookie_secure: Literal["auto", "always", "never"] = "auto",
    store: str | None = None,
) -> "GatewayServer":
    """Serves all servers of a configuration as one MCP server over HTTP, inside this process.

    Outside of an event loop, the servers have started when the call returns. On a loop, ``await`` the
    call or use ``async with``, so that the loop goes on meanwhile::

        with innkeeper.serve("mcp.json") as server:      # a script, a thread
            print(server.url)

        async with innkeeper.serve("mcp.json") as server:
            print(server.url)

    The gateway runs on threads of its own and has servers of its own. Like a host, it ends with the
    interpreter at the latest. ``listen`` is an address with a port; port 0 selects a free one, and
    ``None`` takes ``serve.listen`` of the configuration. Keys of ``serve`` in the configuration
    apply as for the command ``innkeeper serve``; an address of the network needs authentication, or
    both ``serve.allowUnauthenticated`` and ``allow_unauthenticated``.

    ``registry`` has the features of the application for the connection service; the arguments after
    it are that service's settings. Their defaults are the variables ``MCP_ENABLED``,
    ``MCP_SERVER_NAME``, ``MCP_SERVER_VERSION``, ``MCP_PREFIX``, ``MCP_CONNECTION_EXPIRY`` and
    ``MCP_REDIS_URL``; ``store`` is the URL of a Redis, and without one connections are in memory.

    Raises ``ConfigurationError`` if the configuration or a setting is wrong, or if nothing can listen
    on the address. A server that doesn't start is left out, and starts when it can.
    """
    if connections is None:
        connections = _flag("MCP_ENABLED", True)
    service = {
        "server_name": server_name or _variable("MCP_SERVER_NAME", "beam-mcp-server"),
        "server_version": server_version or _variable("MCP_SERVER_VERSION", "1.0.0"),
        "prefix": prefix or _variable("MCP_PREFIX", "/api/v1/mcp"),
        "expiry": _seconds("MCP_CONNECTION_EXPIRY", 1800) if connection_expiry is None else connection_expiry,
        "cookie_secure": cookie_secure,
        "features": [
            asdict(feature) for feature in (registry or CapabilityRegistry())._features.values()
        ],
    }
    settings = _Settings(
        listen=listen,
        allow_unauthenticated=allow_unauthenticated,
        names=names,
        store=store or _variable("MCP_REDIS_URL", None),
        connections=service if connections else None,
    )
    server = GatewayServer(native_config("mcp.json" if config is None else config), settings, lock)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server._start()
    return server


class GatewayServer:
    """A gateway; create it with ``serve``."""

    def __init__(
        self,
        config: _core.Config,
        settings: _Settings,
        lock: str | os.PathLike[str] | None,
    ) -> None:
        self._config = config
        self._settings = settings
        self._lock = lock
        self._running: _core.GatewayServer | None = None
        self._is_starting = False

    @property
    def address(self) -> str:
        """The address on which the gateway listens, such as ``127.0.0.1:7300``."""
        return self._native.address

    @property
    def base_url(self) -> str:
        """The URL before every path of the gateway."""
        return f"http://{self.address}"

    @property
    def url(self) -> str:
        """The URL for MCP clients."""
        return f"{self.base_url}/mcp"

    @property
    def connections_url(self) -> str | None:
        """The URL of the connection service; ``None`` without the service."""
        prefix = self._native.connection_prefix
        return None if prefix is None else self.base_url + prefix

    def close(self) -> None:
        """Ends the gateway and stops all its servers. Requests in flight get up to 10 s.

        On an event loop, use ``aclose``. A second call does nothing.
        """
        running = self._end()
        if running is not None:
            running.close().wait()

    async def aclose(self) -> None:
        """``close`` for an event loop."""
        running = self._end()
        if running is not None:
            await asyncio.shield(running.close().future())

    @property
    def _native(self) -> _core.GatewayServer:
        if self._running is None:
            raise NotInitializedError(
                "the gateway does not run: on an event loop, `await` it or use `async with`"
            )
        return self._running

    def _operation(self) -> _core.Operation:
        if self._running is not None:
            raise NotInitializedError("the gateway runs already")
        _logging.start()
        return _core.GatewayServer.start(
            self._config, settings=asdict(self._settings), lock=self._lock
        )

    def _start(self) -> None:
        self._running = self._operation().wait()
        RUNNING.add(self)

    async def _astart(self) -> "GatewayServer":
        if self._running is None:
            if self._is_starting:
                raise NotInitializedError("the gateway is starting: await it once")
            self._is_starting = True
            try:
                self._running = await self._operation().future()
            finally:
                self._is_starting = False
            RUNNING.add(self)
        return self

    def _end(self) -> "_core.GatewayServer | None":
        running, self._running = self._running, None
        RUNNING.discard(self)
        return running

    def __await__(self) -> "Generator[Any, None, GatewayServer]":
        return self._astart().__await__()

    def __enter__(self) -> "GatewayServer":
        if self._running is None:
            self._start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> "GatewayServer":
        return await self._astart()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "not running" if self._running is None else self.url
        return f"<innkeeper.GatewayServer, {state}>"


RUNNING: "weakref.WeakSet[GatewayServer]" = weakref.WeakSet()
"""The gateways of this process that run."""


def _variable(name: str, default: Any) -> Any:
    """Returns a variable of the environment; an empty one counts as absent."""
    return os.environ.get(name) or default


def _flag(name: str, default: bool) -> bool:
    text = str(_variable(name, default)).lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise ConfigurationError(f"variable `{name}`: the value must be `true` or `false`")


def _seconds(name: str, default: float) -> float:
    text = _variable(name, default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if seconds <= 0:
        raise ConfigurationError(f"variable `{name}`: the value must be a number of seconds")
    return seconds

"""The shapes of what the host returns: dicts, as the servers sent them."""

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Union


class ServerState(str, enum.Enum):
    """The state of a server."""

    STARTING = "starting"
    READY = "ready"
    UNAVAILABLE = "unavailable"
    SHUTDOWN = "shutdown"


class _ToolResult(TypedDict):
    content: list[dict[str, Any]]


class ToolResult(_ToolResult, total=False):
    """The result of a tool. A failure that the tool itself reports has ``isError``.

    MCP requires ``content``, and a few servers leave it out.
    """

    structuredContent: Any
    isError: bool
    _meta: dict[str, Any]


class _PromptResult(TypedDict):
    messages: list[dict[str, Any]]


class PromptResult(_PromptResult, total=False):
    """A prompt with its arguments filled in."""

    description: str
    _meta: dict[str, Any]


class _ResourceResult(TypedDict):
    contents: list[dict[str, Any]]


class ResourceResult(_ResourceResult, total=False):
    """The contents of a resource: each has ``text``, or ``blob`` with its ``bytes``."""

    _meta: dict[str, Any]


class _ServerCapabilities(TypedDict):
    state: str
    transport: str
    tools: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    resourceTemplates: list[dict[str, Any]]


class ServerCapabilities(_ServerCapabilities, total=False):
    """What a server offers; every definition has all members that the server sent."""

    protocolVersion: str
    serverInfo: dict[str, Any]
    instructions: str
    missing: list[dict[str, Any]]
    """The lists that the server declares and does not send."""


class ServerMetrics(TypedDict):
    """Counts and latencies of a server since the start; latencies are in seconds, rates from 0 to 1."""

    request_count: int
    success_count: int
    error_count: int
    tool_error_count: int
    cancelled_count: int
    success_rate: float
    error_rate: float
    avg_latency: float
    min_latency: float
    max_latency: float
    p50_latency: float
    p95_latency: float
    p99_latency: float
    cache_hits: int
    cache_misses: int
    cache_entries: int
    cache_bytes: int


class ServerStatus(TypedDict):
    """The state of a configured server, whether it runs or not."""

    state: str
    pid: int | None
    reason: str | None
    hint: str | None
    in_flight: int
    stderr: str
    pending_restart: list[str]


class ReloadReport(TypedDict):
    """What a reload changed."""

    added: list[str]
    removed: list[str]
    changed: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    invalid: list[str]
    warnings: list[str]


class HostEvent(dict[str, Any]):
    """An event of the host: ``kind``, and the members of that kind, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class ServerRequest:
    """A request of a server to the application."""

    server: str
    """The server; only it receives the answer."""
    method: str
    """``sampling/createMessage``, ``elicitation/create``, ``roots/list`` or a custom method."""
    params: dict[str, Any]
    """The parameters as the server sent them."""
    call: dict[str, Any] | None = None
    """The call that the request belongs to: ``id``, ``method`` and ``item``, if it is known."""
    key: str | None = None
    """The name that the server gave the request, if any."""

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None


ServerCallback = Callable[[ServerRequest], Union[dict[str, Any], Awaitable[dict[str, Any]]]]
"""Answers a request of a server with a result object: a function, or a coroutine function."""

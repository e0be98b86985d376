"""Innkeeper hosts MCP servers for Python applications.

``MCPHost`` starts the servers of an ``mcp.json`` and routes calls to them; ``innkeeper.sync`` has
the same without ``await``.

    import asyncio
    from innkeeper import MCPHost

    async def main():
        async with MCPHost("mcp.json") as host:
            result = await host.call_tool("files.read_text_file", {"path": "a.txt"})
            print(result["content"][0]["text"])

    asyncio.run(main())
"""

from typing import TYPE_CHECKING, Any

from innkeeper._core import __version__
from innkeeper.errors import (
    CallbackError,
    ConfigurationError,
    GoldenError,
    InternalError,
    MCPHostError,
    ModelError,
    NotInitializedError,
    ProtocolError,
    ReplayError,
    ResultWithheldError,
    RoutingError,
    ServerError,
    ServerStartupError,
    ServerUnavailableError,
    TimeoutError,
    ValidationError,
)
from innkeeper.host import MCPHost
from innkeeper.types import (
    HostEvent,
    PromptResult,
    ReloadReport,
    ResourceResult,
    ServerCapabilities,
    ServerMetrics,
    ServerRequest,
    ServerState,
    ServerStatus,
    ToolResult,
)

if TYPE_CHECKING:
    from innkeeper.chat import Chat, PromptHost, intercept
    from innkeeper.ghost import GhostResult, MCPGhostConfig, mcp_ghost, mcp_ghost_stream
    from innkeeper.llm import Completion, LLMClient, LLMProvider, get_llm_client
    from innkeeper.serving import CapabilityRegistry, GatewayServer, serve
    from innkeeper.tools import SystemPromptGenerator, format_tool_response

# Imported when used: a program that only hosts servers does not pay for models and gateways.
_MODULES = {
    "innkeeper.chat": ("Chat", "PromptHost", "intercept"),
    "innkeeper.ghost": ("GhostResult", "MCPGhostConfig", "mcp_ghost", "mcp_ghost_stream"),
    "innkeeper.llm": ("Completion", "LLMClient", "LLMProvider", "get_llm_client"),
    "innkeeper.serving": ("CapabilityRegistry", "GatewayServer", "serve"),
    "innkeeper.tools": ("SystemPromptGenerator", "format_tool_response"),
}

__all__ = [
    "CallbackError",
    "CapabilityRegistry",
    "Chat",
    "Completion",
    "ConfigurationError",
    "GatewayServer",
    "GhostResult",
    "GoldenError",
    "HostEvent",
    "InternalError",
    "LLMClient",
    "LLMProvider",
    "MCPGhostConfig",
    "MCPHost",
    "MCPHostError",
    "ModelError",
    "NotInitializedError",
    "PromptHost",
    "PromptResult",
    "ProtocolError",
    "ReloadReport",
    "ReplayError",
    "ResourceResult",
    "ResultWithheldError",
    "RoutingError",
    "ServerCapabilities",
    "ServerError",
    "ServerMetrics",
    "ServerRequest",
    "ServerStartupError",
    "ServerState",
    "ServerStatus",
    "ServerUnavailableError",
    "SystemPromptGenerator",
    "TimeoutError",
    "ToolResult",
    "ValidationError",
    "__version__",
    "format_tool_response",
    "get_llm_client",
    "intercept",
    "mcp_ghost",
    "mcp_ghost_stream",
    "serve",
]


def __getattr__(name: str) -> Any:
    import importlib

    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'innkeeper' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

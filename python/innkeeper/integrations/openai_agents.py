"""A host's servers for the OpenAI Agents SDK.

    from innkeeper.integrations.openai_agents import HostServer

    agent = Agent(name="…", mcp_servers=[HostServer(host, "files")])

There is no session to keep on one task: the host runs the server, and any task may connect, call and
clean up.
"""

import base64
from typing import Any

from agents.mcp import MCPServer
from mcp.types import (
    CallToolResult,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Tool,
)

from innkeeper._base import HostBase
from innkeeper.errors import RoutingError

__all__ = ["HostServer"]


class HostServer(MCPServer):
    """One server of a running host, with its own names.

    ``options`` are those of the SDK's ``MCPServer``, for example ``require_approval``. To connect and
    to clean up does nothing: the host has started the server, and stops it. An exception of a call,
    for example of a crashed server, reaches the model as the SDK's ``failure_error_function`` says.
    """

    def __init__(self, host: HostBase, server_name: str, **options: Any) -> None:
        super().__init__(**options)
        self._host = host
        self._server_name = server_name

    @property
    def name(self) -> str:
        """The server's name in the host's configuration."""
        return self._server_name

    async def connect(self) -> None:
        """Checks that the host has the server."""
        if self._server_name not in self._host.get_status():
            raise RoutingError(
                f"no server `{self._server_name}`",
                target=self._server_name,
                reason="server_not_found",
            )

    async def cleanup(self) -> None:
        """Does nothing: the host stops its servers."""

    async def __aenter__(self) -> "HostServer":
        await self.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cleanup()

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        """Returns the tools; none while the server is unavailable."""
        return [Tool.model_validate(tool) for tool in self._offered("tools")]

    async def call_tool(
        self,
        tool_name: str,
        arguments: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
    ) -> CallToolResult:
        """Calls a tool. The host sends its own ``_meta``; ``meta`` isn't supported."""
        if meta:
            raise ValueError("the host sends no `_meta` of the caller: remove `tool_meta_resolver`")
        result = await self._native.call_tool(self._full(tool_name), arguments or {}, None).future()
        return CallToolResult.model_validate(result)

    async def list_prompts(self) -> ListPromptsResult:
        """Returns the prompts."""
        return ListPromptsResult.model_validate({"prompts": self._offered("prompts")})

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None
    ) -> GetPromptResult:
        """Gets a prompt."""
        request = self._native.get_prompt(self._full(name), arguments or {}, None, True)
        return GetPromptResult.model_validate(await request.future())

    async def list_resources(self, cursor: str | None = None) -> ListResourcesResult:
        """Returns the resources, all at once."""
        return ListResourcesResult.model_validate({"resources": self._offered("resources")})

    async def list_resource_templates(
        self, cursor: str | None = None
    ) -> ListResourceTemplatesResult:
        """Returns the resource templates, all at once."""
        templates = self._offered("resourceTemplates")
        return ListResourceTemplatesResult.model_validate({"resourceTemplates": templates})

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Reads a resource."""
        request = self._native.get_resource(str(uri), self._server_name, None, True)
        result = await request.future()
        for content in result["contents"]:
            if isinstance(content.get("blob"), bytes):
                content["blob"] = base64.b64encode(content["blob"]).decode()
        return ReadResourceResult.model_validate(result)

    @property
    def _native(self) -> Any:
        return self._host._host

    def _full(self, name: str) -> str:
        return f"{self._server_name}.{name}"

    def _offered(self, kind: str) -> list[Any]:
        capabilities: dict[str, Any] = dict(self._host.get_tools().get(self._server_name, {}))
        return list(capabilities.get(kind, ()))

"""The connections and messages of the connection service, as data."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum, IntEnum
from typing import Any

from innkeeper.errors import MCPHostError
from innkeeper.serving import (
    RUNNING,
    CapabilityRegistry,
    FeatureCapabilityLevel,
    GatewayServer,
    VersionCompatibility,
)

__all__ = [
    "CapabilityRegistry",
    "ClientInfo",
    "ConnectionLifecycleState",
    "ConnectionState",
    "ErrorCode",
    "FeatureCapabilityLevel",
    "JsonRpcBatchRequest",
    "JsonRpcBatchResponse",
    "JsonRpcError",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "MCPMessage",
    "MessageCategory",
    "MessageDirection",
    "MessageMetadata",
    "MessageType",
    "ResourceNotFoundError",
    "ValidationError",
    "VersionCompatibility",
    "create_jsonrpc_error_response",
    "create_jsonrpc_success_response",
    "internal_error",
    "is_feature_enabled",
    "resource_not_found",
    "validation_error",
]


class ConnectionLifecycleState(str, Enum):
    """The state of a connection."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass
class ClientInfo:
    """The program of a client."""

    name: str
    version: str
    additional_info: dict[str, Any] = field(default_factory=dict)


@dataclass
class ConnectionState:
    """A connection of the connection service.

    ``user_id`` is who opened the connection, as the gateway's authentication verified it.
    """

    id: str
    client_info: ClientInfo
    client_capabilities: dict[str, Any]
    state: ConnectionLifecycleState
    created_at: datetime
    last_activity: datetime
    user_id: str | None = None
    session_data: dict[str, Any] = field(default_factory=dict)
    _server: GatewayServer | None = field(default=None, repr=False, compare=False)


def connection_from_json(connection: dict[str, Any], server: GatewayServer) -> ConnectionState:
    """Returns the connection of a server from its JSON form."""
    return ConnectionState(
        id=connection["id"],
        client_info=ClientInfo(**connection["client_info"]),
        client_capabilities=connection["client_capabilities"],
        state=ConnectionLifecycleState(connection["state"]),
        created_at=_time(connection["created_at"]),
        last_activity=_time(connection["last_activity"]),
        user_id=connection["user_id"],
        session_data=connection["session_data"],
        _server=server,
    )


def _time(text: str) -> datetime:
    """Parses a time in UTC; Python has microseconds, and 3.10 reads no other number of digits."""
    seconds, _, rest = text.partition(".")
    seconds = seconds.rstrip("Z")
    microseconds = int((re.sub(r"\D", "", rest) + "000000")[:6])
    time = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S")
    return time.replace(microsecond=microseconds, tzinfo=timezone.utc)


def only_running_server() -> GatewayServer | None:
    """Returns the gateway of this process; ``None`` if several run, or none."""
    running = list(itertools.islice(RUNNING, 2))
    return running[0] if len(running) == 1 else None


def is_feature_enabled(feature_name: str, connection: ConnectionState | None) -> bool:
    """Whether a connection can use a feature: the server has it, the client declared it, and the
    connection is active. Without a connection or a running server, nothing is enabled."""
    if connection is None or connection.state is not ConnectionLifecycleState.ACTIVE:
        return False
    server = connection._server or only_running_server()
    if server is None:
        return False
    try:
        return server._native.is_feature_enabled(feature_name, connection.client_capabilities)
    except (MCPHostError, TypeError, ValueError):
        return False


class ErrorCode(IntEnum):
    """The code of an error."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    PROTOCOL_VERSION_MISMATCH = -32000
    INCOMPATIBLE_CAPABILITIES = -32001
    CONNECTION_EXPIRED = -32002
    CONNECTION_NOT_FOUND = -32003
    CONNECTION_ALREADY_EXISTS = -32004
    INVALID_CONNECTION_STATE = -32005
    FEATURE_NOT_ENABLED = -32006
    TRANSPORT_ERROR = -32100
    VALIDATION_ERROR = -32200
    RESOURCE_NOT_FOUND = -32300
    RESOURCE_ALREADY_EXISTS = -32301
    RESOURCE_ACCESS_DENIED = -32302
    TOOL_NOT_FOUND = -32400
    TOOL_EXECUTION_ERROR = -32401
    JOB_NOT_FOUND = -32500
    JOB_ALREADY_EXISTS = -32501
    JOB_EXECUTION_ERROR = -32502


class ResourceNotFoundError(Exception):
    """No resource has the id."""

    def __init__(self, resource_id: str) -> None:
        super().__init__(f"no resource `{resource_id}`")
        self.resource_id = resource_id


class ValidationError(ValueError):
    """The structure of a message is wrong."""


@dataclass
class JsonRpcError:
    """The error of a response."""

    code: ErrorCode
    message: str
    data: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; without ``data`` if there is none."""
        error: dict[str, Any] = {"code": int(self.code), "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


def resource_not_found(resource_id: str) -> JsonRpcError:
    """The error for an unknown resource."""
    return JsonRpcError(ErrorCode.RESOURCE_NOT_FOUND, f"no resource `{resource_id}`")


def validation_error(reason: str) -> JsonRpcError:
    """The error for a message of a wrong structure."""
    return JsonRpcError(ErrorCode.VALIDATION_ERROR, f"invalid message: {reason}")


def internal_error(reason: str) -> JsonRpcError:
    """The error for a failure of the server. The reason reaches the client."""
    return JsonRpcError(ErrorCode.INTERNAL_ERROR, reason)


@dataclass
class JsonRpcRequest:
    """A request of JSON-RPC 2.0; a notification if it has no id."""

    method: str
    params: "dict[str, Any] | list[Any] | None" = None
    id: "str | int | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        members = {"method": self.method, "params": self.params, "id": self.id}
        present = {name: value for name, value in members.items() if value is not None}
        return {"jsonrpc": "2.0", **present}


@dataclass
class JsonRpcResponse:
    """A response of JSON-RPC 2.0: an error if it has one, otherwise a result, also ``None``."""

    id: "str | int | None"
    result: Any = None
    error: "dict[str, Any] | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        outcome = {"result": self.result} if self.error is None else {"error": self.error}
        return {"jsonrpc": "2.0", "id": self.id, **outcome}


def create_jsonrpc_success_response(id: "str | int | None", result: Any) -> JsonRpcResponse:
    """Returns the response with a result."""
    return JsonRpcResponse(id=id, result=result)


def create_jsonrpc_error_response(
    id: "str | int | None", error: "dict[str, Any] | JsonRpcError"
) -> JsonRpcResponse:
    """Returns the response with an error."""
    return JsonRpcResponse(
        id=id, error=error.to_dict() if isinstance(error, JsonRpcError) else error
    )


@dataclass
class JsonRpcBatchRequest:
    """The requests of one call."""

    requests: Sequence[JsonRpcRequest]

    def to_list(self) -> list[dict[str, Any]]:
        """Returns the JSON form: an array, as JSON-RPC has it."""
        return [request.to_dict() for request in self.requests]


@dataclass
class JsonRpcBatchResponse:
    """The responses to the requests of one call."""

    responses: Sequence[JsonRpcResponse]

    def to_list(self) -> list[dict[str, Any]]:
        """Returns the JSON form: an array, as JSON-RPC has it."""
        return [response.to_dict() for response in self.responses]


class MessageType(str, Enum):
    """The kind of a message."""

    REQUEST = "request"
    RESPONSE = "response"
    NOTIFICATION = "notification"
    ERROR = "error"


class MessageDirection(str, Enum):
    """Who sends a message."""

    CLIENT_TO_SERVER = "client_to_server"
    SERVER_TO_CLIENT = "server_to_client"


class MessageCategory(str, Enum):
    """What a message is about."""

    LIFECYCLE = "lifecycle"
    JSONRPC = "jsonrpc"
    RESOURCE = "resource"
    TOOL = "tool"
    CONTEXT = "context"
    JOB = "job"
    CUSTOM = "custom"


@dataclass
class MessageMetadata:
    """What is known about a message."""

    type: MessageType
    direction: MessageDirection
    category: MessageCategory
    connection_id: str | None = None
    request_id: str | None = None
    trace_id: str | None = None
    timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass
class MCPMessage:
    """A message with metadata."""

    metadata: MessageMetadata
    payload: "JsonRpcRequest | JsonRpcResponse | JsonRpcBatchRequest | JsonRpcBatchResponse"

"""The exceptions of Innkeeper: each says what failed, at which server, and keeps its cause."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class MCPHostError(Exception):
    """The base of all exceptions of this package.

    ``error_type`` is the kind of the error as a word, the same in every language. ``server_name`` is
    the server, where one is known.
    """

    error_type: ClassVar[str] = "host"
    server_name: str | None = None

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        self.message = message
        for name, value in attributes.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, dict(self.__dict__), self.__cause__)


class ConfigurationError(MCPHostError):
    """The configuration is invalid; no server was started.

    ``problems`` has every problem: ``severity``, ``source``, ``line``, ``column``, ``key``,
    ``message`` and ``hint``, as far as they are known.
    """

    error_type: ClassVar[str] = "configuration"
    problems: Sequence[Mapping[str, Any]] = ()

    @property
    def config_path(self) -> str | None:
        """The file of the first problem."""
        return self.problems[0].get("source") if self.problems else None

    @property
    def field(self) -> str | None:
        """The key of the first problem, for example ``servers.files.command``."""
        return self.problems[0].get("key") if self.problems else None


class ServerStartupError(MCPHostError):
    """A required server did not start; all started servers were stopped.

    ``failures`` has one entry per server: ``server``, ``phase``, ``reason``, ``hint``, ``attempts``
    and the end of its ``stderr``.
    """

    error_type: ClassVar[str] = "server-startup"
    failures: Sequence[Mapping[str, Any]] = ()


class ServerUnavailableError(MCPHostError):
    """The server is unavailable, or became unavailable before its response.

    ``may_have_run`` says whether the request may have reached the server.
    """

    error_type: ClassVar[str] = "server-unavailable"
    reason: str = ""
    may_have_run: bool = False
    attempts: int = 0


class ValidationError(MCPHostError):
    """The arguments don't fit; nothing was sent.

    ``details`` has every problem: its JSON ``pointer`` and the ``message``.
    """

    error_type: ClassVar[str] = "validation"
    item: str | None = None
    details: Sequence[Mapping[str, str]] = ()


class TimeoutError(MCPHostError, builtins.TimeoutError):
    """No response in time; the server was told that the call is cancelled."""

    error_type: ClassVar[str] = "timeout"
    operation: str | None = None
    timeout_seconds: float | None = None


class ProtocolError(MCPHostError):
    """The response violates JSON-RPC or MCP."""

    error_type: ClassVar[str] = "protocol"
    item: str | None = None
    details: str = ""


class RoutingError(MCPHostError):
    """The name leads to no server, or to several.

    ``reason`` is for example ``server_not_found``, ``tool_not_found``, ``prompt_not_found``,
    ``resource_not_found`` or ``ambiguous``.
    """

    error_type: ClassVar[str] = "routing"
    target: str | None = None
    reason: str = ""
    suggestion: str | None = None
    candidates: Sequence[str] = ()


class ServerError(MCPHostError):
    """The server returned a JSON-RPC error."""

    error_type: ClassVar[str] = "server"
    item: str | None = None
    code: int = 0
    data: Any = None


class ResultWithheldError(MCPHostError):
    """The call ran, and the guard withheld its result. A second call would run it again."""

    error_type: ClassVar[str] = "withheld"
    item: str | None = None
    findings: Sequence[str] = ()


class NotInitializedError(MCPHostError, RuntimeError):
    """The host has not started, or has been shut down."""

    error_type: ClassVar[str] = "not-initialized"


class InternalError(MCPHostError):
    """A defect in Innkeeper."""

    error_type: ClassVar[str] = "internal"


class ModelError(MCPHostError):
    """A model cannot be used, or did not answer."""

    error_type: ClassVar[str] = "model"


class GoldenError(MCPHostError):
    """A golden cannot be read, written or compared."""

    error_type: ClassVar[str] = "golden"


class ReplayError(MCPHostError):
    """A golden does not answer the run: the message names what was asked for and what changed."""

    error_type: ClassVar[str] = "replay"


class CallbackError(MCPHostError):
    """Raise this in a callback to answer the server with a JSON-RPC error."""

    error_type: ClassVar[str] = "callback"

    def __init__(self, message: str = "", *, code: int = -32603, **attributes: Any) -> None:
        super().__init__(message, code=code, **attributes)
        self.code: int = code


class Cause(Exception):
    """What led to an error, as a text: the ``__cause__`` of the error."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_cause, (str(self), self.__cause__)


def _restore_cause(text: str, cause: BaseException | None) -> Cause:
    """Creates a pickled cause with the cause behind it."""
    restored = Cause(text)
    restored.__cause__ = cause
    return restored


def _create(
    class_name: str, message: str, attributes: dict[str, Any], causes: list[str]
) -> MCPHostError:
    """Creates the exception of a failure. The native module calls this."""
    error: MCPHostError = globals()[class_name](message, **attributes)
    effect: BaseException = error
    for text in causes:
        effect.__cause__ = Cause(text)
        effect = effect.__cause__
    return error


def _restore(
    error_class: type[MCPHostError],
    message: str,
    attributes: dict[str, Any],
    cause: BaseException | None,
) -> MCPHostError:
    """Creates a pickled exception."""
    error = error_class(message)
    error.__dict__.update(attributes)
    error.__cause__ = cause
    return error

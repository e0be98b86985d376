"""``mcp_ghost``: one prompt, a model that uses the tools of some servers, one result."""

import contextvars
import copy
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, overload

from innkeeper import _core, _logging
from innkeeper.llm import LLMProvider, python_model
from innkeeper.record import Record

__all__ = ["GhostResult", "MCPGhostConfig", "mcp_ghost", "mcp_ghost_stream"]

ServerConfig = Mapping[str, Any] | str | os.PathLike[str]
"""Servers as in an ``mcp.json``, with ``mcpServers`` or ``servers``, or the path of such a file."""

_DEFAULT_NAMESPACE = "mcp_ghost"


@dataclass(frozen=True)
class MCPGhostConfig:
    """The parameters of ``mcp_ghost`` as one value."""

    server_config: ServerConfig
    system_prompt: str
    provider: "str | LLMProvider"
    user_prompt: str
    api_key: str | None = None
    model: str | None = None
    namespace: str = _DEFAULT_NAMESPACE
    timeout: float = 30.0
    max_iterations: int = 10
    enable_backtracking: bool = True
    conversation_memory: bool = True
    base_url: str | None = None
    plan: bool = False

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.__dict__.items() if name != "server_config"}
        shown["api_key"] = None if self.api_key is None else "***"
        return f"MCPGhostConfig({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class GhostResult(Record):
    """The result of a run: the dict of the document, whose members are attributes too."""

    _golden: "_core.Golden | None" = None
    """The recording of the run, if it was recorded."""
    _no_golden: str | None = None
    """Why a run that was to be recorded has no recording."""
    _unused: tuple[str, ...] = ()
    """The recorded answers that a replayed run did not ask for."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "GhostResult":
        copied = GhostResult(copy.deepcopy(dict(self), memo))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        # The recording stays in the process that made it.
        return GhostResult, (dict(self),)


@dataclass(frozen=True)
class Recording:
    """Whether runs are recorded, and the golden that answers them instead of a model."""

    test_name: str | None = None
    golden: "_core.Golden | None" = None


_of_context: contextvars.ContextVar[Recording | None] = contextvars.ContextVar(
    "innkeeper_recording", default=None
)
_of_process = Recording()


def recording() -> Recording:
    """Returns what happens to the runs of this context, else of this process."""
    return _of_context.get() or _of_process


RecordingState = tuple[Recording | None, Recording]
"""What happens to the runs of a context and of the process."""


def recording_state() -> RecordingState:
    """Returns what ``restore_recording`` takes."""
    return _of_context.get(), _of_process


def set_recording(active: Recording) -> RecordingState:
    """Sets what happens to runs, in this context and on threads and tasks that have another one. Returns
    what was before."""
    global _of_process
    before = recording_state()
    _of_context.set(active)
    _of_process = active
    return before


def restore_recording(before: RecordingState) -> None:
    """Takes back ``set_recording``."""
    global _of_process
    of_context, _of_process = before
    _of_context.set(of_context)


@overload
async def mcp_ghost(server_config: MCPGhostConfig) -> GhostResult: ...


@overload
async def mcp_ghost(
    server_config: ServerConfig,
    system_prompt: str,
    provider: str | LLMProvider,
    api_key: str | None = None,
    user_prompt: str = ...,
    model: str | None = None,
    namespace: str = _DEFAULT_NAMESPACE,
    timeout: float = 30.0,
    max_iterations: int = 10,
    enable_backtracking: bool = True,
    conversation_memory: bool = True,
    *,
    base_url: str | None = None,
    plan: bool = False,
) -> GhostResult: ...


async def mcp_ghost(
    server_config: ServerConfig | MCPGhostConfig,
    system_prompt: str | None = None,
    provider: str | LLMProvider | None = None,
    api_key: str | None = None,
    user_prompt: str | None = None,
    model: str | None = None,
    namespace: str = _DEFAULT_NAMESPACE,
    timeout: float = 30.0,
    max_iterations: int = 10,
    enable_backtracking: bool = True,
    conversation_memory: bool = True,
    *,
    base_url: str | None = None,
    plan: bool = False,
) -> GhostResult:
    """Starts the servers, lets the model use their tools until its answer, and stops the servers.

    Never raises for what goes wrong in the run: a missing key, a server that doesn't start, a model that
    fails and a failed tool are in the result, under ``success`` and ``errors``. To cancel ends the run
    and its servers.

    ``provider`` is an object with ``create_completion`` (see ``innkeeper.LLMProvider``), or ``openai``, ``anthropic``, ``gemini``, ``ollama`` or ``openai-compatible`` (with
    ``base_url``). Without ``api_key``, the key comes from the provider's variable, for example
    ``OPENAI_API_KEY``, or from ``.env`` in the working directory, of which nothing else is read.
    ``timeout`` is in seconds for each tool call, ``max_iterations`` the number of the model's responses.
    An ``MCPGhostConfig`` can take the place of all parameters.
    """
    _logging.start()
    run = _run(_config(locals()))
    return await _with_golden(run) or GhostResult(await run.run().future())


async def mcp_ghost_stream(
    server_config: ServerConfig | MCPGhostConfig,
    system_prompt: str | None = None,
    provider: str | LLMProvider | None = None,
    api_key: str | None = None,
    user_prompt: str | None = None,
    model: str | None = None,
    namespace: str = _DEFAULT_NAMESPACE,
    timeout: float = 30.0,
    max_iterations: int = 10,
    enable_backtracking: bool = True,
    conversation_memory: bool = True,
    *,
    base_url: str | None = None,
    plan: bool = False,
) -> AsyncIterator[Record | GhostResult]:
    """Works like ``mcp_ghost``, and yields what happens: ``text``, ``reasoning``,
    ``tool_call_started``, ``tool_call_finished`` and so on, each with its ``kind``; at the end the
    ``GhostResult``. To leave the iteration ends the run and its servers. A run that is recorded or
    replayed yields its result only."""
    _logging.start()
    run = _run(_config(locals()))
    replayed = await _with_golden(run)
    if replayed is not None:
        yield replayed
        return
    stream = run.stream()
    while (event := await stream.next().future()) is not None:
        if isinstance(event, tuple):
            yield GhostResult(event[0])
            return
        yield Record(event)


async def _with_golden(run: "_core.GhostRun") -> GhostResult | None:
    """Records or replays a run if that is what happens to runs now."""
    active = recording()
    if active.golden is not None:
        content, unused = await run.replay(active.golden).future()
        result = GhostResult(content)
        result._unused = tuple(unused)
        return result
    if active.test_name is not None:
        content, golden, problem = await run.record(active.test_name).future()
        result = GhostResult(content)
        result._golden = golden
        result._no_golden = problem
        return result
    return None


def _config(parameters: dict[str, Any]) -> MCPGhostConfig:
    """Returns the parameters of a call as one value."""
    config = parameters["server_config"]
    if isinstance(config, MCPGhostConfig):
        return config
    for name in ("system_prompt", "provider", "user_prompt"):
        if parameters[name] is None:
            raise TypeError(f"mcp_ghost() is missing the argument '{name}'")
    return MCPGhostConfig(**parameters)


_TYPES: dict[str, tuple[type, ...]] = {
    "system_prompt": (str,),
    "user_prompt": (str,),
    "api_key": (str, type(None)),
    "model": (str, type(None)),
    "namespace": (str,),
    "timeout": (float, int),
    "max_iterations": (int,),
    "base_url": (str, type(None)),
}


def _run(config: MCPGhostConfig) -> "_core.GhostRun":
    parameters = {name: getattr(config, name) for name in config.__dataclass_fields__}
    for name, expected in _TYPES.items():
        if not isinstance(parameters[name], expected):
            given = type(parameters[name]).__name__
            raise TypeError(f"`{name}` is `{given}`, not `{expected[0].__name__}`")
    if not 0 < config.max_iterations < 2**32:
        raise ValueError(f"`max_iterations` is {config.max_iterations}: use 1 or more")
    servers = parameters.pop("server_config")
    own_model = None
    if not isinstance(config.provider, str):
        own_model = python_model(config.provider, config.model)
        parameters["provider"] = type(config.provider).__name__
    if isinstance(servers, Mapping):
        servers = dict(servers)
    return _core.GhostRun(_core.Config(servers), own_model=own_model, **parameters)

"""Models: one interface for every provider, and models that an application calls itself."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, cast, runtime_checkable

from innkeeper import _core
from innkeeper._callbacks import refuse

__all__ = ["Completion", "LLMClient", "LLMProvider", "get_llm_client"]

logger = logging.getLogger("innkeeper.llm")


class Completion(TypedDict):
    """A response in the same form for every provider."""

    response: str
    tool_calls: list[dict[str, Any]]
    usage: dict[str, int] | None
    finish_reason: str


@runtime_checkable
class LLMProvider(Protocol):
    """A model that an application calls itself: pass it to ``mcp_ghost`` as ``provider``.

    ``messages`` and ``tools`` have the form of Chat Completions. Return a ``Completion``, a message of
    Chat Completions, or the whole response of that API. ``temperature`` and ``max_tokens`` come as
    keywords when the run sets them. An attribute ``supports_tools = False`` has the tools described in
    the prompt, and calls read from the text.
    """

    async def create_completion(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], **kwargs: Any
    ) -> Mapping[str, Any]:
        """Answers one request."""
        ...


class LLMClient:
    """A model of a provider. ``get_llm_client`` makes one."""

    def __init__(self, native: "_core.LlmClient") -> None:
        self._native = native

    @property
    def provider(self) -> str:
        """The name of the provider."""
        return self._native.provider

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._native.model

    async def create_completion(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Sends one request, and returns the response in the same form for every provider.

        ``messages`` have the form of Chat Completions, ``tools`` that form or MCP's. Raises
        ``ModelError``; nothing is sent again.
        """
        call = self._native.create_completion(
            list(messages), list(tools), temperature, max_tokens
        )
        return cast(Completion, await call.future())

    def __repr__(self) -> str:
        return f"<LLMClient of {self.provider}, model {self.model}>"


def get_llm_client(
    provider: str = "openai",
    model: str | None = None,
    api_key: str | None = None,
    *,
    base_url: str | None = None,
) -> LLMClient:
    """Returns the client of a provider: ``openai``, ``anthropic``, ``gemini``, ``ollama`` or
    ``openai-compatible`` (with ``base_url``). Sends nothing.

    Without ``api_key``, the key comes from the provider's variable, for example ``ANTHROPIC_API_KEY``.
    Raises ``ModelError`` for an unknown provider or a missing key.
    """
    return LLMClient(_core.LlmClient(provider, model, api_key, base_url))


def python_model(provider: LLMProvider, model: str | None) -> "_core.PythonModel":
    """Returns the native form of an application's own model, which runs on this loop."""
    name = type(provider).__name__
    return _core.PythonModel(
        _responder(provider),
        _core.LoopQueue.running(),
        name,
        model or str(getattr(provider, "model", name)),
        bool(getattr(provider, "supports_tools", True)),
    )


def _responder(provider: LLMProvider) -> Callable[[dict[str, Any], "_core.Reply"], Any]:
    context = contextvars.copy_context()

    def respond(request: dict[str, Any], reply: "_core.Reply") -> "asyncio.Task[None]":
        answer = _answer(provider, request, reply)
        task: asyncio.Task[None] = context.copy().run(asyncio.ensure_future, answer)
        return task

    return respond


async def _answer(provider: LLMProvider, request: dict[str, Any], reply: "_core.Reply") -> None:
    messages, tools = request.pop("messages"), request.pop("tools")
    settings = {name: value for name, value in request.items() if value is not None}
    try:
        completion: Any = provider.create_completion(messages, tools, **settings)
        if inspect.isawaitable(completion):
            completion = await completion
        reply.result(completion)
    except BaseException as error:
        # Whatever happens next, the run must not wait for an answer.
        refuse(reply, _described(error))
        if not isinstance(error, Exception):
            raise
        logger.exception("`create_completion` of `%s` failed", type(provider).__name__)


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__

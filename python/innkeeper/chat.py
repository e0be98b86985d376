"""Tools for a chat application that keeps its own model, and tool calls in any stream of text."""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Literal

from innkeeper import _core
from innkeeper.host import MCPHost
from innkeeper.llm import LLMClient, LLMProvider, python_model
from innkeeper.record import Record

__all__ = ["Chat", "ChatResponse", "PromptHost", "intercept"]

TextStream = AsyncIterable[str] | Iterable[str]
"""A model's text in chunks of any size."""


async def intercept(
    stream: TextStream,
    tools: Sequence[Mapping[str, Any]],
    *,
    model: str | None = None,
    format: str | None = None,
    prompt: str | None = None,
    finish_reason: Literal["stop", "length"] | None = None,
) -> AsyncIterator[Record]:
    """Finds the tool calls in a model's text while it arrives. Runs nothing.

    Yields events: ``text`` and ``reasoning`` with ``text``, ``call`` with ``name``, ``arguments`` and
    ``repairs``, ``rejected`` with ``text``, ``name``, ``reason`` and ``suggestions``, ``incomplete`` with
    ``text`` and ``reason``; the text of the last two is for display. ``tools`` are MCP tools or those of Chat Completions. ``model`` or ``format`` says how
    the calls look; by default that is detected. ``prompt`` is the end of what the model got, where it may
    open the reasoning. With ``finish_reason="stop"``, the model ended by itself: only then are missing
    closing brackets added.
    """
    parser = _core.Interceptor(list(tools), model, format, prompt)
    async for chunk in _chunks(stream):
        for event in parser.push(chunk):
            yield Record(event)
    for event in parser.finish(finish_reason):
        yield Record(event)


async def _chunks(stream: TextStream) -> AsyncIterator[str]:
    if isinstance(stream, AsyncIterable):
        async for chunk in stream:
            yield chunk
    else:
        for chunk in stream:
            yield chunk


class Chat:
    """The tools of a host for a chat application that calls its model itself.

    ``mode`` is ``buffer`` (calls leave the text and run), ``passthrough`` (nothing runs) or
    ``placeholders`` (calls run, and ``placeholder_text`` stands for each). ``max_buffer_chars`` bounds the
    text that is held while it may become a call.
    """

    def __init__(
        self,
        host: MCPHost,
        *,
        mode: Literal["buffer", "passthrough", "placeholders"] = "buffer",
        max_buffer_chars: int = 200,
        placeholder_text: str = "[tool]",
        max_tool_rounds: int = 3,
    ) -> None:
        self._native = _core.Chat(
            host._host, mode, max_buffer_chars, placeholder_text, max_tool_rounds
        )

    def enhance_system_prompt(self, system_prompt: str) -> str:
        """Returns the system prompt with the tools and how to call them."""
        return self._native.enhance_system_prompt(system_prompt)

    def reset(self) -> None:
        """Begins a new user message: the count of rounds starts again."""
        self._native.reset()

    def read_response(self, stream: TextStream) -> "ChatResponse":
        """Reads one response of the model: iterate over it with ``async for``."""
        return ChatResponse(self._native.read_response(), stream)


class ChatResponse:
    """One response: an async iterator of items.

    Items have a ``kind``: ``text``, ``reasoning``, ``tool_call``, ``placeholder``, ``rejected_call``,
    ``buffered``, each with ``text``; and ``tool_result`` with ``tool``, ``arguments``, ``success``,
    ``result`` and ``elapsed`` (seconds). Calls run while the text still arrives.
    """

    def __init__(self, native: "_core.ChatResponse", stream: TextStream) -> None:
        self._native = native
        self._stream = stream
        self._is_read = False

    async def __aiter__(self) -> AsyncIterator[Record]:
        if self._is_read:
            raise RuntimeError("the response is read already: a stream can be read once")
        self._is_read = True
        feeding = asyncio.ensure_future(self._feed())
        try:
            while (item := await self._native.next().future()) is not None:
                yield Record(item)
            # An error of the model's stream is the application's own.
            await feeding
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await feeding

    async def _feed(self) -> None:
        try:
            async for chunk in _chunks(self._stream):
                await self._native.feed(chunk).future()
        finally:
            self._native.finish()

    async def results_as_message(self) -> str | None:
        """Returns the results of all calls as the next message for the model, or ``None`` without calls.
        Reads the response to its end if nobody has iterated over it, and waits for running calls."""
        if not self._is_read:
            async for _ in self:
                pass
        message: str | None = await self._native.results_as_message().future()
        return message


class PromptHost:
    """A model that is told of the tools in its prompt, with corrective retries (document 004).

    ``provider`` is a client of ``get_llm_client`` or an object with ``create_completion``. Make it inside
    of a coroutine: an own provider runs on that loop.
    """

    def __init__(
        self,
        provider: LLMClient | LLMProvider,
        host: MCPHost,
        *,
        max_retries: int = 3,
        retry_delay_ms: int = 1000,
        temperature_reduction: float = 0.1,
        max_tokens_per_request: int = 4096,
        max_tools_per_request: int = 5,
        rate_limit_per_minute: int = 30,
        blocked_tool_patterns: Sequence[str] = (),
    ) -> None:
        if isinstance(blocked_tool_patterns, str):
            raise TypeError("`blocked_tool_patterns` is a string: use a list of patterns")
        model: _core.LlmClient | _core.PythonModel
        if isinstance(provider, LLMClient):
            model = provider._native
        else:
            model = python_model(provider, None)
        self._native = _core.PromptHost(
            host._host,
            model,
            max_retries=max_retries,
            retry_delay_ms=retry_delay_ms,
            temperature_reduction=temperature_reduction,
            max_tokens_per_request=max_tokens_per_request,
            max_tools_per_request=max_tools_per_request,
            rate_limit_per_minute=rate_limit_per_minute,
            blocked_tool_patterns=list(blocked_tool_patterns),
        )

    async def process_message(self, message: str) -> str:
        """Lets the model answer one message with the help of the tools. Raises ``ModelError``."""
        answer: str = await self._native.process_message(message).future()
        return answer

"""The eight methods of document 000 (TR12.1), their signatures and their kinds."""

import inspect
from typing import Any

import pytest

import innkeeper
import innkeeper.sync
from innkeeper import MCPHost

# name: (parameters of the document with their defaults, whether it is a coroutine function)
DOCUMENT: dict[str, tuple[list[tuple[str, Any]], bool]] = {
    "initialize": ([("config_path", inspect.Parameter.empty)], True),
    "shutdown": ([], True),
    "call_tool": (
        [("tool_name", inspect.Parameter.empty), ("parameters", inspect.Parameter.empty)],
        True,
    ),
    "get_prompt": ([("prompt_name", inspect.Parameter.empty), ("arguments", None)], True),
    "get_resource": ([("resource_uri", inspect.Parameter.empty)], True),
    "get_tools": ([], False),
    "get_metrics": ([], False),
    "register_callback": ([("callback", inspect.Parameter.empty)], False),
}


def positional(method: Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("name", DOCUMENT)
def test_a_method_has_the_parameters_of_the_document(name: str) -> None:
    """Everything that the document calls works; whatever is added has a default."""
    documented, _ = DOCUMENT[name]
    method = getattr(MCPHost, name)
    assert [p.name for p in positional(method)] == [parameter for parameter, _ in documented]
    for parameter, (_, default) in zip(positional(method), documented):
        if default is not inspect.Parameter.empty:
            assert parameter.default is default
    for parameter in list(inspect.signature(method).parameters.values())[1 + len(documented) :]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is not inspect.Parameter.empty


@pytest.mark.parametrize("name", DOCUMENT)
def test_a_method_is_a_coroutine_function_as_the_document_says(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(MCPHost, name)) is DOCUMENT[name][1]


@pytest.mark.parametrize("name", DOCUMENT)
def test_the_host_without_await_has_the_same_parameters(name: str) -> None:
    method = getattr(innkeeper.sync.MCPHost, name)
    assert not inspect.iscoroutinefunction(method)
    theirs = inspect.signature(getattr(MCPHost, name)).parameters
    assert {n: p.replace(annotation=0) for n, p in inspect.signature(method).parameters.items()} == {
        n: p.replace(annotation=0) for n, p in theirs.items()
    }


def test_every_method_has_a_docstring() -> None:
    for host in (MCPHost, innkeeper.sync.MCPHost):
        names = [name for name in dir(host) if not name.startswith("_")]
        assert [name for name in names if not getattr(host, name).__doc__] == []


def test_every_exported_name_exists() -> None:
    assert sorted(innkeeper.__all__) == innkeeper.__all__
    assert all(hasattr(innkeeper, name) for name in innkeeper.__all__)

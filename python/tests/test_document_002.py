"""Every Python block of document 002, cut out of the document."""

import ast
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Model, hello

from innkeeper import LLMClient, LLMProvider, mcp_ghost

DOCUMENT = "requirements/002-mcp-ghost.txt"


@pytest.fixture(scope="module")
def blocks() -> list[str]:
    """The Python blocks of the document, in order."""
    for directory in Path(__file__).resolve().parents:
        for place in (directory / DOCUMENT, directory / "shared" / DOCUMENT):
            if place.exists():
                found = re.findall(r"```python\n(.*?)```", place.read_text("utf-8"), re.DOTALL)
                return [inspect.cleandoc("\n" + block) for block in found]
    pytest.skip("the document is not here")


def block(blocks: list[str], start: str) -> str:
    return next(found for found in blocks if start in found)


def test_the_function_has_the_documented_signature(blocks: list[str]) -> None:
    documented: dict[str, Any] = {}
    exec(block(blocks, "async def mcp_ghost("), documented)
    theirs = inspect.signature(documented["mcp_ghost"]).parameters
    ours = inspect.signature(mcp_ghost).parameters
    shared = list(ours)[: len(theirs)]
    assert shared == list(theirs)
    assert [ours[name].kind for name in shared] == [p.kind for p in theirs.values()]
    for name, parameter in theirs.items():
        if parameter.default is not inspect.Parameter.empty:
            assert ours[name].default == parameter.default, name


def test_models_have_the_documented_interface(blocks: list[str]) -> None:
    function = block(blocks, "async def create_completion(").rstrip() + ": ..."
    documented: dict[str, Any] = {}
    exec("from typing import Dict, List\n" + function, documented)
    theirs = list(inspect.signature(documented["create_completion"]).parameters)[:2]
    for owner in (LLMClient, LLMProvider):
        ours = list(inspect.signature(owner.create_completion).parameters)[1:3]
        assert ours == theirs == ["messages", "tools"]


def has_shape(value: Any, shape: ast.expr, place: str) -> None:
    """Checks a value against an expression of the document: `bool`, `[{…}]`, `str | None`, `[...]`."""
    match shape:
        case ast.Dict(keys=keys, values=values):
            for key, inner in zip(keys, values, strict=True):
                assert isinstance(key, ast.Constant)
                assert key.value in value, f"{place} has no `{key.value}`"
                has_shape(value[key.value], inner, f"{place}.{key.value}")
        case ast.List(elts=[ast.Constant(value=value_)]) if value_ is ...:
            assert isinstance(value, list), place
        case ast.List(elts=[inner]):
            for index, item in enumerate(value):
                has_shape(item, inner, f"{place}[{index}]")
        case ast.BinOp(left=left):
            if value is not None:
                has_shape(value, left, place)
        case ast.Name(id="Any"):
            pass
        case ast.Name(id="float"):
            assert isinstance(value, (int, float)), f"{place} is {value!r}"
        case ast.Name(id=name):
            types = {"bool": bool, "str": str, "int": int, "dict": dict}
            assert isinstance(value, types[name]), f"{place} is {value!r}"
        case _:
            raise AssertionError(f"unknown shape at {place}: {ast.dump(shape)}")


async def test_a_result_has_the_documented_structure(
    blocks: list[str], servers: Callable[..., dict[str, Any]], model: Model
) -> None:
    structure = ast.parse(block(blocks, '"final_result"'), mode="eval").body
    config = json.loads(block(blocks, '"sqlite"').replace("sqlite", "fx"))
    config["mcpServers"]["fx"] = servers()["servers"]["fx"]
    result = await mcp_ghost(
        config, "", "openai-compatible", "key", "Say hello.", "m", base_url=hello(model).origin + "/v1"
    )
    has_shape(result, structure, "result")

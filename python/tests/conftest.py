"""Fixtures: the server with a switch per fault, the scripted model, the command."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Model, ScriptedModel

pytest_plugins = ["pytester"]


def program(variable: str) -> str:
    """Returns the path of a program that `cargo xtask python` has built."""
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} is not set: run `cargo xtask python`")
    return path


@pytest.fixture(scope="session")
def fixture_server() -> str:
    """The program of the fixture server."""
    return program("INNKEEPER_FIXTURE_SERVER")


@pytest.fixture(scope="session")
def scripted_model() -> str:
    """The program of the scripted model."""
    return program("INNKEEPER_LLM")


@pytest.fixture(scope="session")
def command() -> str:
    """The program `innkeeper`."""
    return program("INNKEEPER")


@pytest.fixture
def servers(fixture_server: str) -> Callable[..., dict[str, Any]]:
    """Returns a configuration with one fixture server: ``servers("--slow", "100")``."""

    def configure(*switches: str, name: str = "fx", **settings: Any) -> dict[str, Any]:
        server = {"command": fixture_server, "args": list(switches), **settings}
        return {"servers": {name: server}}

    return configure


@pytest.fixture
def model(scripted_model: str, tmp_path: Path) -> Iterator[Model]:
    """Starts scripted models."""
    started: list[ScriptedModel] = []

    def start(*steps: dict[str, Any]) -> ScriptedModel:
        directory = tmp_path / f"model{len(started)}"
        directory.mkdir()
        started.append(ScriptedModel(scripted_model, directory, list(steps)))
        return started[-1]

    yield start
    for each in started:
        each.stop()

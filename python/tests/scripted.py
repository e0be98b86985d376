"""The scripted model as a child process."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any


class ScriptedModel:
    """A model that answers each request with the next step of its script."""

    def __init__(self, program: str, directory: Path, steps: list[dict[str, Any]]) -> None:
        script = directory / "script.json"
        script.write_text(json.dumps({"steps": steps}))
        self.requests = directory / "requests.jsonl"
        self.process = subprocess.Popen(
            [program, str(script), "--requests", str(self.requests)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.origin = self.process.stdout.readline().strip()

    def stop(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A response with a tool call."""
    part = {"tool_call": {"name": name, "arguments": arguments}}
    return {"answer": {"parts": [part], "usage": [10, 5]}}


def text(words: str) -> dict[str, Any]:
    """A response with text."""
    return {"answer": {"parts": [{"text": words}], "usage": [20, 7]}}


Model = Callable[..., ScriptedModel]
"""Starts a scripted model with these steps."""


def hello(model: Model) -> ScriptedModel:
    """A model that calls one tool and then answers."""
    return model(call("fx_echo", message="hello"), text("It said hello."))

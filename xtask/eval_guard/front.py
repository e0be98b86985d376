"""The adapter that runs the benchmark with `innkeeper-proxy` in front of each server."""

from pathlib import Path

from mcp_defense_bench.adapters.stdio import StdioProxyAdapter

# The task copies this file into a directory next to that of the programs.
FRONT = Path(__file__).resolve().parent.parent / "debug/innkeeper-proxy"


def adapter(name, *mode):
    return StdioProxyAdapter(name, wrap=[FRONT, *mode], warn_pattern=r"^flagged: ")


def default():
    """The default configuration, without a guard."""
    return adapter("default")


def refuse():
    """The host with `"guard": "refuse"`."""
    return adapter("refuse", "--guard", "refuse")

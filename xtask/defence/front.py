"""Has the bench of defences score our host: `innkeeper-front`, put before each of its servers."""

from pathlib import Path

from mcp_defense_bench.adapters.stdio import StdioProxyAdapter

# The chore puts this file into a folder beside the one of the programs.
FRONT = Path(__file__).resolve().parent.parent / "debug/innkeeper-front"


def adapter(name, *mode):
    return StdioProxyAdapter(name, wrap=[FRONT, *mode], warn_pattern=r"^flagged: ")


def default():
    """At its defaults: nothing is looked at."""
    return adapter("default")


def refuse():
    """With `"guard": "refuse"`."""
    return adapter("refuse", "--guard", "refuse")

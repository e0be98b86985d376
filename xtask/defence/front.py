"""Has the bench of defences score our host: `innkeeper-front`, put before each of its servers."""

from pathlib import Path

from mcp_defense_bench.adapters.stdio import StdioProxyAdapter

# The server of these fixtures changes a tool when it is asked a second time and tells nobody. A host
# that asks once shows what it read: the bench would count that as a defence against bad changes and
# as a false alarm for good ones, and it is neither.
UNTOLD = {"definition-change"}


# The chore puts this file into a folder beside the one of the programs.
FRONT = Path(__file__).resolve().parent.parent / "debug/innkeeper-front"


def innkeeper():
    adapter = StdioProxyAdapter("innkeeper", wrap=[FRONT], warn_pattern=r"^flagged: ")
    kept = tuple(kind for kind in adapter.meta.fixture_types if kind not in UNTOLD)
    object.__setattr__(adapter.meta, "fixture_types", kept)
    return adapter

"""Run the fixtures and checks of `canitoolcall` on this project's tool-call parser.

usage: judge.py REPLAY [ARGUMENT ...]

REPLAY is a program with one request per input line (crates/innkeeper-toolcall/examples/replay.rs).
Each fixture is replayed at once and in chunks: single characters, groups of one to eight characters
with eight seeds, and chunks that end at markers; with and without the model's name. Every check must
pass in every variant.
"""

import json
import re
import subprocess
import sys
from collections import Counter

from canitoolcall import checks, chunking, fixtures
from canitoolcall.adapters.base import ReplayInput
from canitoolcall.results import Observation, ParsedToolCall, ParseResult, Status, worst_status

# A pattern for the markers of all formats, at which a tokenizer with special tokens splits the text.
MARKER = re.compile(r"(<[^<>\s]{1,40}>|\[[A-Z_/]+\])")
CHARACTERS = [f"char:{seed}" for seed in range(9)]
GOOD = (Status.PASS, Status.SOFT_PASS)


class Interceptor:
    """The program, asked one question after the other."""

    def __init__(self, program: list[str]) -> None:
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def parse(self, replay: ReplayInput, tools: list[dict], model: str, pieces: list[str]) -> ParseResult:
        request = {
            "model": model,
            "tools": tools,
            "prompt": replay.generation_prompt,
            "pieces": pieces,
            "finish": "length" if replay.truncated else "stop",
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        calls = tuple(ParsedToolCall(call["name"], call["arguments"]) for call in answer["calls"])
        return ParseResult(content=answer["content"], reasoning_content=answer["reasoning"], tool_calls=calls)


def offered(fixture: fixtures.Fixture) -> list[dict]:
    """The fixture's tools as MCP has them."""
    functions = [tool.get("function", tool) for tool in fixture.tools]
    return [
        {
            "name": function["name"],
            "description": function.get("description") or "",
            "inputSchema": function.get("parameters") or {"type": "object"},
        }
        for function in functions
    ]


def pieces(text: str, strategy: str) -> list[str]:
    if strategy == "markers":
        return [piece for piece in MARKER.split(text) if piece]
    return chunking.split_text(text, chunking.ChunkStrategy.parse(strategy))


def main() -> int:
    interceptor = Interceptor(sys.argv[1:])
    families = fixtures.load_families()
    everything = list(fixtures.load_fixtures())
    failed = False
    for named in (True, False):
        counts: Counter = Counter()
        for fixture in everything:
            family = families[fixture.family]
            replay = ReplayInput.from_fixture(fixture, family)
            model = replay.model if named else ""
            tools = offered(fixture)
            observation = Observation(
                nonstream=interceptor.parse(replay, tools, model, [replay.text]),
                streams={
                    strategy: interceptor.parse(replay, tools, model, pieces(replay.text, strategy))
                    for strategy in ["one", *CHARACTERS, "markers"]
                },
            )
            rows = checks.run_checks(fixture, family, observation)
            status = worst_status([row.status for row in rows])
            counts[status] += 1
            for row in rows:
                if row.status not in GOOD:
                    print(f"{fixture.id}: {row.check} ({row.strategy}): {row.detail}")
                    break
        good = sum(counts[status] for status in GOOD)
        how = "named" if named else "unknown"
        exact = counts[Status.PASS]
        print(f"model {how}: {good} of {len(everything)} fixtures, {exact} of them exact")
        failed |= good != len(everything) or len(everything) == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

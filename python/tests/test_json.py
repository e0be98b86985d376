"""JSON: whatever JSON can express comes through unchanged; the rest is refused by name and place."""

import dataclasses
import datetime
import decimal
import enum
import json
import math
import time
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import innkeeper.sync
from innkeeper import MCPHost, ValidationError
from support import received

Servers = Callable[..., dict[str, Any]]

# Half of a surrogate pair is no Unicode text: `test_what_json_cannot_express` has it.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**300), max_value=10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=30,
)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal with their types: 1 is not 1.0 and not True."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


def test_random_values_come_back_as_they_went(servers: Servers) -> None:
    """Proves: TR5.1"""
    with innkeeper.sync.MCPHost(servers("--verbatim")) as host:

        @settings(max_examples=300, derandomize=True, deadline=None, database=None)
        @given(values)
        def check(value: Any) -> None:
            arguments = {"message": "", "value": value}
            sent = host.call_tool("fx.echo", arguments)["sent"]  # type: ignore[typeddict-item]
            assert same(sent, arguments)

        check()


def test_random_texts_of_servers_are_read_as_python_reads_them(servers: Servers) -> None:
    """What a server writes may be JSON that we would not write: escapes, spaces, exponents."""
    with innkeeper.sync.MCPHost(servers("--verbatim")) as host:

        @settings(max_examples=150, derandomize=True, deadline=None, database=None)
        @given(values, st.booleans(), st.sampled_from([(",", ":"), (" , ", " : ")]))
        def check(value: Any, ascii_only: bool, separators: tuple[str, str]) -> None:
            text = json.dumps({"v": value}, ensure_ascii=ascii_only, separators=separators)
            result = host.call_tool("fx.echo", {"message": "", "result": text})
            assert same(result["sent"], json.loads(text))  # type: ignore[typeddict-item]

        check()


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1E5, "b": -0, "c": -0.0, "d": 1e-400, "e": 0.1, "f": 1e22}',
        '{"a": "\\ud83d\\ude00", "b": "\\u0000", "c": "\\/\\b\\f\\n\\r\\t\\"\\\\"}',
        '{"\\u0061\\"": {"": []}, "b": [[], {}, [{}]]}',
        '{"a": 9223372036854775807, "b": 9223372036854775808, "c": -9223372036854775808}',
        '{"a": -9223372036854775809, "b": 18446744073709551616, "c": 1.7976931348623157e308}',
    ],
)
async def test_special_texts_are_read_as_python_reads_them(servers: Servers, text: str) -> None:
    async with MCPHost(servers("--verbatim")) as host:
        result = await host.call_tool("fx.echo", {"message": "", "result": text})
        assert same(result["sent"], json.loads(text))  # type: ignore[typeddict-item]


async def test_half_of_a_surrogate_pair_from_a_server_is_a_python_string(servers: Servers) -> None:
    text = '{"a": "\\ud800 x", "\\udc00": 1}'
    async with MCPHost(servers("--verbatim")) as host:
        result = await host.call_tool("fx.echo", {"message": "", "result": text})
        assert result["sent"] == json.loads(text)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("digits", [19, 20, 38, 39, 10_000, 100_000])
async def test_long_integers_of_servers_are_exact(servers: Servers, digits: int) -> None:
    numbers = [10**digits - 7, -(10 ** (digits - 1)) + 3, 10 ** (digits - 1)]
    # `str` of Python refuses integers of this length; `decimal` does not.
    text = "[" + ",".join(format(decimal.Decimal(number), "f") for number in numbers) + "]"
    async with MCPHost(servers("--verbatim")) as host:
        result = await host.call_tool("fx.echo", {"message": "", "result": text})
        assert same(result["sent"], numbers)  # type: ignore[typeddict-item]


async def test_an_endless_integer_of_a_server_is_a_protocol_error(servers: Servers) -> None:
    """Its conversion would take seconds; the error names the length."""
    async with MCPHost(servers("--verbatim")) as host:
        arguments = {"message": "", "result": "[" + "7" * 1_000_000 + "]"}
        with pytest.raises(innkeeper.ProtocolError, match="1000000 digits"):
            await host.call_tool("fx.echo", arguments)
        assert await host.call_tool("fx.echo", {"message": "a"})


async def test_an_integer_that_the_host_cannot_check_is_refused(servers: Servers) -> None:
    """The host checks numbers as 64-bit floats; a check that rounds is none."""
    async with MCPHost(servers("--verbatim")) as host:
        result = await host.call_tool("fx.echo", {"message": "", "v": 2**1023 - 1})
        assert result["sent"]["v"] == 2**1023 - 1  # type: ignore[typeddict-item]
        for value in (2**1023, -(2**1024), 10**1_000_000):
            with pytest.raises(ValidationError, match="`/v/0`"):
                await host.call_tool("fx.echo", {"message": "", "v": [value]})


class Word(str, enum.Enum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


async def test_values_that_are_json_by_another_name_are_sent(servers: Servers) -> None:
    arguments = {
        "message": Word.A,
        "one": Number.ONE,
        "tuple": (1, (2,)),
        "ordered": OrderedDict(a=1),
        "default": defaultdict(int, a=1),
        "proxy": MappingProxyType({"a": 1}),
        "user": UserDict({"a": 1}),
        "shared": [[1]] * 2,
    }
    async with MCPHost(servers("--verbatim")) as host:
        result = await host.call_tool("fx.echo", MappingProxyType(arguments))
    assert result["sent"] == {  # type: ignore[typeddict-item]
        "message": "a",
        "one": 1,
        "tuple": [1, [2]],
        "ordered": {"a": 1},
        "default": {"a": 1},
        "proxy": {"a": 1},
        "user": {"a": 1},
        "shared": [[1], [1]],
    }


@dataclasses.dataclass
class Point:
    x: int


def cycle() -> dict[str, Any]:
    value: dict[str, Any] = {"a": [0]}
    value["a"].append({"b": value["a"]})
    return value


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


BAD: list[tuple[str, Any, str, list[str]]] = [
    ("nan", [float("nan")], "/v/0", ["nan"]),
    ("infinity", {"x": float("inf")}, "/v/x", ["inf"]),
    ("minus infinity", float("-inf"), "/v", ["-inf"]),
    ("bytes", {"x": b"a"}, "/v/x", ["bytes", "b64encode"]),
    ("bytearray", bytearray(b"a"), "/v", ["bytearray"]),
    ("set", [1, {1}], "/v/1", ["set", "list"]),
    ("generator", (n for n in range(1)), "/v", ["generator", "list"]),
    ("date", datetime.date(2020, 1, 1), "/v", ["date", "isoformat"]),
    ("decimal", decimal.Decimal("1.5"), "/v", ["Decimal"]),
    ("complex", 1j, "/v", ["complex"]),
    ("dataclass", Point(1), "/v", ["Point", "asdict"]),
    ("class", Point, "/v", ["type"]),
    ("lone surrogate", {"x/y": ["\ud800"]}, "/v/x~1y/0", ["surrogate"]),
    ("lone surrogate in a key", {"\udfff": 1}, "/v", ["key", "surrogate"]),
    ("integer key", {"m": {1: 2}}, "/v/m", ["key", "`1`", "int"]),
    ("none key", {None: 2}, "/v", ["key", "None"]),
    ("tuple key", [{(1, 2): 2}], "/v/0", ["key", "tuple"]),
    ("cycle", cycle(), "/v/a/1/b", ["contains itself", "`/v/a`"]),
    ("depth", deep(200), "/v" + "/0" * 119, ["120 levels"]),
]


@pytest.mark.parametrize(("value", "place", "words"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
async def test_what_json_cannot_express_is_refused_and_not_sent(
    servers: Servers, tmp_path: Path, value: Any, place: str, words: list[str]
) -> None:
    """Proves: TR5.1"""
    journal = tmp_path / "journal"
    async with MCPHost(servers("--journal", str(journal))) as host:
        with pytest.raises(ValidationError) as raised:
            await host.call_tool("fx.echo", {"message": "", "v": value})
        await host.call_tool("fx.echo", {"message": "sent"})
    (detail,) = raised.value.details
    assert detail["pointer"] == place
    assert [word for word in words if word not in detail["message"]] == []
    assert raised.value.item == "fx.echo" and "fx.echo" in str(raised.value)
    calls = received(journal, "tools/call")
    assert [call["params"]["arguments"]["message"] for call in calls] == ["sent"]


async def test_a_value_that_contains_itself_as_a_whole_says_so(servers: Servers) -> None:
    value: dict[str, Any] = {}
    value["again"] = value
    async with MCPHost(servers()) as host:
        with pytest.raises(ValidationError, match="the whole value"):
            await host.call_tool("fx.echo", value)


async def test_arguments_that_are_no_object_are_refused(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        for arguments in ([1], "text", 3):
            with pytest.raises(ValidationError, match="object"):
                await host.call_tool("fx.echo", arguments)  # type: ignore[arg-type]


async def test_arguments_of_prompts_are_refused_in_the_same_way(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        for arguments in ({"name": b"x"}, {1: "x"}, ["x"], {"name": 3}):
            with pytest.raises(ValidationError):
                await host.get_prompt("fx.greet", arguments)  # type: ignore[arg-type]


async def test_a_hook_of_a_refused_value_that_fails_changes_nothing(servers: Servers) -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __repr__(self) -> str:
            raise RuntimeError("repr")

    async with MCPHost(servers()) as host:
        for value in ({"message": Hostile()}, {Hostile(): 1}):
            with pytest.raises(ValidationError, match="Hostile"):
                await host.call_tool("fx.echo", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a", "ä", "語\n", "a" * 262_143 + "🦀"], ids=ascii)
async def test_a_long_string_arrives_as_it_was(servers: Servers, text: str) -> None:
    message = text * (1_000_000 // len(text))
    async with MCPHost(servers()) as host:
        result = await host.call_tool("fx.echo", {"message": message})
    assert result["content"][0]["text"] == message


async def test_a_result_of_ten_megabytes_is_quick(servers: Servers) -> None:
    async with MCPHost(servers()) as host:
        start = time.monotonic()
        result = await host.call_tool("fx.big", {"bytes": 10_000_000})
        assert len(result["content"][0]["text"]) == 10_000_000
        # A debug build on a busy machine; docs/reports/python.md has the time of a release build.
        assert time.monotonic() - start < 10

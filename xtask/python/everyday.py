"""Runs everyday situations over the official SDK, FastMCP and Innkeeper, and writes
docs/reports/python.md.

    everyday.py --others VENV/bin/python --package DIRECTORY --server FIXTURE [--write]

`--others` is an interpreter with the packages of `requirements-everyday.txt`. `--package` has
`innkeeper/` with a release build of its native module; the same interpreter runs all three, so that
only the client differs. Each situation is a program in a process of its own. The clients take turns
within each situation, in an order that changes from round to round.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

ROUNDS = 5
"""How often each measurement runs; the result of 50 MB, which takes some clients a quarter of a minute,
runs three times."""

END_SECONDS = 20.0
"""After this time, a program that should have ended counts as one that doesn't."""

SILENT_SECONDS = 90.0
"""After this time, a program that has said nothing hangs."""

ADAPTERS = {
    "mcp": """
from mcp import Client as Session
from mcp.client.stdio import StdioServerParameters, stdio_client
class Client:
    def __init__(self, *args):
        self.it = Session(stdio_client(
            StdioServerParameters(command=SERVER, args=[*args], env={"MARK": MARK})))
    async def open(self):
        await self.it.__aenter__()
    async def close(self):
        await self.it.__aexit__(None, None, None)
    async def call(self, name, arguments):
        return (await self.it.call_tool(name, arguments)).content[0].text
""",
    "fastmcp": """
from fastmcp import Client as Session
from fastmcp.client.transports import StdioTransport
class Client:
    def __init__(self, *args):
        self.it = Session(StdioTransport(
            command=SERVER, args=[*args], env={"MARK": MARK}, keep_alive=False))
    async def open(self):
        await self.it.__aenter__()
    async def close(self):
        await self.it.__aexit__(None, None, None)
    async def call(self, name, arguments):
        return (await self.it.call_tool(name, arguments)).content[0].text
""",
    "innkeeper": """
from innkeeper import MCPHost
class Client:
    def __init__(self, *args):
        self.it = MCPHost({"servers": {"fx": {
            "command": SERVER, "args": [*args], "env": {"MARK": MARK}}}}, max_message_bytes=64 << 20)
    async def open(self):
        await self.it.initialize()
    async def close(self):
        await self.it.shutdown()
    async def call(self, name, arguments):
        return (await self.it.call_tool("fx." + name, arguments))["content"][0]["text"]
""",
}
NAMES = {"mcp": "mcp", "fastmcp": "fastmcp", "innkeeper": "innkeeper"}

PRELUDE = """
import asyncio, io, json, os, sys, threading, time
SERVER, MARK, JOURNAL = sys.argv[1:4]
def told(**result):
    print(json.dumps(result), flush=True)
"""

OTHER_TASK = """
async def main():
    client = Client()
    await asyncio.create_task(client.open())
    await client.call("echo", {"message": "a"})
    await asyncio.create_task(client.close())
    told(works=True)
asyncio.run(main())
"""

ANY_ORDER = """
async def main():
    clients = [Client() for _ in range(3)]
    for client in clients:
        await client.open()
    for client in clients:
        await client.close()
    told(works=True)
asyncio.run(main())
"""

NO_FILENO = """
async def main():
    client = Client()
    await client.open()
    await client.call("echo", {"message": "a"})
    await client.close()
    told(works=True)
try:
    asyncio.run(main())
except BaseException as error:
    told(error=f"{type(error).__name__}: {error}")
"""

NO_CLOSE = """
async def main():
    client = Client()
    await client.open()
    await client.call("echo", {"message": "a"})
    told(works=True)
    return client
client = asyncio.run(main())
"""

KILLED = """
async def main():
    client = Client("--ignore-eof", "--grandchild")
    await client.open()
    told(works=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""

SECOND_LOOP = """
async def main():
    client = Client()
    await client.open()
    async def use():
        return await asyncio.wait_for(client.call("echo", {"message": "a"}), 5)
    answer = await asyncio.to_thread(asyncio.run, use())
    told(works=answer == "a")
    await client.close()
asyncio.run(main())
"""

PICKLED = """
import copy, pickle
async def main():
    client = Client()
    works = {}
    for name, duplicate in (("pickle", lambda it: pickle.loads(pickle.dumps(it))),
                            ("deepcopy", copy.deepcopy)):
        try:
            other = Client()
            other.it = duplicate(client.it)
            await other.open()
            await other.call("echo", {"message": "a"})
            await other.close()
            works[name] = True
        except BaseException as error:
            works[name] = False
    told(**works)
asyncio.run(main())
"""

BIG = """
async def main():
    client = Client()
    await client.open()
    await client.call("big", {"bytes": 1000})
    lag, end = 0.0, False
    async def watch():
        nonlocal lag
        while not end:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            lag = max(lag, time.perf_counter() - before - 0.001)
    watching = asyncio.create_task(watch())
    start = time.perf_counter()
    text = await client.call("big", {"bytes": BYTES})
    elapsed = time.perf_counter() - start
    end = True
    await watching
    assert len(text) == BYTES
    told(seconds=elapsed, lag=lag)
    await client.close()
asyncio.run(main())
"""

CANCELLED = """
async def main():
    client = Client("--hang-calls", "--journal", JOURNAL)
    await client.open()
    try:
        await asyncio.wait_for(client.call("echo", {"message": "a"}), 0.2)
    except BaseException:
        pass
    for _ in range(100):
        if "notifications/cancelled" in open(JOURNAL).read():
            return told(works=True)
        await asyncio.sleep(0.02)
    told(works=False)
asyncio.run(main())
os._exit(0)
"""

CALLS = """
async def main():
    client = Client()
    await client.open()
    message = {"message": "a" * 100}
    async def alone(count):
        for _ in range(count):
            await client.call("echo", message)
    async def at_once(count):
        async def lane():
            for _ in range(count // 50):
                await client.call("echo", message)
        await asyncio.gather(*(lane() for _ in range(50)))
    result = {}
    for name, run in (("alone", alone), ("in_flight", at_once)):
        await run(500)
        start = time.perf_counter()
        await run(2000)
        result[name] = (time.perf_counter() - start) / 2000
    told(**result)
    await client.close()
asyncio.run(main())
"""

START = """
async def main():
    client = Client()
    start = time.perf_counter()
    await client.open()
    told(seconds=time.perf_counter() - start)
    await client.close()
asyncio.run(main())
"""

# Names the modules that an application imports, and nothing of the adapters.
IMPORT = """
import os, sys, time
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
import json
memory, start = resident(), time.perf_counter()
{statement}
print(json.dumps({{"seconds": time.perf_counter() - start, "mb": resident() - memory}}))
"""
IMPORTS = {
    "bare asyncio": "import asyncio",
    "mcp": "from mcp import Client",
    "fastmcp": "from fastmcp import Client",
    "innkeeper": "from innkeeper import MCPHost",
}


@dataclass
class Run:
    """What a program did."""

    told: dict[str, Any] = field(default_factory=dict)
    errors: str = ""
    """The last line of its stderr."""
    lines: int = 0
    """The lines of its stderr."""
    ended: bool = True
    seconds: float = 0.0
    left: int = 0
    """The processes that it left."""


class Situations:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.python: str = arguments.others
        self.package: str = arguments.package
        self.server: str = arguments.server
        self.round = 0

    def run(
        self,
        client: str,
        program: str,
        *,
        kill: bool = False,
        before: str = "",
        silent: float = SILENT_SECONDS,
    ) -> Run:
        mark = f"everyday-{uuid.uuid4().hex}"
        with tempfile.TemporaryDirectory() as directory:
            command = [self.python, "-c", PRELUDE + before + ADAPTERS[client] + program]
            command += [self.server, mark, str(Path(directory) / "journal")]
            # A file: processes that are left over would keep a pipe open.
            errors = Path(directory) / "errors"
            with errors.open("w") as stderr:
                run = self._run(command, stderr, kill, silent)
            run.left = left(mark)
            lines = [line for line in errors.read_text().splitlines() if line.strip()]
            run.lines = len(lines)
            run.errors = lines[-1].strip() if lines else ""
            return run

    def _run(self, command: list[str], stderr: TextIO, kill: bool, silent: float) -> Run:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": self.package},
        )
        output = process.stdout
        assert output is not None
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append(output.readline()), daemon=True)
        reader.start()
        reader.join(silent)
        start = time.monotonic()
        run = Run(ended=bool(read))
        if kill or not read:
            process.kill()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            run.ended = False
            process.kill()
            process.wait()
        run.seconds = time.monotonic() - start
        if read and read[0].startswith("{"):
            run.told = json.loads(read[0])
        return run

    def clients(self) -> list[str]:
        """The clients in the order of this round."""
        names = list(ADAPTERS)
        return names[self.round % 3 :] + names[: self.round % 3]

    def all(self, program: str, rounds: int = ROUNDS, **options: Any) -> dict[str, list[Run]]:
        runs: dict[str, list[Run]] = {client: [] for client in ADAPTERS}
        for _ in range(rounds):
            for client in self.clients():
                runs[client].append(self.run(client, program, **options))
            self.round += 1
        return runs

    def imports(self) -> dict[str, list[dict[str, float]]]:
        results: dict[str, list[dict[str, float]]] = {name: [] for name in IMPORTS}
        for _ in range(ROUNDS):
            for name, statement in IMPORTS.items():
                command = [self.python, "-c", IMPORT.format(statement=statement)]
                environment = {**os.environ, "PYTHONPATH": self.package}
                output = subprocess.run(
                    command, capture_output=True, text=True, check=True, env=environment
                ).stdout
                results[name].append(json.loads(output))
        # The first round compiles.
        return {name: values[1:] for name, values in results.items()}


def left(mark: str) -> int:
    """Returns how many processes with the mark in their environment stay for 5 s, and kills them."""
    end = time.monotonic() + 5
    while (found := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(found)


def marked(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"MARK={mark}".encode() in text and state not in "ZX":
            found.append(int(entry.name))
    return found


def verdict(runs: list[Run]) -> str:
    """Says whether a situation works in every run."""
    bad = [run for run in runs if not run.told.get("works")]
    if not bad:
        quiet = all(run.lines == 0 for run in runs)
        return "works" if quiet else f"works, {max(run.lines for run in runs)} lines on stderr"
    if not bad[0].ended:
        return "**hangs** (stopped)"
    text = bad[0].told.get("error") or bad[0].errors or "fails"
    text = text.split("\n")[0]
    short = text if len(text) < 70 else text[:67] + "…"
    lines = f", {bad[0].lines} lines on stderr" if bad[0].lines > 1 else ""
    return f"fails: `{short}`{lines}"


def ends(runs: list[Run]) -> str:
    stuck = sum(not run.ended for run in runs)
    if stuck:
        return f"**never ends** ({stuck} of {len(runs)} runs, stopped after {END_SECONDS:.0f} s)"
    orphans = sum(run.left for run in runs)
    slowest = max(run.seconds for run in runs)
    return f"ends after {slowest:.2f} s at most; {orphans} processes left"


def processes_left(runs: list[Run]) -> str:
    return f"{sum(run.left for run in runs)} processes left after {len(runs)} runs"


def median(runs: list[Run], key: str) -> float:
    values = [run.told[key] for run in runs if key in run.told]
    return statistics.median(values) if values else float("nan")


def big(runs: list[Run]) -> str:
    if not any("seconds" in run.told for run in runs):
        return verdict(runs)
    return f"{median(runs, 'seconds'):.2f} s; {max(run.told['lag'] for run in runs) * 1e3:.0f} ms"


def copies(runs: list[Run]) -> str:
    def word(key: str) -> str:
        return "works" if all(run.told.get(key) for run in runs) else "fails"

    return f"{word('pickle')}; {word('deepcopy')}"


def table(situations: Situations) -> tuple[list[list[str]], dict[str, Any]]:
    """Runs everything; returns the rows, and the figures of the targets."""
    rows = []

    def row(title: str, runs: dict[str, list[Run]], cell: Any) -> None:
        rows.append([title, *(cell(runs[client]) for client in ADAPTERS)])
        print(" | ".join(rows[-1]), flush=True)

    row("opened in one task, closed in another", situations.all(OTHER_TASK, 3), verdict)
    row("three clients, closed in the order of opening", situations.all(ANY_ORDER, 3), verdict)
    no_fileno = situations.all(NO_FILENO, 3, before="sys.stderr = io.StringIO()")
    row("`sys.stderr` without `fileno` (Jupyter)", no_fileno, verdict)
    row("the program ends without closing", situations.all(NO_CLOSE, 3), ends)
    killed = situations.all(KILLED, 3, kill=True)
    row("SIGKILL of the interpreter; a server with a child ignores the end", killed, processes_left)
    row("used from a second event loop in a thread", situations.all(SECOND_LOOP, 3, silent=15.0), verdict)
    row("`pickle`; `copy.deepcopy`", situations.all(PICKLED, 3), copies)
    row("a cancelled call sends `notifications/cancelled`", situations.all(CANCELLED, 3), verdict)
    ten = situations.all(BIG.replace("BYTES", "10_000_000"))
    row("a result of 10 MB: time; the longest stall of the loop", ten, big)
    fifty = situations.all(BIG.replace("BYTES", "50_000_000"), 3)
    row("a result of 50 MB: time; the longest stall of the loop", fifty, big)
    start = situations.all(START)
    row("start of one server", start, lambda runs: f"{median(runs, 'seconds') * 1e3:.0f} ms")
    calls = situations.all(CALLS)
    row("a call of 100 B alone", calls, lambda runs: f"{median(runs, 'alone') * 1e6:.0f} µs")
    row("the same, 50 in flight", calls, lambda runs: f"{median(runs, 'in_flight') * 1e6:.0f} µs")
    imports = situations.imports()
    medians = {
        name: [statistics.median(value[key] for value in values) for key in ("seconds", "mb")]
        for name, values in imports.items()
    }
    cells = [f"{medians[name][0] * 1e3:.0f} ms; {medians[name][1]:.1f} MB" for name in ADAPTERS]
    bare = medians["bare asyncio"]
    rows.append(
        [f"import: time; memory (`asyncio` alone: {bare[0] * 1e3:.0f} ms; {bare[1]:.1f} MB)", *cells]
    )
    print(" | ".join(rows[-1]), flush=True)

    def ratio(key: str) -> float:
        # A shared machine changes its speed: ratios are of neighbours.
        pairs = zip(calls["innkeeper"], calls["mcp"])
        ratios = [float(mine.told[key] / theirs.told[key]) for mine, theirs in pairs]
        return statistics.median(ratios)

    mine = fifty["innkeeper"]
    figures = {
        "50 MB: time, in s": (median(mine, "seconds"), 1.5),
        "50 MB: longest stall of the loop, in ms": (max(r.told["lag"] for r in mine) * 1e3, 20.0),
        "a call alone, against `mcp`": (ratio("alone"), 1 / 3),
        "a call with 50 in flight, against `mcp`": (ratio("in_flight"), 0.1),
        "import: time, in ms": (medians["innkeeper"][0] * 1e3, 80.0),
        "import: memory, in MB": (medians["innkeeper"][1], 10.0),
    }
    return rows, figures


def render(rows: list[list[str]], figures: dict[str, Any], versions: dict[str, str]) -> str:
    heads = [f"`{name}` {versions[name]}" for name in ADAPTERS]
    lines = [f"| situation | {' | '.join(heads)} |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    lines += ["", "| target of `innkeeper` | measured | at most |", "| --- | ---: | ---: |"]
    for name, (value, target) in figures.items():
        met = f"{value:.3g}" if value <= target else f"**{value:.3g}**, missed"
        lines.append(f"| {name} | {met} | {target:.3g} |")
    lines += ["", f"Python {versions['python']}, Linux {platform.machine()}, {os.cpu_count()} CPUs."]
    return "\n".join(lines)


def versions(python: str, package: str) -> dict[str, str]:
    program = (
        "import json, platform, importlib.metadata as m, innkeeper; print(json.dumps({"
        "'mcp': m.version('mcp'), 'fastmcp': m.version('fastmcp'),"
        "'innkeeper': innkeeper.__version__, 'python': platform.python_version()}))"
    )
    environment = {**os.environ, "PYTHONPATH": package}
    output = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout
    found: dict[str, str] = json.loads(output)
    return found


BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--write", action="store_true", help="replace the tables of the report")
    arguments = parser.parse_args()
    rows, figures = table(Situations(arguments))
    text = render(rows, figures, versions(arguments.others, arguments.package))
    print(text)
    if arguments.write:
        page = Path(__file__).resolve().parents[2] / "docs/reports/python.md"
        before, rest = page.read_text().split(BEGIN)
        after = rest.split(END)[1]
        page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

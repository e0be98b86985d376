"""Runs the workload of a benchmark client with the client of the official Python SDK.

The arguments are those of `bench/src/workload.rs`, the printed line is that of `bench/src/figures.rs`.
"""

import argparse
import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcp import Client, StdioServerParameters

# Seconds of calls before the measurement.
WARM_UP_SECONDS = 0.15
# Idle seconds of a started client before the measurement of its memory.
IDLE_SECONDS = 0.3
LETTERS = "etaoin shrdlu cmfwyp vbgkjq xz "


@dataclass
class BenchCase:
    """The sizes of messages and results in bytes, and the numbers of calls in flight and of servers."""

    message_bytes: int
    result_bytes: int | None = None
    in_flight: int = 1
    servers: int = 1

    @property
    def text_length(self):
        """The length of the text of a correct result."""
        return self.result_bytes or self.message_bytes


CASES = {
    "sequential": BenchCase(100),
    "flight": BenchCase(100, in_flight=50),
    "servers": BenchCase(100, in_flight=500, servers=10),
    "medium": BenchCase(10_000),
    "result": BenchCase(0, result_bytes=1_000_000),
    "message": BenchCase(1_000_000),
    "start": None,
}


def message_text(length):
    """Returns text with a newline every 100 bytes, so that JSON must escape characters."""
    letters = (LETTERS[at % len(LETTERS)] if at % 100 else "\n" for at in range(1, length + 1))
    return "".join(letters)


async def hold_session(echo, connected, closing):
    """Starts a server, lists everything that the server offers, and waits for the shutdown.

    The SDK requires that one task opens and closes a client.
    """
    async with Client(StdioServerParameters(command=echo)) as client:
        listed = await asyncio.gather(
            client.list_tools(), client.list_prompts(), client.list_resources()
        )
        connected.set_result((client, len(listed[0].tools)))
        await closing.wait()


@asynccontextmanager
async def connect(echo, servers):
    """Starts the servers at once; returns their clients and the number of their tools."""
    closing = asyncio.Event()
    connected = [asyncio.get_running_loop().create_future() for _ in range(servers)]
    async with asyncio.TaskGroup() as tasks:
        for session in connected:
            tasks.create_task(hold_session(echo, session, closing))
        clients, tools = zip(*[await session for session in connected])
        yield clients, sum(tools)
        closing.set()


async def run_calls(clients, case, seconds):
    """Calls until the time is over; returns the nanoseconds of each call and the figures of all calls."""
    message = message_text(case.message_bytes)
    nanos = []
    cpu, start = time.process_time(), time.perf_counter_ns()
    until = start + int(seconds * 1e9)

    async def run_caller(client):
        begin = time.perf_counter_ns()
        while begin < until:
            arguments = {"message": message}
            if case.result_bytes:
                arguments["bytes"] = case.result_bytes
            result = await client.call_tool("echo", arguments)
            if len(result.content[0].text) != case.text_length:
                raise ValueError("incomplete response")
            end = time.perf_counter_ns()
            nanos.append(end - begin)
            begin = end

    callers = [run_caller(clients[caller % case.servers]) for caller in range(case.in_flight)]
    await asyncio.gather(*callers)
    wall_seconds = (time.perf_counter_ns() - start) / 1e9
    return nanos, wall_seconds, time.process_time() - cpu


async def measure_calls(args, case):
    """Runs the calls of one case."""
    async with connect(args.echo, case.servers) as (clients, _):
        await run_calls(clients, case, WARM_UP_SECONDS)
        nanos, wall_seconds, cpu_seconds = await run_calls(clients, case, args.seconds)
    calls = len(nanos)
    latencies = sorted(nanos) if case.in_flight == 1 else []
    return {
        "calls": calls,
        "per_second": calls / wall_seconds,
        "p50_us": quantile(latencies, 0.5),
        "p99_us": quantile(latencies, 0.99),
        "cpu_us": cpu_seconds * 1e6 / calls,
        "rss_kb": status_kb("VmRSS:"),
        "peak_rss_kb": status_kb("VmHWM:"),
    }


async def measure_start(args):
    """Starts, lists, idles and closes all servers. The client has no processes besides the servers."""
    begin = time.perf_counter()
    async with connect(args.echo, args.servers) as (_, tools):
        ready = time.perf_counter()
        await asyncio.sleep(IDLE_SECONDS)
        idle_kb = status_kb("VmRSS:")
        end = time.perf_counter()
    return {
        "ready_ms": (ready - begin) * 1e3,
        "tools": tools,
        "idle_kb": idle_kb,
        "supervisors_kb": 0,
        "total_kb": idle_kb,
        "close_ms": (time.perf_counter() - end) * 1e3,
    }


def quantile(ascending, share):
    """Returns a quantile in microseconds."""
    return ascending[int(len(ascending) * share)] / 1e3 if ascending else None


def status_kb(key):
    """Returns the value of a `kB` line in `/proc/self/status`."""
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key))


def main():
    """Prints the figures of one case. The SDK has one runtime, and no log of calls."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, default="sequential")
    parser.add_argument("--runtime", choices=["current"], default="current")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--log", choices=["on", "off"])
    parser.add_argument("--echo", required=True)
    args = parser.parse_args()
    case = CASES[args.case]
    if case:
        # The servers inherit the CPU, as in `bench/src/program.rs`.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    figures = asyncio.run(measure_calls(args, case) if case else measure_start(args))
    print(json.dumps({"peer": "python", "case": args.case, "runtime": args.runtime, **figures}))


main()

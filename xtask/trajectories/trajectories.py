"""Runs the golden actions of public benchmarks, directly or behind an MCP server.

record FAMILY FILE [--tenth]   runs the golden actions with the benchmark's own code and writes each
                               task with its calls, their results and the final state
serve FAMILY TASK FILE         serves the tools of a task over stdio; FILE has the calls so far and
                               the state after the latest call
"""

import copy
import json
import sys
from pathlib import Path

# Without files beside the scripts.
sys.dont_write_bytecode = True


def open_family(name):
    """Returns the benchmark. The import of a benchmark takes up to a second."""
    match name:
        case "bfcl":
            from family_bfcl import Bfcl

            return Bfcl()
        case "banking":
            from family_banking import Banking

            return Banking()
        case _:
            from family_tau2 import Tau2

            return Tau2(name)


def record(name, file, tenth):
    family = open_family(name)
    tasks = []
    is_change_found = False
    for task in family.tasks()[:: 10 if tenth else 1]:
        family.begin(task)
        state = None if is_change_found else family.state()
        last_change = None
        turns = []
        for turn in task["turns"]:
            calls = []
            for golden in turn:
                tool, arguments = family.to_call(golden)
                # A tool may change its arguments.
                arguments = copy.deepcopy(arguments)
                discovered = family.to_discovered_call(tool, arguments)
                text, is_error = family.run_golden(golden)
                call = {"tool": tool, "arguments": arguments, "text": text, "is_error": is_error}
                if discovered:
                    call["discovered"] = dict(zip(("tool", "arguments"), discovered))
                if not is_change_found and family.state() != state:
                    state, last_change = family.state(), call
                calls.append(call)
            turns.append(calls)
        if last_change:
            # The check of the comparison leaves this call out.
            last_change["is_last_change"] = is_change_found = True
        tasks.append({"id": task["id"], "turns": turns, "state": family.golden_state(task)})
    Path(file).write_text(json.dumps(tasks), encoding="utf-8")


class Server:
    """An MCP server with the tools of one task."""

    def __init__(self, name, task_id, file):
        self.family = open_family(name)
        self.file = Path(file)
        self.family.begin(next(task for task in self.family.tasks() if task["id"] == task_id))
        self.calls = []
        self.write_state()

    def write_state(self):
        content = {"calls": self.calls, "state": self.family.state()}
        self.file.write_text(json.dumps(content), encoding="utf-8")

    def tools(self):
        keys = ("name", "description", "inputSchema")
        return [dict(zip(keys, tool)) for tool in self.family.tools()]

    def call(self, name, arguments):
        self.calls.append({"tool": name, "arguments": copy.deepcopy(arguments)})
        tools = self.tools()
        text, is_error = self.family.call(name, arguments)
        self.write_state()
        if self.tools() != tools:
            self.send({"method": "notifications/tools/list_changed"})
        return {"content": [{"type": "text", "text": text}], "isError": is_error}

    def answer(self, method, params):
        if method == "initialize":
            server = {"name": "trajectories", "version": "1"}
            version = params["protocolVersion"]
            capabilities = {"tools": {"listChanged": True}}
            return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}
        if method == "tools/list":
            return {"tools": self.tools()}
        if method == "tools/call":
            return self.call(params["name"], params.get("arguments", {}))
        return {} if method == "ping" else None

    def serve(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            result = self.answer(message["method"], message.get("params", {}))
            reply = {"id": message["id"], "result": result}
            if result is None:
                del reply["result"]
                reply["error"] = {"code": -32601, "message": "no such method"}
            self.send(reply)

    def send(self, message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main():
    match sys.argv[1:]:
        case ["record", name, file, *rest]:
            record(name, file, rest == ["--tenth"])
        case ["serve", name, task, file]:
            Server(name, task, file).serve()
        case _:
            sys.exit(__doc__)


main()

"""Runs the golden actions of public benchmarks, directly or behind an MCP server.

record FAMILY FILE [--tenth]   runs the golden actions with the benchmark's own code and writes each
                               task with its calls, their results and the final state
serve FAMILY TASK FILE         serves the tools of a task over stdio; FILE has the state after the
                               latest call
"""

import ast
import copy
import hashlib
import importlib
import inspect
import json
import random
import sys
from pathlib import Path


def digest(value):
    """Returns a hash of a value and of everything that the value refers to."""
    text = json.dumps(plain(value, ()), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value, parents):
    """Converts a value to JSON. A reference to a parent, such as that of a directory, is its depth."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if id(value) in parents:
        return {"parent": len(parents) - parents.index(id(value))}
    parents = (*parents, id(value))
    if isinstance(value, dict):
        return [[plain(key, parents), plain(item, parents)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(item, parents) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(plain(item, parents)) for item in value)
    if isinstance(value, random.Random):
        return plain(value.getstate(), parents)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__dict__"):
        # The only time of the clock in a state: when a file of BFCL was written.
        fields = {key: item for key, item in vars(value).items() if key != "_last_modified"}
        return {"class": type(value).__name__, "fields": plain(fields, parents)}
    raise TypeError(f"no JSON for {type(value)}")


class Bfcl:
    """The multi-turn base of BFCL: several turns, tools of one to three classes."""

    FILE = "BFCL_v4_multi_turn_base.json"

    def __init__(self):
        import bfcl_eval

        self.data = Path(bfcl_eval.__file__).parent / "data"
        self.config = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        utils = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
        self.execute = importlib.import_module(utils).execute_multi_turn_func_call

    def tasks(self):
        """Returns the tasks; a golden action is the text of a Python call."""
        golden = {task["id"]: task["ground_truth"] for task in self.read("possible_answer/" + self.FILE)}
        tasks = self.read(self.FILE)
        return [{**task, "turns": golden[task["id"]]} for task in tasks]

    def read(self, name):
        with open(self.data / name, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def begin(self, task):
        self.task = task
        self.instances = self.run([])[1]

    def run(self, calls):
        task = self.task
        classes = task["involved_classes"]
        return self.execute(calls, task["initial_config"], classes, "replay", task["id"])

    def run_golden(self, call):
        text = self.run([call])[0][0]
        return text, self.is_error(text)

    def call(self, name, arguments):
        return self.run_golden(f"{name}(**{arguments!r})")

    @staticmethod
    def is_error(text):
        try:
            value = json.loads(text)
        except ValueError:
            return text.startswith("Error during execution")
        return isinstance(value, dict) and "error" in value

    def to_call(self, golden):
        """Reads a golden action; an argument without a name gets the name of its parameter."""
        call = ast.parse(golden, mode="eval").body
        name = call.func.id
        owner = next(item for item in self.instances.values() if hasattr(item, name))
        values = [ast.literal_eval(item) for item in call.args]
        named = {item.arg: ast.literal_eval(item.value) for item in call.keywords}
        names = list(inspect.signature(getattr(owner, name)).parameters)
        return name, {**dict(zip(names, values)), **named}

    def tools(self):
        files = self.config.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        tools = {}
        for owner in self.task["involved_classes"]:
            for tool in self.read("multi_turn_func_doc/" + files[owner]):
                schema = self.schema(tool["parameters"])
                # The executor calls the method of the last class with that name.
                tools[tool["name"]] = (tool["name"], tool["description"], schema)
        return list(tools.values())

    def schema(self, schema):
        """Replaces the Python types of a schema by those of JSON Schema."""
        types = {"dict": "object", "float": "number", "tuple": "array"}
        result = copy.deepcopy(schema)
        kind = result.pop("type", "any")
        if kind != "any":
            result["type"] = types.get(kind, kind)
        if "items" in result:
            result["items"] = self.schema(result["items"])
        properties = result.get("properties", {})
        if properties:
            result["properties"] = {key: self.schema(value) for key, value in properties.items()}
        return result

    def state(self):
        return digest(self.instances)


class Tau2:
    """A domain of tau2-bench: one turn, and a database as the state."""

    def __init__(self, domain):
        from loguru import logger

        logger.remove()
        self.module = importlib.import_module(f"tau2.domains.{domain}.environment")
        self.tool_call = importlib.import_module("tau2.data_model.message").ToolCall

    def tasks(self):
        tasks = self.module.get_tasks(None)
        return [{"id": task.id, "turns": [task.evaluation_criteria.actions or []]} for task in tasks]

    def begin(self, _task):
        self.environment = self.module.get_environment()

    def run_golden(self, action):
        return self.call(action.name, action.arguments)

    def call(self, name, arguments):
        call = self.tool_call(id="call", name=name, arguments=arguments, requestor="assistant")
        answer = self.environment.get_response(call)
        return answer.content, answer.error

    def to_call(self, action):
        return action.name, action.arguments

    def tools(self):
        functions = [tool.openai_schema["function"] for tool in self.environment.get_tools()]
        return [(item["name"], item["description"], item["parameters"]) for item in functions]

    def state(self):
        return self.environment.get_db_hash()


def open_family(name):
    return Bfcl() if name == "bfcl" else Tau2(name)


def record(name, file, tenth):
    family = open_family(name)
    tasks = []
    for task in family.tasks()[:: 10 if tenth else 1]:
        family.begin(task)
        turns = []
        for turn in task["turns"]:
            calls = []
            for golden in turn:
                tool, arguments = family.to_call(golden)
                # A tool may change its arguments.
                arguments = copy.deepcopy(arguments)
                text, is_error = family.run_golden(golden)
                calls.append({"tool": tool, "arguments": arguments, "text": text, "is_error": is_error})
            turns.append(calls)
        tasks.append({"id": task["id"], "turns": turns, "state": family.state()})
    Path(file).write_text(json.dumps(tasks), encoding="utf-8")


class Server:
    """An MCP server with the tools of one task."""

    def __init__(self, name, task_id, file):
        self.family = open_family(name)
        self.file = Path(file)
        self.family.begin(next(task for task in self.family.tasks() if task["id"] == task_id))
        self.write_state()

    def write_state(self):
        self.file.write_text(self.family.state(), encoding="utf-8")

    def answer(self, method, params):
        if method == "initialize":
            server = {"name": "trajectories", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        if method == "tools/list":
            keys = ("name", "description", "inputSchema")
            return {"tools": [dict(zip(keys, tool)) for tool in self.family.tools()]}
        if method == "tools/call":
            text, is_error = self.family.call(params["name"], params.get("arguments", {}))
            self.write_state()
            return {"content": [{"type": "text", "text": text}], "isError": is_error}
        return {} if method == "ping" else None

    def serve(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            result = self.answer(message["method"], message.get("params", {}))
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            if result is None:
                del reply["result"]
                reply["error"] = {"code": -32601, "message": "no such method"}
            print(json.dumps(reply), flush=True)


def main():
    match sys.argv[1:]:
        case ["record", name, file, *rest]:
            record(name, file, rest == ["--tenth"])
        case ["serve", name, task, file]:
            Server(name, task, file).serve()
        case _:
            sys.exit(__doc__)


main()

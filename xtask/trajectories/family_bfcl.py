"""The multi-turn base of BFCL: several turns, tools of one to three classes."""

import ast
import copy
import hashlib
import importlib
import inspect
import json
import random
from pathlib import Path

import bfcl_eval

FILE = "BFCL_v4_multi_turn_base.json"

# The golden arguments that contradict the definition of their tool, with the type of their values.
# The executor of BFCL does not check arguments; a host does.
ARGUMENT_TYPES = {("multi_turn_base_173", "close_ticket", "ticket_id"): "string"}


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
    def __init__(self):
        self.data = Path(bfcl_eval.__file__).parent / "data"
        self.config = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        utils = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
        self.execute = importlib.import_module(utils).execute_multi_turn_func_call

    def tasks(self):
        """Returns the tasks; a golden action is the text of a Python call."""
        golden = {task["id"]: task["ground_truth"] for task in self.read("possible_answer/" + FILE)}
        return [{**task, "turns": golden[task["id"]]} for task in self.read(FILE)]

    def read(self, name):
        with open(self.data / name, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def begin(self, task):
        self.task = task
        self.instances = self.run([])[1]
        self.definitions = self.read_definitions()

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

    def to_discovered_call(self, _name, _arguments):
        return None

    def tools(self):
        return self.definitions

    def read_definitions(self):
        files = self.config.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        tools = {}
        for owner in self.task["involved_classes"]:
            for tool in self.read("multi_turn_func_doc/" + files[owner]):
                name = tool["name"]
                schema = self.schema(tool["parameters"])
                for (task_id, tool_name, argument), kind in ARGUMENT_TYPES.items():
                    if (task_id, tool_name) == (self.task["id"], name):
                        schema["properties"][argument]["type"] = kind
                # The executor calls the method of the last class with that name.
                tools[name] = (name, tool["description"], schema)
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

    def golden_state(self, _task):
        return self.state()

"""The banking domain of tau3-bench: agent and user share a database, and tools are discovered.

The agent unlocks the tools that the knowledge base names, and gives tools to the user. The golden
actions call both through tools of the benchmark (`call_discoverable_agent_tool`). The server also
lists each discovered tool as a tool of its own.
"""

import asyncio
import copy
import inspect
import json

from inspect_ai.tool import ToolDef, ToolError
from inspect_evals.tau2.banking import environment, scorer
from inspect_evals.tau2.banking.BankingAgentTools import BankingAgentTools
from inspect_evals.tau2.banking.BankingUserTools import USER_DISCOVERABLE_TOOLS
from inspect_evals.tau2.banking.tools import all_banking_agent_tools
from inspect_evals.tau2.banking.user_tools import all_banking_user_tools
from inspect_evals.tau2.banking.utils import BANKING_TASKS_FILE
from inspect_evals.tau2.data_model.tasks import Task

PREFIX = "banking_"

# The tools that call a discovered tool, with the argument that has the name of that tool.
CALLERS = {
    "call_discoverable_agent_tool": "agent_tool_name",
    "call_discoverable_user_tool": "discoverable_tool_name",
}


class Banking:
    def __init__(self):
        offered = [make() for make in (*all_banking_agent_tools, *all_banking_user_tools)]
        definitions = [ToolDef(tool) for tool in offered]
        self.functions = {item.name.removeprefix(PREFIX): item for item in definitions}

    def tasks(self):
        tasks = json.loads(BANKING_TASKS_FILE.read_text(encoding="utf-8"))
        return [{**task, "turns": [task["evaluation_criteria"]["actions"] or []]} for task in tasks]

    def begin(self, task):
        # Discards the tools of the task before.
        for tools in (environment.get_agent_tools(), environment.get_user_tools()):
            for name, field in type(tools).model_fields.items():
                if name not in ("store", "instance"):
                    setattr(tools, name, field.get_default(call_default_factory=True))
        environment.initialize_environment()
        self.agent, self.user = environment.get_agent_tools(), environment.get_user_tools()
        environment.apply_initial_state(self.agent, self.user, self.parse(task).initial_state)

    @staticmethod
    def parse(task):
        """Returns a task of the benchmark. A database changes the initial state that it is set to."""
        task = copy.deepcopy(task)
        del task["turns"]
        return Task.model_validate(task)

    def run_golden(self, action):
        """Runs an action as the scorer does."""
        tools = self.agent if action["requestor"] == "assistant" else self.user
        method = getattr(tools, action["name"])
        return self.respond(lambda: method(**action["arguments"]))

    def call(self, name, arguments):
        """Calls a tool of the benchmark, or a discovered tool through its caller."""
        if name not in self.functions:
            caller = "user" if name in USER_DISCOVERABLE_TOOLS else "agent"
            caller = f"call_discoverable_{caller}_tool"
            name, arguments = caller, {CALLERS[caller]: name, "arguments": json.dumps(arguments)}
        function = self.functions[name].tool
        return self.respond(lambda: asyncio.run(function(**arguments)))

    @staticmethod
    def respond(run):
        try:
            return run(), False
        except ToolError as error:
            return str(error), True

    def to_call(self, action):
        return action["name"], action["arguments"]

    def to_discovered_call(self, name, arguments):
        """Returns the direct call of a tool that a golden action calls through another tool.

        A golden action that misses a required argument has no direct call: a host refuses the call.
        """
        target = arguments.get(CALLERS.get(name))
        owner = self.discovered().get(target)
        if owner is None:
            return None
        direct = json.loads(arguments.get("arguments", "{}"))
        required = self.describe(target, owner)[2]["required"]
        return (target, direct) if direct.keys() >= set(required) else None

    def discovered(self):
        """Returns the methods of the tools that are unlocked or given."""
        given = [row["tool_name"] for row in self.user.db.user_discoverable_tools.data.values()]
        tools = {name: self.agent for name in self.agent.agent_unlocked_tools}
        return {**tools, **{name: self.user for name in given}}

    def tools(self):
        fixed = [
            (name, item.description, item.parameters.model_dump(exclude_none=True))
            for name, item in self.functions.items()
        ]
        return fixed + [self.describe(*item) for item in self.discovered().items()]

    @staticmethod
    def describe(name, owner):
        """Returns the definition of a discovered tool, as the benchmark reads the documentation.

        A parameter with the default `None` also takes `None`, which the documentation does not say.
        """
        info = BankingAgentTools._parse_discoverable_docstring(owner, name)
        defaults = inspect.signature(getattr(owner, name)).parameters
        properties = {}
        for key, item in info["parameters"].items():
            is_nullable = defaults[key].default is None
            kind = [item["type"], "null"] if is_nullable else item["type"]
            properties[key] = {"type": kind, "description": item["description"]}
        required = [key for key, item in info["parameters"].items() if item["required"]]
        schema = {"type": "object", "properties": properties, "required": required}
        return name, info["description"], schema

    def state(self):
        return self.agent.db.get_hash()

    def golden_state(self, task):
        """Returns the state that the scorer (`banking_db_match`) demands."""
        task = self.parse(task)
        actions = task.evaluation_criteria.actions or []
        return scorer._build_expected_db(actions, task.initial_state).get_hash()

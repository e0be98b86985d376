"""A domain of tau2-bench: one turn, and a database as the state."""

import importlib

from loguru import logger

logger.remove()

from tau2.data_model.message import ToolCall  # noqa: E402 (the import logs)


class Tau2:
    def __init__(self, domain):
        self.module = importlib.import_module(f"tau2.domains.{domain}.environment")

    def tasks(self):
        tasks = self.module.get_tasks(None)
        return [self.to_task(task) for task in tasks]

    @staticmethod
    def to_task(task):
        actions = task.evaluation_criteria.actions or []
        return {"id": task.id, "turns": [actions], "initial_state": task.initial_state}

    def begin(self, task):
        self.environment = self.open_environment(task)

    def open_environment(self, task):
        """Returns an environment in the initial state of a task, as the evaluator sets the state."""
        environment = self.module.get_environment()
        initial = task["initial_state"]
        environment.set_state(
            initialization_data=initial and initial.initialization_data,
            initialization_actions=initial and initial.initialization_actions,
            message_history=(initial and initial.message_history) or [],
        )
        return environment

    def run_golden(self, action):
        return self.respond(action.name, action.arguments, action.requestor)

    def call(self, name, arguments):
        return self.respond(name, arguments, "assistant")

    def respond(self, name, arguments, requestor):
        call = ToolCall(id="call", name=name, arguments=arguments, requestor=requestor)
        answer = self.environment.get_response(call)
        return answer.content, answer.error

    def to_call(self, action):
        return action.name, action.arguments

    def to_discovered_call(self, _name, _arguments):
        return None

    def tools(self):
        functions = [tool.openai_schema["function"] for tool in self.environment.get_tools()]
        return [(item["name"], item["description"], item["parameters"]) for item in functions]

    def state(self):
        return self.environment.get_db_hash()

    def golden_state(self, task):
        """Returns the state that the evaluator (`EnvironmentEvaluator`) demands."""
        environment = self.open_environment(task)
        for action in task["turns"][0]:
            try:
                environment.make_tool_call(
                    tool_name=action.name, requestor=action.requestor, **action.arguments
                )
            except Exception:
                # The evaluator goes on after an action that fails.
                pass
        return environment.get_db_hash()

"""Writes the JSON Schemas of the messages that an MCP client sends, one file per era.

The Python package `mcp-types` contains the wire types of each era, generated from the JSON Schema of
the specification. `cargo xtask install` installs the package. Usage:

    target/test-servers/venv/bin/python crates/innkeeper-testkit/schemas/generate.py
"""

import importlib.metadata
import json
import pathlib
import re

import mcp_types._v2025_11_25 as legacy
import mcp_types._v2026_07_28 as modern
from pydantic.json_schema import models_json_schema

# The requests of servers, with the type of the client's result.
LEGACY_RESULTS = {
    "elicitation/create": legacy.ElicitResult,
    "ping": legacy.EmptyResult,
    "roots/list": legacy.ListRootsResult,
    "sampling/createMessage": legacy.CreateMessageResult,
}

# Members that do not affect validation.
ANNOTATIONS = ("title", "description", "default")


def method_types(union):
    return {member.model_fields["method"].annotation.__args__[0]: member for member in union.__args__}


def without_annotations(node, named=False):
    """Removes annotations, and the null that `None` as default permits.

    The members of `properties` and `$defs` (`named`) are names.
    """
    if isinstance(node, list):
        return [without_annotations(item) for item in node]
    if not isinstance(node, dict):
        return node
    if named:
        return {name: without_annotations(schema) for name, schema in node.items()}
    cleaned = {}
    for key, value in node.items():
        if key in ANNOTATIONS:
            continue
        if key == "properties":
            value = {
                name: schema if name in node.get("required", []) else without_null(schema)
                for name, schema in value.items()
            }
        cleaned[key] = without_annotations(value, key in ("properties", "$defs"))
    return cleaned


def without_null(schema):
    if "default" not in schema or schema["default"] is not None or "anyOf" not in schema:
        return schema
    choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def write(era, module, requests, notifications, results):
    envelopes = {
        "error": module.JSONRPCErrorResponse,
        "notification": module.JSONRPCNotification,
        "request": module.JSONRPCRequest,
        "result": module.JSONRPCResultResponse,
    }
    types = [*requests.values(), *notifications.values(), *results.values(), *envelopes.values()]
    refs, definitions = models_json_schema([(type, "validation") for type in types], by_alias=True)

    def references(types):
        return {name: refs[type, "validation"]["$ref"] for name, type in sorted(types.items())}

    source = re.search(r"sha256 `(\w+)`", module.__doc__)[1]
    schema = {
        "$comment": "Messages of an MCP client, written by generate.py from mcp-types "
        f"{importlib.metadata.version('mcp-types')}, under the MIT licence in the file LICENSE. Schema of "
        f"the specification: {era}, SHA-256 {source}.",
        "requests": references(requests),
        "notifications": references(notifications),
        "results": references(results),
        "envelopes": references(envelopes),
        "$defs": without_annotations(definitions["$defs"], True),
    }
    path = pathlib.Path(__file__).with_name(f"{era}.json")
    path.write_text(json.dumps(schema, indent=1, sort_keys=False) + "\n")


def main():
    notifications = method_types(legacy.ClientNotification)
    write("2025-11-25", legacy, method_types(legacy.ClientRequest), notifications, LEGACY_RESULTS)
    cancelled = {"notifications/cancelled": modern.CancelledNotification}
    write("2026-07-28", modern, method_types(modern.ClientRequest), cancelled, {})


main()

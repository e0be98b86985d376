"""Evaluate the guard on texts that its rules are not based on, one session per corpus.

    texts.py GATEWAY BFCL AGENTDOJO     prints one JSON line per corpus
    texts.py --serve FILE               the server behind GATEWAY: its tools and their results
"""

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Tools per list; the host accepts at most 10,000.
SESSION = 3000
PAGE = 500
ANY = {"type": "object", "additionalProperties": True}


def serve(path):
    items = json.loads(Path(path).read_text())
    answers = {item["tool"]["name"]: item.get("content") for item in items}
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message["method"], message.get("params") or {}
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            capabilities, info = {"tools": {}}, {"name": "texts", "version": "1"}
            version = params["protocolVersion"]
            answer["result"] = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        elif method == "tools/list":
            at = int(params.get("cursor") or 0)
            answer["result"] = {"tools": [item["tool"] for item in items[at : at + PAGE]]}
            if at + PAGE < len(items):
                answer["result"]["nextCursor"] = str(at + PAGE)
        elif method == "tools/call":
            answer["result"] = {"content": answers[params["name"]] or [{"type": "text", "text": "ok"}]}
        else:
            answer["error"] = {"code": -32601, "message": "not known"}
        print(json.dumps(answer), flush=True)


def refused(gateway, mode, items):
    """Return the items with withheld content, and the number of flagged items."""
    found, flagged = [], 0
    for at in range(0, len(items), SESSION):
        some, lines = session(gateway, mode, items[at : at + SESSION])
        found += some
        flagged += lines
    return found, flagged


def session(gateway, mode, items):
    with tempfile.TemporaryDirectory() as folder:
        path, errors = Path(folder, "items.json"), Path(folder, "errors")
        path.write_text(json.dumps(items))
        behind = {"command": sys.executable, "args": [__file__, "--serve", str(path)]}
        config = {"host": {"guard": mode}, "servers": {"behind": behind}}
        Path(folder, "mcp.json").write_text(json.dumps(config))
        command = [gateway, "serve", "--stdio", "--names", "flat", "--config", "mcp.json", "--log-format", "json"]
        with errors.open("w") as log, subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        ) as program:

            def ask(method, **params):
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                program.stdin.write(json.dumps(message) + "\n")
                program.stdin.flush()
                return json.loads(program.stdout.readline())

            ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "x", "version": "1"})
            listed, page = set(), {"nextCursor": None}
            while "nextCursor" in page:
                cursor = page["nextCursor"]
                page = ask("tools/list", **({} if cursor is None else {"cursor": cursor}))["result"]
                listed |= {tool["name"] for tool in page["tools"]}
            found = []
            for item in items:
                name, call = item["tool"]["name"], item.get("call")
                if name not in listed:
                    found.append(item)
                elif call is not None and is_refused(ask("tools/call", name=name, arguments=call)):
                    found.append(item)
            program.stdin.close()
            program.wait(60)
        # Each audit line is a finding.
        flagged = sum('"security":true' in line for line in errors.read_text().splitlines())
    return found, flagged


def is_refused(answer):
    """The server itself answers no call with an error."""
    return "error" in answer or answer["result"].get("isError", False)


class Items(list):
    """Return the tools with unique names, because two corpora share names."""

    def add(self, of, tool, call=None, content=None):
        kept = {"name": f"{tool['name'][:100]}_{len(self)}", "inputSchema": tool.get("inputSchema") or ANY}
        if tool.get("description") is not None:
            kept["description"] = tool["description"]
        self.append({"of": of, "tool": kept, "call": call, "content": content})


def harmless():
    """Return the harmless definitions, calls and results of the benchmark."""
    from mcp_defense_bench.adapters._fixture import calls
    from mcp_defense_bench.bench import Bench

    items, cases = Items(), Bench.vendored_snapshot().load_cases("benign")
    for case in cases:
        fixture, name = case["fixture"], case["id"]
        match fixture["type"]:
            case "benign-tool-definition":
                items.add(name, fixture["tool"])
            case "definition-change":
                items.add(name, fixture["before"])
                items.add(name, fixture["after"])
            case "tool-call" | "benign-tool-result":
                content = (fixture.get("result") or {}).get("content")
                for call in calls(fixture):
                    items.add(name, fixture["tool"], call["arguments"], content)
            case "tool-call-sequence":
                for call in calls(fixture):
                    items.add(name, {"name": call["name"]}, call["arguments"])
    return items, len(cases)


# Type names with a different name in JSON Schema.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "HashMap": "object", "ArrayList": "array"}
TYPES |= {"Array": "array", "String": "string", "Boolean": "boolean", "double": "number", "long": "integer"}
TYPES |= {"char": "string", "Bigint": "integer", "Hashtable": "object", "hashtable": "object", "byte": "integer"}
TYPES |= {"short": "integer", "Queue": "array", "Stack": "array", "set": "array", "any": None, "Any": None}


def schema(part):
    if isinstance(part, list):
        return [schema(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {name: schema(value) for name, value in part.items()}
    kind = kept.get("type")
    if isinstance(kind, str) and kind in TYPES:
        del kept["type"]
        kept |= {"type": TYPES[kind]} if TYPES[kind] else {}
    return kept


def rows(path):
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def functions(data):
    """Return the distinct function documents of BFCL and the calls of its answers."""
    documents, of_case = {}, {}
    for path in sorted(data.glob("BFCL_v*.json")) + sorted(data.glob("multi_turn_func_doc/*.json")):
        for row in rows(path):
            own = [row] if "parameters" in row else row.get("function", [])
            for document in own:
                documents.setdefault(json.dumps(document, sort_keys=True), document)
                of_case.setdefault(row.get("id"), {})[document["name"]] = document
    defined, called = Items(), Items()
    for document in documents.values():
        defined.add(document["name"], {**document, "inputSchema": schema(document["parameters"])})
    first = lambda value: value[0] if isinstance(value, list) and value else value
    for path in sorted((data / "possible_answer").glob("BFCL_v*.json")):
        for row in rows(path):
            truth = row["ground_truth"]
            calls = [call for call in truth if isinstance(call, dict)] if isinstance(truth, list) else []
            for name, given in (one for call in calls for one in call.items()):
                document = of_case.get(row["id"], {}).get(name)
                if document is None or not isinstance(given, dict):
                    continue
                # An answer lists the accepted values of each argument; an empty string stands for an absent argument.
                arguments = {key: first(value) for key, value in given.items() if first(value) != ""}
                known = document["parameters"].get("properties", {})
                # Without types: the guard scans arguments for attacks, the validator is not under test.
                said = {key: {"description": about.get("description", "")} for key, about in known.items()}
                tool = {"name": name, "inputSchema": {"type": "object", "properties": said}}
                called.add(row["id"], tool, arguments)
    return defined, called


def injections(package):
    """Return the goals of AgentDojo's injections in each of its templates, as results."""
    goals, templates = set(), {"the goal alone": "{goal}"}
    for path in sorted(package.glob("default_suites/v1*/*/injection_tasks.py")):
        for task in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
            known = {}
            for line in (line for line in task.body if isinstance(line, (ast.Assign, ast.AnnAssign))):
                target = line.targets[0] if isinstance(line, ast.Assign) else line.target
                try:
                    value = eval(compile(ast.Expression(line.value), "", "eval"), {"__builtins__": {}}, known)
                except Exception:  # values that need the package itself are no texts
                    continue
                known[target.id] = value
            goals |= {known["GOAL"]} if isinstance(known.get("GOAL"), str) else set()
    for path in sorted(package.glob("attacks/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and "{goal}" in text and not text.startswith("Attack which"):
                label = " ".join(text.split())
                label = label if len(label) < 60 else f"{label[:57]}..."
                # Two names may have the same prefix.
                alike = sum(other.startswith(label) for other in templates)
                templates[f"{label} ({alike + 1})" if alike else label] = text
    items = Items()
    for label, template in templates.items():
        for goal in sorted(goals):
            text = template.replace("{goal}", goal).replace("{user}", "Emma Johnson").replace("{model}", "AI")
            items.add(label, {"name": "read"}, {}, [{"type": "text", "text": text}])
    return items, templates


def tell(corpus, of, found, read, flagged, **more):
    line = {"corpus": corpus, "of": of, "held": found, "read": read, "flagged": flagged}
    print(json.dumps(line | more), flush=True)


def main(gateway, bfcl, agentdojo):
    items, of = harmless()
    for mode in ("off", "refuse"):
        found, flagged = refused(gateway, mode, items)
        cases, all_cases = {item["of"] for item in found}, {item["of"] for item in items}
        tell("harmless items", f"{mode}, of {of} in the bench", len(cases), len(all_cases), flagged, cases=sorted(cases))
    defined, called = functions(Path(bfcl))
    for corpus, items in (("BFCL, function documents", defined), ("BFCL, calls", called)):
        found, flagged = refused(gateway, "refuse", items)
        tell(corpus, "refuse", len(found), len(items), flagged)
    items, templates = injections(Path(agentdojo))
    for label in templates:
        some = [item for item in items if item["of"] == label]
        found, flagged = refused(gateway, "refuse", some)
        tell("AgentDojo", f"refuse, {label}", len(found), len(some), flagged)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1] == "--serve" else main(*sys.argv[1:])

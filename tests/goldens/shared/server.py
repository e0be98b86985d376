"""Two small MCP servers for the goldens: `server.py database` and `server.py files`."""

import json
import sqlite3
import sys

TEXT = {"type": "string"}
FILES = {"report.txt": "Q3: 1,250 orders, 38 returns.", "notes.txt": "Returns doubled in July."}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def open_database():
    database = sqlite3.connect(":memory:")
    database.executescript(
        "create table customers (id integer primary key, name text, city text);"
        "create table orders (id integer primary key, customer integer, total real);"
        "insert into customers values (1, 'Ada', 'Graz'), (2, 'Bo', 'Linz'), (3, 'Cy', 'Graz');"
        "insert into orders values (1, 1, 20.5), (2, 1, 9.25), (3, 3, 100.0);"
    )
    return database


def database_tools():
    database = open_database()

    def query(sql):
        cursor = database.execute(sql)
        names = [column[0] for column in cursor.description]
        return json.dumps([dict(zip(names, row)) for row in cursor])

    return {
        "list_tables": ("Lists the tables.", schema(), lambda: query(
            "select name from sqlite_master where type = 'table' order by name")),
        "describe_table": ("Shows the columns of a table.", schema(table=TEXT), lambda table: query(
            f"select name, type from pragma_table_info('{table}')")),
        "query": ("Runs a SELECT statement.", schema(sql=TEXT), query),
    }


def read_file(path):
    if path not in FILES:
        raise ValueError(f"no such file: {path}")
    return FILES[path]


def file_tools():
    return {
        "list_files": ("Lists the files.", schema(), lambda: json.dumps(sorted(FILES))),
        "read_file": ("Reads a file.", schema(path=TEXT), read_file),
    }


def call(tool, arguments):
    try:
        text, failed = tool[2](**arguments), False
    except (TypeError, ValueError, sqlite3.Error) as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(method, params, tools):
    if method == "initialize":
        info = {"name": "golden-server", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [
            {"name": name, "description": text, "inputSchema": form}
            for name, (text, form, _) in tools.items()
        ]}
    if method == "tools/call":
        return call(tools[params["name"]], params.get("arguments", {}))
    return {} if method == "ping" else None


def main():
    tools = database_tools() if sys.argv[1] == "database" else file_tools()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params", {}), tools)
        response = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            response["error"] = {"code": -32601, "message": "no such method"}
        else:
            response["result"] = result
        print(json.dumps(response), flush=True)


main()

"""Checks the connection service of a gateway, and prints what it saw of each check that fails.

Argument: the address of an `innkeeper serve` with one fixture server named `a` that has the switch
`--list-changed`. The client knows the specification of the service only; where the specification
leaves a choice, it accepts each choice. The exit code is 1 if a check fails.
"""

import http.client
import json
import re
import sys
import threading
import time
import uuid

PREFIX = "/api/v1/mcp"
ID_HEADER = "X-MCP-Connection-ID"
COOKIE = "mcp_connection_id"
TIMEOUT_SECONDS = 20

PARSE, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
WRONG_VERSION, INCOMPATIBLE, EXPIRED, NOT_FOUND, EXISTS, WRONG_STATE, DISABLED = range(-32000, -32007, -1)
VALIDATION, NO_RESOURCE, NO_TOOL, TOOL_FAILED = -32200, -32300, -32400, -32401
GONE = {EXPIRED, NOT_FOUND}

CHECKS = []
# The codes of all expected errors.
CODES_SEEN = set()


def check(function):
    """Adds a function to the checks; its name is the name of the check."""
    CHECKS.append(function)
    return function


def expect(condition, seen):
    """Ends a check unless the condition is true."""
    if not condition:
        raise AssertionError(seen)


class Response:
    """A whole response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    def __str__(self):
        return f"{self.status} {self.headers.items()} {self.text}"

    @property
    def body(self):
        try:
            return json.loads(self.text)
        except ValueError:
            raise AssertionError(f"no JSON: {self}") from None

    @property
    def error(self):
        """The error: the body of a REST response, or the member of a JSON-RPC response."""
        body = self.body
        expect(isinstance(body, dict), self)
        error = body.get("error", body)
        expect(isinstance(error, dict) and type(error.get("code")) is int, self)
        expect(isinstance(error.get("message"), str) and error["message"], self)
        return error

    @property
    def result(self):
        body = self.body
        expect(self.status == 200 and isinstance(body, dict), self)
        expect(body.get("jsonrpc") == "2.0" and "result" in body and "error" not in body, self)
        return body["result"]


def open_request(method, path, headers, body=None):
    connection = http.client.HTTPConnection(sys.argv[1], timeout=TIMEOUT_SECONDS)
    connection.request(method, path, body, headers)
    return connection, connection.getresponse()


def send(path, body=None, headers=None, method="POST"):
    """Sends a request of the service; a body that is not text is sent as JSON."""
    if body is not None and not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    all_headers = {"Content-Type": "application/json"} if body is not None else {}
    connection, response = open_request(method, PREFIX + path, all_headers | (headers or {}), body)
    try:
        return Response(response)
    finally:
        connection.close()


def expect_error(response, statuses, codes, *words):
    """Expects an error with one of the statuses and codes whose text has each word."""
    error = response.error
    expect(response.status in statuses and error["code"] in codes, f"{response}, not {statuses} {codes}")
    CODES_SEEN.add(error["code"])
    text = json.dumps([error["message"], error.get("data")])
    expect(all(word in text for word in words), f"{response} without {words}")
    return error


def expect_empty(response):
    expect(response.status == 204 and response.text == "", response)


def features():
    """The features of the server, as the response to `initialize` declares them."""
    if not hasattr(features, "known"):
        names = ["core.jsonrpc", "core.transport.http", "core.transport.sse"]
        versions = ["2.0", "1.0", "1.0"]
        capabilities = {name: {"version": version} for name, version in zip(names, versions)}
        features.known = send("/initialize", initialize_params(capabilities)).body["capabilities"]
    return features.known


def version_of(name):
    feature = features()[name]
    return feature.get("version") or feature["properties"]["version"]


def required():
    return [name for name, feature in features().items() if feature.get("level") == "required"]


def all_capabilities(**changes):
    capabilities = {name: {"version": version_of(name)} for name in features()}
    return capabilities | changes


def initialize_params(capabilities, version="1.0"):
    client = {"name": "checks", "version": "1.0.0"}
    return {"protocol_version": version, "client": client, "capabilities": capabilities}


def params_with(**changes):
    return initialize_params(all_capabilities() | changes)


def request(method, params=None, id=1):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else message | {"params": params}


def notification(method, params=None):
    message = request(method, params)
    del message["id"]
    return message


class Connection:
    """A connection of the service."""

    def __init__(self, params=None, state="active"):
        self.opened = send("/initialize", params or params_with())
        expect(self.opened.status == 200, self.opened)
        self.id = self.opened.headers[ID_HEADER]
        expect(self.id, self.opened)
        steps = ["initializing", "active", "terminating", "terminated"]
        for move in ["initialized", "shutdown", "exit"][: steps.index(state)]:
            response = self.rest(move)
            expect(response.status in (200, 204), f"{move}: {response}")

    @property
    def headers(self):
        return {ID_HEADER: self.id}

    def rest(self, move):
        body = params_with() if move == "initialize" else None
        return send(f"/{move}", body, self.headers)

    def post(self, message):
        return send("/jsonrpc", message, self.headers)

    def call(self, method, params=None, id=1):
        response = self.post(request(method, params, id))
        expect(isinstance(response.body, dict) and response.body.get("id") == id, response)
        return response

    def tools(self):
        return [tool["name"] for tool in self.call("tools/list").result["tools"]]

    def call_tool(self, name, arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments})

    def grow(self):
        before = len(self.tools())
        result = self.call_tool("a.grow", {"what": "tools"}).result
        expect(not result.get("isError"), result)
        return before


def state_of(connection):
    """The state of a connection, from moves that are legal in one state only. It ends the connection."""
    response = connection.post(request("tools/list"))
    if response.status == 401:
        return "terminated"
    if response.status == 200 and "result" in response.body:
        return "active"
    expect_error(response, {400}, {WRONG_STATE})
    # An exit is legal after a shutdown only.
    return "terminating" if connection.rest("exit").status == 204 else "initializing"


# The table of states and moves: for each state, the state after each legal move.
MOVES = ["initialize", "initialized", "shutdown", "exit"]
TABLE = {
    "initializing": {"initialized": "active", "shutdown": "terminating"},
    "active": {"shutdown": "terminating"},
    "terminating": {"exit": "terminated"},
    "terminated": {},
}


def expect_refused(move, state, response):
    """Expects the refusal of a move over REST or as a JSON-RPC request."""
    if state in ("uninitialized", "terminated"):
        expect_error(response, {401}, GONE | {WRONG_STATE})
    elif move == "initialize":
        # The connection exists, and the move is illegal: the texts have an error for both.
        expect_error(response, {400, 409}, {EXISTS, WRONG_STATE})
    else:
        expect_error(response, {400}, {WRONG_STATE})


def check_cell(move, state, do):
    connection = Connection(state=state)
    if state == "terminated" and move == "initialize":
        # The identifier means nothing any more: a new connection or a refusal.
        response = do(connection)
        if response.status == 200:
            expect(response.headers[ID_HEADER] not in (None, connection.id), response)
        else:
            expect_refused(move, state, response)
        return
    response = do(connection)
    after = TABLE[state].get(move, state)
    if after == state:
        expect_refused(move, state, response)
    else:
        expect(response.status in (200, 204), response)
        expect(move == "shutdown" or response.status == 200 or response.text == "", response)
    seen = state_of(connection)
    expect(seen == after, f"the state is {seen} and not {after} after {response}")


def over_all_cells(do):
    failures = []
    for state in TABLE:
        for move in MOVES:
            try:
                check_cell(move, state, lambda connection: do(connection, move))
            except AssertionError as error:
                failures.append(f"{move} in {state}: {error}")
    expect(not failures, "; ".join(failures))


def message_of(move, id=7):
    return request(move, params_with() if move == "initialize" else None, id)


@check
def each_move_over_rest_follows_the_table():
    over_all_cells(lambda connection, move: connection.rest(move))


@check
def each_move_as_a_json_rpc_request_follows_the_table():
    over_all_cells(lambda connection, move: connection.post(message_of(move)))


@check
def a_move_without_a_connection_is_refused_and_initialize_opens_one():
    for move in MOVES[1:]:
        for headers in ({}, {ID_HEADER: str(uuid.uuid4())}, {ID_HEADER: "no identifier"}):
            expect_refused(move, "uninitialized", send(f"/{move}", None, headers))
            expect_refused(move, "uninitialized", send("/jsonrpc", message_of(move), headers))
    expect("missing" in send("/shutdown").text.lower(), send("/shutdown"))
    response = send("/jsonrpc", message_of("initialize", "first"))
    expect(response.body.get("id") == "first" and response.headers[ID_HEADER], response)
    expect(response.result["protocol_version"] == "1.0", response)
    for headers in ({}, {ID_HEADER: str(uuid.uuid4())}):
        expect_error(send("/jsonrpc", request("tools/list"), headers), {401}, GONE | {WRONG_STATE})
        events = send("/events", None, headers, "GET")
        expect(events.status == 401, events)


@check
def the_moves_answer_with_the_statuses_of_the_specification():
    connection = Connection(state="initializing")
    expect_empty(connection.rest("initialized"))
    shutdown = connection.rest("shutdown")
    expect(shutdown.status == 200, shutdown)
    expect_empty(connection.rest("exit"))
    expect_error(connection.rest("shutdown"), {401}, GONE)


@check
def the_moves_as_notifications_answer_204_and_move():
    connection = Connection(state="initializing")
    expect_empty(connection.post(notification("initialized")))
    expect(connection.tools(), "no tools")
    expect("result" in connection.call("shutdown").body, "no result")
    expect_empty(connection.post(notification("exit")))
    expect(connection.rest("shutdown").status == 401, "the connection is not ended")
    # An illegal move has no effect, whether the refusal is visible or not.
    connection = Connection()
    response = connection.post(notification("exit"))
    expect(response.status in (204, 400), response)
    expect(state_of(connection) == "active", response)


@check
def initialize_answers_with_a_version_a_server_and_features():
    response = send("/initialize", params_with())
    expect(response.status == 200, response)
    expect(response.headers.get_content_type() == "application/json", response)
    body = response.body
    expect(body["protocol_version"] == "1.0", response)
    expect(body["server"] == {"name": "beam-mcp-server", "version": "1.0.0"}, response)
    registered = {"core.jsonrpc", "core.transport.http", "core.transport.sse"}
    expect(registered <= body["capabilities"].keys(), response)
    expect({"core.jsonrpc", "core.transport.http"} <= set(required()), response)
    for feature in body["capabilities"].values():
        expect(feature["level"] in ("required", "preferred", "optional", "experimental"), feature)
        expect(isinstance(feature["properties"], dict), feature)
    expect(version_of("core.jsonrpc").startswith("2.0"), response)
    id = response.headers[ID_HEADER]
    expect(str(uuid.UUID(id)) == id and uuid.UUID(id).version == 4, response)
    expect(send("/initialize", params_with()).headers[ID_HEADER] != id, response)


@check
def the_cookie_has_the_identifier_and_its_attributes():
    for response in (send("/initialize", params_with()), send("/jsonrpc", message_of("initialize"))):
        cookie, *attributes = [part.strip() for part in response.headers["Set-Cookie"].split(";")]
        expect(cookie == f"{COOKIE}={response.headers[ID_HEADER]}", response)
        attributes = {attribute.lower() for attribute in attributes}
        # Over plain HTTP, a cookie with `Secure` never returns: both are permitted.
        expect({"httponly", "samesite=strict", "max-age=1800"} <= attributes, response)


@check
def the_identifier_of_the_header_comes_before_that_of_the_cookie():
    live, dead = Connection(), Connection(state="terminated")
    cookie = lambda connection: {"Cookie": f"other=1; {COOKIE}={connection.id}; last=2"}
    listed = lambda headers: send("/jsonrpc", request("tools/list"), headers)
    expect(listed(cookie(live)).result["tools"], "no tools")
    expect(listed(live.headers | cookie(dead)).result["tools"], "no tools")
    expect_error(listed(dead.headers | cookie(live)), {401}, GONE)
    expect_error(listed(cookie(dead)), {401}, GONE)
    expect(send("/shutdown", None, cookie(live)).status == 200, "no shutdown with the cookie")


@check
def another_protocol_version_is_refused_with_both_versions():
    params = initialize_params(all_capabilities(), "9.9")
    response = send("/initialize", params)
    expect_error(response, {400}, {WRONG_VERSION}, "9.9", "1.0")
    expect(ID_HEADER not in response.headers and "Set-Cookie" not in response.headers, response)
    response = send("/jsonrpc", request("initialize", params))
    expect_error(response, {200, 400}, {WRONG_VERSION}, "9.9", "1.0")
    expect(ID_HEADER not in response.headers, response)


def expect_incompatible(capabilities, *words):
    """Expects a refusal whose reasons are a list with each word."""
    params = initialize_params(capabilities)
    rest = expect_error(send("/initialize", params), {400}, {INCOMPATIBLE}, *words)
    rpc = expect_error(send("/jsonrpc", request("initialize", params)), {200, 400}, {INCOMPATIBLE}, *words)
    for error in (rest, rpc):
        reasons = error["data"]
        expect(isinstance(reasons, list) and reasons, error)
        for word in words:
            expect(any(word in json.dumps(reason) for reason in reasons), error)
    return rest["data"]


@check
def each_required_feature_must_be_supported():
    for name in required():
        missing = all_capabilities()
        del missing[name]
        expect_incompatible(missing, name)
        for unsupported in (False, {"version": version_of(name), "supported": False}):
            expect_incompatible(all_capabilities() | {name: unsupported}, name)
    for name in features().keys() - set(required()):
        expect_initialized({name: False})
        missing = all_capabilities()
        del missing[name]
        expect(send("/initialize", initialize_params(missing)).status == 200, name)


def expect_initialized(changes):
    response = send("/initialize", params_with(**changes))
    expect(response.status == 200 and response.headers[ID_HEADER], f"{changes}: {response}")


@check
def versions_of_features_are_compared_as_declared():
    for name, feature in features().items():
        major, minor = (int(part) for part in version_of(name).split(".")[:2])
        mode = feature.get("version_compatibility")
        expect(mode in ("exact", "compatible", "any", "downgrade", "upgrade"), feature)
        expect_initialized({name: {"version": f"{major}.{minor}"}})
        expect_initialized({name: {"version": f"{major}.{minor}.0"}})
        if mode == "exact":
            expect_incompatible(all_capabilities() | {name: {"version": f"{major}.{minor + 1}"}}, name)
        if mode == "compatible" and major > 0:
            expect_initialized({name: {"version": f"{major}.{minor + 7}.3"}})
        if mode in ("exact", "compatible"):
            expect_incompatible(all_capabilities() | {name: {"version": f"{major + 1}.0.0"}}, name)
    expect_initialized({"core.jsonrpc": {"version": "2"}})
    expect_initialized({"core.jsonrpc": True})
    expect_incompatible(all_capabilities() | {"core.jsonrpc": {"version": "2.0.0-beta"}}, "core.jsonrpc")
    response = send("/initialize", params_with(**{"core.jsonrpc": {"version": "two"}}))
    expect_error(response, {400, 422}, {INCOMPATIBLE, INVALID_PARAMS, VALIDATION}, "core.jsonrpc")


@check
def a_refusal_has_all_reasons():
    reasons = expect_incompatible({}, *required())
    expect(len(reasons) >= len(required()), reasons)
    versions = {name: {"version": "77.0.0"} for name in features()}
    reasons = expect_incompatible(versions | {"core.jsonrpc": False}, *required())
    expect(len(reasons) >= len(required()), reasons)


@check
def unknown_features_are_ignored():
    unknown = {"x.of_client": {"version": "99"}, "x.flag": True, "x.off": False}
    expect(Connection(params_with(**unknown)).tools(), "no tools")


@check
def wrong_types_are_refused_with_their_path():
    wrong = [
        ("protocol_version", params_with() | {"protocol_version": 1}),
        ("client", params_with() | {"client": "checks"}),
        ("name", params_with() | {"client": {"name": 5, "version": "1"}}),
        ("version", params_with() | {"client": {"name": "checks", "version": ["1"]}}),
        ("capabilities", params_with() | {"capabilities": [1]}),
        ("core.jsonrpc", params_with(**{"core.jsonrpc": 7})),
    ]
    for path, params in wrong:
        expect_error(send("/initialize", params), {400, 422}, {INVALID_PARAMS}, path)
        response = send("/jsonrpc", request("initialize", params))
        expect_error(response, {200, 400, 422}, {INVALID_PARAMS}, path)
    for member in ("protocol_version", "client", "capabilities"):
        params = params_with()
        del params[member]
        response = send("/initialize", params)
        # No capabilities are the capabilities of a client without features, or a missing member.
        if member != "capabilities" or response.error["code"] != INCOMPATIBLE:
            expect_error(response, {400, 422}, {INVALID_PARAMS, VALIDATION}, member)


@check
def a_rest_body_that_is_no_object_is_refused():
    codes = {PARSE, INVALID_REQUEST, INVALID_PARAMS, VALIDATION}
    for body in ("{", "", "[]", "null", "5", b"\xff\xfe"):
        expect_error(send("/initialize", body), {400, 422}, codes)


@check
def identifiers_of_requests_return_unchanged():
    connection = Connection()
    for id in ("text", "", "1", "ä☃\n", 0, 1, -5, 2**53 - 1):
        body = connection.post(request("tools/list", None, id)).body
        expect(body.get("id") == id and type(body["id"]) is type(id), f"{id!r}: {body}")
        expect(body["jsonrpc"] == "2.0" and "result" in body, body)


@check
def notifications_have_no_response_and_run():
    connection = Connection()
    for message in (notification("x/unknown"), notification("notifications/cancelled", {"requestId": 1})):
        expect_empty(connection.post(message))
    expect_empty(connection.post(notification("shutdown")))
    expect(state_of(connection) == "terminating", "the handler did not run")


@check
def standard_errors_have_their_codes():
    connection = Connection()
    for text in ("{", '{"jsonrpc":"2.0"', "hello", "[1,", b"\xff"):
        response = connection.post(text)
        expect_error(response, {200, 400}, {PARSE})
        expect(response.body["id"] is None and response.body["jsonrpc"] == "2.0", response)
    invalid = [
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": {}, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "text"},
        5,
        "text",
    ]
    for message in invalid:
        codes = {INVALID_REQUEST, VALIDATION} | ({INVALID_PARAMS} if "params" in str(message) else set())
        response = connection.post(json.dumps(message))
        expect_error(response, {200, 400}, codes)
        expect("id" in response.body and response.body["id"] in (None, 1), response)
    response = connection.call("x/unknown")
    expect_error(response, {200}, {NO_METHOD}, "x/unknown")
    for params in (None, {}, {"name": 5}, {"name": "a.echo", "arguments": 3}, [1]):
        expect_error(connection.call("tools/call", params), {200, 400}, {INVALID_PARAMS})
    expect_error(connection.call("resources/read", {"uri": 5}), {200, 400}, {INVALID_PARAMS}, "uri")


@check
def each_item_of_a_batch_has_its_own_answer():
    connection = Connection()
    echo = {"name": "a.echo", "arguments": {"message": "batched"}}
    batch = [
        request("tools/call", echo, "good"),
        request("x/unknown", None, 2),
        notification("x/notice"),
        {"jsonrpc": "2.0", "id": 3},
        1,
        request("tools/call", {"name": "a.none", "arguments": {}}, 4),
    ]
    response = connection.post(batch)
    expect(response.status == 200 and isinstance(response.body, list), response)
    answers = {item["id"]: item for item in response.body if item["id"] is not None}
    unnamed = [item for item in response.body if item["id"] is None]
    expect(len(response.body) == 5 and set(answers) | {3} == {"good", 2, 3, 4}, response)
    expect(answers["good"]["result"]["content"][0]["text"] == "batched", response)
    expect(answers[2]["error"]["code"] == NO_METHOD, response)
    expect(answers[4]["error"]["code"] == NO_TOOL, response)
    invalid = unnamed + [answers[id] for id in answers if id == 3]
    expect(len(invalid) == 2, response)
    expect(all(item["error"]["code"] in (INVALID_REQUEST, VALIDATION) for item in invalid), response)
    empty = connection.post([])
    expect(isinstance(empty.body, dict), empty)
    expect_error(empty, {200, 400}, {INVALID_REQUEST})
    expect_empty(connection.post([notification("x/one"), notification("x/two")]))


@check
def a_batch_needs_an_active_connection():
    batch = [request("tools/list", None, 1), request("tools/list", None, 2)]
    response = send("/jsonrpc", batch)
    expect(response.status == 401, response)
    response = Connection(state="initializing").post(batch)
    items = response.body if isinstance(response.body, list) else [response.body]
    expect(response.status in (200, 400), response)
    expect(all(item["error"]["code"] == WRONG_STATE for item in items), response)


@check
def a_feature_that_the_client_lacks_is_not_enabled():
    gated = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
    for lacking in (None, False, {"supported": False}):
        capabilities = {name: {"version": version_of(name)} for name in features() if name not in gated}
        if lacking is not None:
            capabilities |= dict.fromkeys(gated, lacking)
        connection = Connection(initialize_params(capabilities))
        for feature, method in gated.items():
            if feature in features():
                expect_error(connection.call(method), {200, 501}, {DISABLED}, feature)
    for feature, method in gated.items():
        if feature in features():
            connection = Connection(params_with(**{feature: True}))
            expect("result" in connection.call(method).body, feature)


@check
def tools_are_listed_and_called():
    connection = Connection()
    listed = connection.call("tools/list").result["tools"]
    tools = {tool["name"]: tool for tool in listed}
    expect({"a.echo", "a.add", "a.fail", "a.grow"} <= tools.keys(), sorted(tools))
    expect(tools["a.echo"]["inputSchema"]["required"] == ["message"], tools["a.echo"])
    result = connection.call_tool("a.echo", {"message": "hällo\n"}).result
    expect(result["content"][0] == {"type": "text", "text": "hällo\n"}, result)
    result = connection.call_tool("a.add", {"a": 2, "b": 40}).result
    expect(result["structuredContent"] == {"sum": 42}, result)


@check
def an_unknown_tool_and_a_failing_tool_are_errors():
    connection = Connection()
    for name in ("a.none", "echo", "b.echo", ""):
        expect_error(connection.call_tool(name, {}), {200, 404}, {NO_TOOL})
    response = connection.call_tool("a.fail", {})
    if "error" in response.body:
        expect_error(response, {200}, {TOOL_FAILED})
    else:
        # MCP's own form of a failure: the result of the server.
        expect(response.result["isError"] is True, response)


@check
def prompts_and_resources_are_listed_and_read():
    connection = Connection()
    prompts = [prompt["name"] for prompt in connection.call("prompts/list").result["prompts"]]
    expect({"a.greet", "a.plain"} <= set(prompts), prompts)
    prompt = connection.call("prompts/get", {"name": "a.greet", "arguments": {"name": "Ada"}}).result
    expect("Ada" in json.dumps(prompt["messages"]), prompt)
    expect_error(connection.call("prompts/get", {"name": "a.none"}), {200, 404}, {INVALID_PARAMS, -32300})
    uris = [resource["uri"] for resource in connection.call("resources/list").result["resources"]]
    expect("fx://a/static" in uris, uris)
    read = connection.call("resources/read", {"uri": "fx://a/item/7"}).result
    expect(read["contents"][0]["text"] == "a: item 7", read)
    for uri in ("fx://b/none", "nowhere://x"):
        expect_error(connection.call("resources/read", {"uri": uri}), {200, 404}, {NO_RESOURCE})


class Events:
    """An event stream of a connection."""

    def __init__(self, connection, last_event_id=None):
        resume = {"Last-Event-ID": last_event_id} if last_event_id else {}
        headers = connection.headers | {"Accept": "text/event-stream"} | resume
        self.connection, self.stream = open_request("GET", f"{PREFIX}/events", headers)
        if self.stream.status != 200:
            raise AssertionError(Response(self.stream))
        expect(self.stream.headers.get_content_type() == "text/event-stream", self.stream.headers)
        self.first = self.next()

    def next(self):
        """The next event: its name, its identifier and its data. Comments and retry times are skipped."""
        event = {}
        # Comments keep the stream alive, so the timeout of the socket is not a bound.
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            line = self.stream.readline().decode()
            expect(time.monotonic() < deadline, f"no event, but {event} and {line!r}")
            expect(line, "the event stream ended")
            name, _, value = line.rstrip("\r\n").partition(":")
            if name in ("event", "id", "data"):
                event[name] = event.get(name, "") + value.removeprefix(" ")
            elif line.strip() == "" and "data" in event:
                return event | {"data": json.loads(event["data"])}

    def next_change(self):
        """The next notification of changed tools."""
        while True:
            event = self.next()
            expect(event.get("event") == "notification", event)
            data = event["data"]
            expect(data["jsonrpc"] == "2.0" and "id" not in data, event)
            if data["method"] == "notifications/tools/list_changed":
                return event

    def close(self):
        self.stream.close()
        self.connection.close()


@check
def the_event_stream_begins_with_connected_and_has_changes_of_tools():
    connection, other = Connection(), Connection()
    events, others = Events(connection), Events(other)
    for stream, owner in ((events, connection), (others, other)):
        expect(stream.first.get("event") == "connected", stream.first)
        expect(stream.first["data"]["connection_id"] == owner.id, stream.first)
        expect(isinstance(stream.first["data"]["message"], str), stream.first)
    before = connection.grow()
    expect(events.next_change() and others.next_change(), "no change")
    while len(connection.tools()) != before + 1:
        events.next_change()
    events.close()
    others.close()


@check
def an_event_stream_resumes_after_the_last_event():
    connection = Connection()
    events = Events(connection)
    connection.grow()
    first = events.next_change()
    connection.grow()
    second = events.next_change()
    expect(None not in (first.get("id"), second.get("id")) and first["id"] != second["id"], (first, second))
    events.close()
    for _ in range(2):
        events = Events(connection, first["id"])
        expect(events.first.get("event") == "connected", events.first)
        again = events.next_change()
        expect(again == second, f"{second}, then {again}")
        events.close()
    # After the last event, only a new change follows.
    events = Events(connection, second["id"])
    connection.grow()
    third = events.next_change()
    expect(third.get("id") not in (None, first["id"], second["id"]), (first, second, third))
    events.close()


@check
def a_connection_that_is_not_active_has_no_event_stream():
    for state, statuses in (("terminating", {400}), ("terminated", {401})):
        response = send("/events", None, Connection(state=state).headers, "GET")
        expect(response.status in statuses, f"{state}: {response}")


@check
def an_event_stream_ends_with_its_connection():
    connection = Connection()
    events = Events(connection)
    ended = threading.Event()

    def read_to_the_end():
        while events.stream.readline():
            pass
        ended.set()

    threading.Thread(target=read_to_the_end, daemon=True).start()
    expect(connection.rest("shutdown").status == 200, "no shutdown")
    expect_empty(connection.rest("exit"))
    expect(ended.wait(TIMEOUT_SECONDS), "the stream is open after `exit`")


@check
def a_foreign_origin_and_a_foreign_host_are_refused():
    connection = Connection()
    for foreign in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        headers = connection.headers | foreign
        for path in ("/initialize", "/initialized", "/shutdown", "/exit", "/jsonrpc"):
            body = params_with() if path == "/initialize" else request("tools/list")
            response = send(path, body, headers)
            expect(response.status == 403 and ID_HEADER not in response.headers, f"{path}: {response}")
        response = send("/events", None, headers, "GET")
        expect(response.status == 403, response)
    response = send("/initialize", params_with(), {"Host": "evil.example"})
    expect(response.status in (400, 403, 421) and ID_HEADER not in response.headers, response)
    expect(state_of(connection) == "active", "a refused request moved the connection")


@check
def other_methods_of_the_paths_are_refused():
    for path in ("/initialize", "/initialized", "/shutdown", "/exit", "/jsonrpc"):
        response = send(path, None, Connection().headers, "GET")
        expect(response.status in (404, 405), f"{path}: {response}")
    response = send("/none", {}, {})
    expect(response.status == 404, response)


@check
def two_requests_at_once_move_a_connection_once():
    connection = Connection(state="initializing")
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.append(connection.rest("initialized").status))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    expect(sorted(statuses) == [204] + [400] * 7, statuses)


@check
def each_error_of_the_service_was_provoked():
    # Which of the two errors a missing connection is, each check leaves open; both exist.
    missing = set(range(DISABLED, WRONG_VERSION + 1)) - CODES_SEEN
    expect(not missing, f"never seen: {sorted(missing)}")


def main():
    failed = 0
    for function in CHECKS:
        try:
            function()
        except (AssertionError, KeyError, TypeError, ValueError, OSError, http.client.HTTPException) as error:
            failed += 1
            name = function.__name__.replace("_", " ")
            seen = re.sub(r"\s+", " ", str(error))
            print(f"failed: {name}: {type(error).__name__}: {seen}", flush=True)
    print(json.dumps({"checks": len(CHECKS), "failed": failed}))
    sys.exit(1 if failed else 0)


main()

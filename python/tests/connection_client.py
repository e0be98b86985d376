"""A client of the connection service, with nothing but the standard library."""

import json
import urllib.error
import urllib.request
from typing import Any

import innkeeper

DEADLINE = 30
"""Seconds after which a request fails."""

ACCEPT = "application/json, text/event-stream"


def post(url: str, body: Any, **headers: str) -> tuple[int, dict[str, str], str]:
    """Sends a request; returns the status, the headers and the body of the response."""
    sent = {"content-type": "application/json", "accept": ACCEPT}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = b"" if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, sent, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as response:
            received = {name.lower(): value for name, value in response.headers.items()}
            return response.status, received, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, {}, error.read().decode()


CONNECT = {
    "protocol_version": "1.0",
    "client": {"name": "test-client", "version": "1.0"},
    "capabilities": {"core.jsonrpc": {"version": "2.0"}, "core.transport.http": True},
}


def connect(server: innkeeper.GatewayServer, *features: str, **headers: str) -> dict[str, str]:
    """Opens a connection with some features; returns the headers of its requests."""
    url = server.connections_url
    body = {**CONNECT, "capabilities": {**CONNECT["capabilities"], **dict.fromkeys(features, True)}}
    status, received, text = post(f"{url}/initialize", body, **headers)
    assert status == 200, text
    own = {**headers, "x_mcp_connection_id": received["x-mcp-connection-id"]}
    assert post(f"{url}/initialized", None, **own)[0] == 204
    return {name.replace("_", "-"): value for name, value in own.items()}

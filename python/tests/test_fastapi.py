"""FastAPI endpoints fail closed: without a usable connection, no endpoint runs."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import innkeeper
import pytest
from connection_client import CONNECT, connect, post
from innkeeper import CapabilityRegistry, GatewayServer

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

import innkeeper.fastapi as mcp
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

Servers = Callable[..., dict[str, Any]]


@pytest.fixture
def server(servers: Servers) -> Iterator[GatewayServer]:
    registry = CapabilityRegistry()
    registry.register_feature("tool.jobs")
    with innkeeper.serve(servers(), registry=registry) as server:
        yield server


def application(server: GatewayServer | None = None) -> tuple[FastAPI, list[str]]:
    """Returns an application with three routes, and the list of those that ran."""
    app = FastAPI()
    mcp.setup(app, server)
    ran: list[str] = []

    @app.get("/connection")
    async def with_connection(
        connection: Any = Depends(mcp.get_mcp_connection_dependency()),
    ) -> dict[str, Any]:
        ran.append("connection")
        return {"user": connection.user_id, "jobs": mcp.is_feature_enabled("tool.jobs", connection)}

    @app.get("/feature")
    async def with_feature(connection: Any = mcp.get_feature_dependency("tool.jobs")) -> str:
        ran.append("feature")
        return str(connection.client_info.name)

    router = mcp.create_mcp_feature_router(app, "tool.jobs", prefix="/router")

    @router.add_api_route("/", methods=["GET"])
    def without_arguments() -> str:
        ran.append("router")
        return "jobs"

    app.include_router(router.get_router())
    return app, ran


def client_of(app: FastAPI, host: str = "localhost") -> TestClient:
    return TestClient(app, base_url=f"http://{host}")


ROUTES = ("/connection", "/feature", "/router/")


def test_a_connection_with_the_feature_reaches_every_route(server: GatewayServer) -> None:
    app, ran = application()
    headers = connect(server, "tool.jobs")
    client = client_of(app)
    found = client.get("/connection", headers=headers)
    assert found.json() == {"user": "local", "jobs": True}
    assert [client.get(route, headers=headers).status_code for route in ROUTES] == [200] * 3
    assert ran == ["connection", "connection", "feature", "router"]


def test_the_cookie_of_a_connection_works_like_the_header(server: GatewayServer) -> None:
    app, _ = application()
    cookie = f"mcp_connection_id={connect(server, 'tool.jobs')['x-mcp-connection-id']}"
    assert client_of(app).get("/feature", headers={"cookie": cookie}).json() == "test-client"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x-mcp-connection-id": "nonsense"}, 401),
        ({"x-mcp-connection-id": "0b5a43e3-6a6c-4d8a-9f2c-0d8f2a6f3d10"}, 401),
    ],
)
def test_without_a_connection_no_route_runs(
    server: GatewayServer, headers: dict[str, str], status: int
) -> None:
    """Proves: B52"""
    app, ran = application()
    client = client_of(app)
    responses = [client.get(route, headers=headers) for route in ROUTES]
    assert [response.status_code for response in responses] == [status] * 3
    assert all(response.json()["code"] == -32003 for response in responses)
    assert ran == []


def test_without_the_feature_only_the_plain_route_runs(server: GatewayServer) -> None:
    app, ran = application()
    headers = connect(server)
    client = client_of(app)
    assert [client.get(route, headers=headers).status_code for route in ROUTES] == [200, 501, 501]
    assert ran == ["connection"]


def test_a_feature_that_the_server_does_not_have_is_not_enabled(server: GatewayServer) -> None:
    app = FastAPI()
    router = mcp.create_mcp_feature_router(app, "tool.unknown")
    router.add_api_route("/x", lambda: "ran")
    app.include_router(router.get_router())
    headers = connect(server, "tool.unknown")
    assert client_of(app).get("/x", headers=headers).status_code == 501


def test_a_connection_that_is_not_active_is_refused(server: GatewayServer) -> None:
    app, ran = application()
    url = server.connections_url
    _, received, _ = post(f"{url}/initialize", CONNECT)
    headers = {"x-mcp-connection-id": received["x-mcp-connection-id"]}
    refused = client_of(app).get("/connection", headers=headers)
    assert (refused.status_code, refused.json()["code"], ran) == (400, -32005, [])


def test_the_page_of_another_site_is_refused(server: GatewayServer) -> None:
    app, ran = application()
    headers = connect(server, "tool.jobs")
    assert client_of(app, "evil.example").get("/feature", headers=headers).status_code == 403
    foreign = {**headers, "origin": "https://evil.example"}
    assert client_of(app).get("/feature", headers=foreign).status_code == 403
    assert ran == []


def test_the_connection_of_another_user_is_unknown(servers: Servers) -> None:
    keys = {name: f"key-of-{name}-" + "x" * 32 for name in ("ann", "bob")}
    digests = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in keys.items()}
    api_keys = [{"principal": name, "sha256": digest} for name, digest in digests.items()]
    config = {**servers(), "serve": {"auth": {"apiKeys": api_keys}}}
    with innkeeper.serve(config) as server:
        app, ran = application(server)
        headers = connect(server, authorization=f"Bearer {keys['ann']}")
        client = client_of(app)
        assert client.get("/connection", headers=headers).json()["user"] == "ann"
        stolen = {**headers, "authorization": f"Bearer {keys['bob']}"}
        assert client.get("/connection", headers=stolen).status_code == 401
        del stolen["authorization"]
        assert client.get("/connection", headers=stolen).status_code == 401
        assert ran == ["connection"]


def test_without_a_gateway_no_route_runs() -> None:
    app, ran = application()
    responses = [client_of(app).get(route) for route in ROUTES]
    assert [response.status_code for response in responses] == [503] * 3
    assert ran == []


def test_a_gateway_that_has_ended_lets_nothing_through(servers: Servers) -> None:
    server = innkeeper.serve(servers())
    app, ran = application(server)
    headers = connect(server)
    server.close()
    assert client_of(app).get("/connection", headers=headers).status_code == 503
    assert ran == []


def test_of_two_gateways_none_is_guessed(server: GatewayServer, servers: Servers) -> None:
    with innkeeper.serve(servers()) as other:
        headers = connect(server, "tool.jobs")
        unnamed, ran = application()
        assert client_of(unnamed).get("/connection", headers=headers).status_code == 503
        assert ran == []
        named, _ = application(server)
        assert client_of(named).get("/connection", headers=headers).status_code == 200
        wrong, _ = application(other)
        assert client_of(wrong).get("/connection", headers=headers).status_code == 401


def test_a_gateway_without_connections_lets_nothing_through(servers: Servers) -> None:
    with innkeeper.serve(servers(), connections=False) as server:
        app, ran = application(server)
        assert client_of(app).get("/connection").status_code == 503
        assert ran == []


def connection(**changes: Any) -> mcp.ConnectionState:
    members: dict[str, Any] = {
        "id": "c",
        "client_info": mcp.ClientInfo("test", "1"),
        "client_capabilities": {"tool.jobs": True},
        "state": mcp.ConnectionLifecycleState.ACTIVE,
        "created_at": datetime.now(timezone.utc),
        "last_activity": datetime.now(timezone.utc),
    }
    return mcp.ConnectionState(**{**members, **changes})


def test_a_feature_needs_a_server_a_declaration_and_an_active_connection(
    server: GatewayServer,
) -> None:
    enabled = [
        connection(),
        connection(client_capabilities={"tool.jobs": {"version": "1.0", "supported": True}}),
    ]
    disabled = [
        None,
        connection(client_capabilities={}),
        connection(client_capabilities={"tool.jobs": False}),
        connection(client_capabilities={"tool.jobs": {"supported": False}}),
        connection(client_capabilities={"tool.jobs": "yes"}),
        connection(client_capabilities={"tool.jobs": object()}),
        connection(client_capabilities=None),
        connection(state=mcp.ConnectionLifecycleState.TERMINATING),
        connection(state="active"),
    ]
    assert [mcp.is_feature_enabled("tool.jobs", one) for one in enabled] == [True] * 2
    assert [mcp.is_feature_enabled("tool.jobs", one) for one in disabled] == [False] * 9
    assert not mcp.is_feature_enabled("tool.other", connection())
    server.close()
    assert not mcp.is_feature_enabled("tool.jobs", connection())


async def test_a_dependency_works_beside_the_loop_of_the_application(servers: Servers) -> None:
    async with innkeeper.serve(servers()) as server:
        app, _ = application(server)
        headers = await asyncio.to_thread(connect, server)
        get = client_of(app).get
        answers = [asyncio.to_thread(get, "/connection", headers=headers) for _ in range(10)]
        statuses = [answer.status_code for answer in await asyncio.gather(*answers)]
        assert statuses == [200] * 10


def test_the_sample_of_the_page_runs(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/connections.md"
    (sample,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "mcp.json").write_text(json.dumps(servers()))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(sample, "connections.md", "exec"), names)
    with names["server"] as server:
        client = client_of(names["app"])
        headers = connect(server, "tool.job_management")
        for route in ("/hello", "/runners", "/jobs"):
            assert client.get(route, headers=headers).status_code == 200
        plain = connect(server)
        statuses = [
            client.get(route, headers=plain).status_code
            for route in ("/hello", "/runners", "/jobs")
        ]
        assert statuses == [200, 501, 501]

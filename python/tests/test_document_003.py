"""Every Python line of document 003, cut out of the document and run as written."""

import ast
import asyncio
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import innkeeper
import pytest
from connection_client import CONNECT, connect, post
from innkeeper import CapabilityRegistry

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

import innkeeper.fastapi as documented
from fastapi import FastAPI
from fastapi.testclient import TestClient

DOCUMENT = "requirements/003-connection-service.txt"

Servers = Callable[..., dict[str, Any]]


def snippets() -> list[str]:
    """Returns the Python blocks of the document, in order."""
    for directory in Path(__file__).resolve().parents:
        for place in (directory / DOCUMENT, directory / "shared" / DOCUMENT):
            if place.exists():
                return re.findall(r"```python\n(.*?)```", place.read_text("utf-8"), re.DOTALL)
    pytest.skip("the document is not here")


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The blocks; the document's own package is this one."""
    for name in ("src", "src.server", "src.server.mcp", "src.server.mcp.models"):
        module = documented if name.startswith("src.server.mcp") else types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
    return snippets()


def run(block: str, **names: Any) -> dict[str, Any]:
    """Runs a block with all names of the package and these; returns what it defines."""
    namespace: dict[str, Any] = {name: getattr(documented, name) for name in documented.__all__}
    namespace.update(names)
    exec(compile(block, "document 003", "exec"), namespace)
    return namespace


async def run_in_function(block: str, **names: Any) -> Any:
    """Runs a block that returns or awaits, which the document shows without its function."""
    function = "async def documented_function():\n" + textwrap.indent(block, "    ")
    return await run(function, **names)["documented_function"]()


@pytest.fixture
def registry(document: list[str]) -> CapabilityRegistry:
    """The registry of the document's first block, and the features that its routes need."""
    registry = CapabilityRegistry()
    run(document[0], registry=registry)
    registry.register_feature("tool.job_management")
    registry.register_feature("tool.runner_management")
    return registry


@pytest.fixture
def server(servers: Servers, registry: CapabilityRegistry) -> Iterator[innkeeper.GatewayServer]:
    with innkeeper.serve(servers(), registry=registry) as server:
        yield server


def client_of(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://localhost")


def test_the_document_has_nine_blocks_and_each_has_a_test(document: list[str]) -> None:
    assert len(document) == 9


def test_a_feature_is_registered_as_written(server: innkeeper.GatewayServer) -> None:
    _, _, body = post(f"{server.connections_url}/initialize", CONNECT)
    assert '"core.jsonrpc"' in body
    assert '"methods":["initialize","shutdown","jsonrpc"]' in body


def test_a_feature_is_checked_as_written(
    document: list[str], server: innkeeper.GatewayServer
) -> None:
    # The block ends with comments, which Python needs a statement after.
    block = document[1] + "    provided.append(True)\n"
    for state, expected in (("ACTIVE", [True]), ("TERMINATING", [])):
        connection = documented.ConnectionState(
            id="c",
            client_info=documented.ClientInfo("test", "1"),
            client_capabilities={"tool.job_management": True},
            state=documented.ConnectionLifecycleState[state],
            created_at=datetime.now(timezone.utc),
            last_activity=datetime.now(timezone.utc),
        )
        provided: list[bool] = []
        run(block, connection=connection, provided=provided)
        assert provided == expected


def test_a_router_needs_its_feature_as_written(
    document: list[str], server: innkeeper.GatewayServer
) -> None:
    """Proves: B52"""
    app = FastAPI()
    run(document[2], app=app)
    client = client_of(app)
    jobs = {"jobs": [{"id": "123", "name": "Example Job"}]}
    has_feature = client.get("/api/v1/jobs", headers=connect(server, "tool.job_management"))
    assert (has_feature.status_code, has_feature.json()) == (200, jobs)
    has_none = client.get("/api/v1/jobs", headers=connect(server))
    assert (has_none.status_code, has_none.json()["code"]) == (501, -32006)
    missing = client.get("/api/v1/jobs")
    assert (missing.status_code, missing.json()["message"]) == (401, "Missing connection ID")


def test_a_feature_dependency_checks_as_written(
    document: list[str], server: innkeeper.GatewayServer
) -> None:
    """Proves: B52"""
    app = FastAPI()
    documented.setup(app, server)
    run(document[3], app=app)
    client = client_of(app)
    runners = {"runners": [{"id": "abc", "name": "Example Runner"}]}
    found = client.get("/api/v1/runners", headers=connect(server, "tool.runner_management"))
    assert (found.status_code, found.json()) == (200, runners)
    refused = client.get("/api/v1/runners", headers=connect(server, "tool.job_management"))
    assert refused.status_code == 501


def test_an_endpoint_has_its_connection_as_written(
    document: list[str], server: innkeeper.GatewayServer
) -> None:
    """Proves: B52"""
    app = FastAPI()
    documented.setup(app)
    app.include_router(run(document[4])["router"])
    client = client_of(app)
    greeted = client.post("/some-endpoint", headers=connect(server))
    assert greeted.json() == {"message": "Hello, test-client!"}
    assert client.post("/some-endpoint").status_code == 401


def test_an_endpoint_is_tested_as_written(document: list[str]) -> None:
    endpoint = run(document[4])["some_endpoint"]

    # The document calls a coroutine function without `await`.
    def some_endpoint(connection: Any) -> Any:
        return asyncio.run(endpoint(connection=connection))

    block = run(document[5], some_endpoint=some_endpoint, datetime=datetime, UTC=timezone.utc)
    block["test_some_endpoint"]()


def test_a_message_is_made_as_written(document: list[str]) -> None:
    message = run(document[6])["message"]
    assert message.metadata.connection_id == "conn-123"
    assert message.payload.to_dict() == {
        "jsonrpc": "2.0",
        "id": "req-456",
        "method": "get_job_status",
        "params": {"job_id": "job-789"},
    }


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (documented.ResourceNotFoundError("r1"), -32300),
        (documented.ValidationError("bad"), -32200),
        (RuntimeError("broken"), -32603),
        (None, None),
    ],
)
async def test_errors_become_responses_as_written(
    document: list[str], failure: Exception | None, code: int | None
) -> None:
    async def process_request(request: Any) -> Any:
        if failure is not None:
            raise failure
        return {"ok": True}

    request = documented.JsonRpcRequest(method="m", id="7")
    response = await run_in_function(document[7], request=request, process_request=process_request)
    sent = response.to_dict()
    assert (sent["id"], sent.get("error", {}).get("code")) == ("7", code)
    assert ("result" in sent) == (failure is None)


async def test_a_batch_is_processed_as_written(document: list[str]) -> None:
    async def process_request(request: Any) -> Any:
        return documented.create_jsonrpc_success_response(request.id, request.method)

    batch = await run_in_function(document[8], process_request=process_request)
    assert [response["result"] for response in batch.to_list()] == ["method1", "method2"]


def test_all_blocks_but_those_in_functions_are_python(document: list[str]) -> None:
    for number in (0, 2, 3, 4, 5, 6):
        ast.parse(document[number])

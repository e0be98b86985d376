"""The pytest plugin: the marker ``record_golden``, the helpers of goldens, and the fixture ``mcp_host``."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "record_golden(file=None): records the runs of mcp_ghost in this test. With a file that exists, "
        "the test runs only with --record-goldens. Never runs under CI.",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("innkeeper").addoption(
        "--record-goldens",
        action="store_true",
        help="run tests that record goldens, also those whose golden exists",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        marker = item.get_closest_marker("record_golden")
        if marker is None:
            continue
        if os.environ.get("CI"):
            item.add_marker(pytest.mark.skip(reason="goldens are not recorded under CI"))
        elif _exists(marker) and not config.option.record_goldens:
            item.add_marker(pytest.mark.skip(reason="the golden exists: use --record-goldens"))


def _exists(marker: pytest.Mark) -> bool:
    """Whether the golden that a marker names exists."""
    file = marker.args[0] if marker.args else marker.kwargs.get("file")
    return file is not None and Path(file).exists()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Records the runs of a marked test, those of its fixtures too."""
    marker = item.get_closest_marker("record_golden")
    if marker is None:
        yield
        return
    from innkeeper.ghost import Recording, restore_recording, set_recording

    before = set_recording(Recording(test_name=item.name.removeprefix("test_")))
    yield
    restore_recording(before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Ends with the test what the test has set; what a fixture has set stays."""
    # Costs nothing where it isn't used.
    ghost = sys.modules.get("innkeeper.ghost")
    before = None if ghost is None else ghost.recording_state()
    yield
    ghost = sys.modules.get("innkeeper.ghost")
    if ghost is not None:
        ghost.restore_recording(before or (None, ghost.Recording()))


@pytest.fixture
def mcp_host(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A running ``MCPHost`` over the servers of ``mcp.json`` next to the test's file, else of the root.

    Starts before the test and stops after it; its coroutines run on any loop.
    """
    import innkeeper.sync

    places = (request.path.parent, request.config.rootpath)
    found = next((place / "mcp.json" for place in places if (place / "mcp.json").exists()), None)
    if found is None:
        pytest.fail(f"the fixture mcp_host found no mcp.json next to {request.path.name}", False)
    with innkeeper.sync.MCPHost(found) as started:
        host = innkeeper.MCPHost(found)
        host._started(started._host)
        yield host
        host._ended(started._host)

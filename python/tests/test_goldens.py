"""Goldens in pytest: recorded with the marker, replayed without network or servers, compared."""

import asyncio
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from scripted import Model, hello

from innkeeper import GhostResult, GoldenError, mcp_ghost, mcp_ghost_stream
from innkeeper.testing import (
    Golden,
    assert_matches_golden,
    load_golden,
    mock_llm_with_golden,
    save_golden,
)

# An installed package has its plugin by entry point.
IS_INSTALLED = any(
    point.value == "innkeeper.pytest_plugin" for point in entry_points(group="pytest11")
)
PLUGIN = () if IS_INSTALLED else ("-p", "innkeeper.pytest_plugin")

GOLDENS = Path(__file__).parents[2] / "tests" / "goldens"

# The sample of the document, with `async` where it has `await`.
SAMPLE = '''
import os
import pytest
from innkeeper import mcp_ghost
from innkeeper.testing import assert_matches_golden, load_golden, mock_llm_with_golden, save_golden

PROMPT = "Say hello with the tool."

def run(prompt=PROMPT):
    servers = {"servers": {"fx": {"command": os.environ["INNKEEPER_FIXTURE_SERVER"]}}}
    return mcp_ghost(servers, "Be brief.", "openai-compatible", "sk-very-secret-key-1234567890", prompt,
                     model="m", base_url=os.environ.get("MODEL_URL", "http://127.0.0.1:9/v1"))

@pytest.mark.record_golden
async def test_hello_record():
    result = await run()
    save_golden("hello.json", result)

async def test_hello_replay():
    golden = load_golden("hello.json")
    mock_llm_with_golden(golden)
    result = await run()
    assert_matches_golden(result, golden)
    assert golden.tool_chain[0].tool_name == "fx.echo"

async def test_another_prompt():
    mock_llm_with_golden(load_golden("hello.json"))
    await run("Say goodbye.")

async def test_another_result():
    golden = load_golden("hello.json")
    mock_llm_with_golden(golden)
    result = await run()
    result["final_result"] = "It said nothing."
    assert_matches_golden(result, golden)
'''


@pytest.fixture
def sample(pytester: pytest.Pytester, fixture_server: str) -> pytest.Pytester:
    pytester.makepyfile(test_sample=SAMPLE)
    pytester.makeini("[pytest]\nasyncio_mode = auto\n")
    return pytester


def test_the_documents_sample_records_and_replays(
    sample: pytest.Pytester, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: G65, G63, G64."""
    monkeypatch.delenv("CI", raising=False)
    started = hello(model)
    monkeypatch.setenv("MODEL_URL", started.origin + "/v1")
    plugins = (*PLUGIN, "-p", "pytest_asyncio")
    recorded = sample.runpytest_subprocess(*plugins, "-k", "hello_record")
    recorded.assert_outcomes(passed=1)
    golden = (sample.path / "hello.json").read_text()
    assert "sk-very-secret" not in golden
    started.stop()
    # Recording is refused where CI is set; replaying is not.
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("MODEL_URL")
    replayed = sample.runpytest_subprocess(*plugins)
    replayed.assert_outcomes(passed=1, failed=2, skipped=1)
    replayed.stdout.fnmatch_lines(["*ReplayError*", "*Say goodbye.*"])
    replayed.stdout.fnmatch_lines(["*final_result*"])


def test_a_result_that_was_not_recorded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record_golden"):
        save_golden(tmp_path / "none.json", GhostResult({"success": True}))
    assert not (tmp_path / "none.json").exists()


def test_a_file_that_is_no_golden_is_named() -> None:
    with pytest.raises(GoldenError, match="mcp.json"):
        load_golden(GOLDENS / "shared" / "mcp.json")


def test_the_librarys_goldens_can_be_read() -> None:
    golden = load_golden(GOLDENS / "openai" / "multi_tool_chain_analysis.json")
    assert len(golden.tool_chain) >= 5
    assert golden.version == 1


def test_the_fixture_is_a_running_host(pytester: pytest.Pytester, fixture_server: str) -> None:
    pytester.makefile(".json", mcp=json.dumps({"servers": {"fx": {"command": fixture_server}}}))
    pytester.makepyfile(
        test_fixture="""
        async def test_it_can_be_called(mcp_host):
            result = await mcp_host.call_tool("fx.echo", {"message": "hello"})
            assert result["content"][0]["text"] == "hello"
        """
    )
    pytester.makeini("[pytest]\nasyncio_mode = auto\n")
    plugins = (*PLUGIN, "-p", "pytest_asyncio")
    pytester.runpytest_subprocess(*plugins).assert_outcomes(passed=1)


def test_a_test_without_configuration_says_where_it_looked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_fixture="def test_it(mcp_host): pass")
    run = pytester.runpytest_subprocess(*PLUGIN)
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*no mcp.json next to test_fixture.py*"])


def replayed_run(golden: Golden) -> GhostResult:
    """Runs with the input of a golden."""
    given = golden.input
    return asyncio.run(
        mcp_ghost(
            given.server_config,
            given.system_prompt,
            given.provider,
            None,
            given.user_prompt,
            given.model,
            given.namespace,
        )
    )


@pytest.fixture
def golden() -> Golden:
    return load_golden(GOLDENS / "openai" / "multi_tool_chain_analysis.json")


def test_a_golden_answers_runs_of_other_threads_and_after_an_inner_block(golden: Golden) -> None:
    other = load_golden(GOLDENS / "gemini" / "complex_tool_orchestration.json")
    with mock_llm_with_golden(golden):
        with mock_llm_with_golden(other):
            assert_matches_golden(replayed_run(other), other)
        assert_matches_golden(replayed_run(golden), golden)
        with ThreadPoolExecutor() as threads:
            assert_matches_golden(threads.submit(replayed_run, golden).result(), golden)


async def test_a_golden_answers_a_stream_with_its_result(golden: Golden) -> None:
    given = golden.input
    with mock_llm_with_golden(golden):
        stream = mcp_ghost_stream(
            given.server_config, given.system_prompt, given.provider, None, given.user_prompt, given.model
        )
        (result,) = [event async for event in stream]
    assert isinstance(result, GhostResult)
    assert_matches_golden(result, golden)


def test_goldens_and_results_can_be_copied(golden: Golden) -> None:
    assert copy.copy(golden).tool_chain == golden.tool_chain
    assert copy.deepcopy(golden) == golden
    result = GhostResult({"success": True, "tool_chain": []})
    assert pickle.loads(pickle.dumps(result)) == copy.deepcopy(result) == result

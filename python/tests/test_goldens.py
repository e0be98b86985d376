"""Goldens in pytest: recorded with the marker, replayed without network or servers, compared."""

import json
from pathlib import Path

import pytest
from scripted import Model, hello

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
    plugins = ("-p", "innkeeper.pytest_plugin", "-p", "pytest_asyncio")
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
    from innkeeper import GhostResult
    from innkeeper.testing import save_golden

    with pytest.raises(ValueError, match="record_golden"):
        save_golden(tmp_path / "none.json", GhostResult({"success": True}))
    assert not (tmp_path / "none.json").exists()


def test_a_file_that_is_no_golden_is_named() -> None:
    from innkeeper import GoldenError
    from innkeeper.testing import load_golden

    with pytest.raises(GoldenError, match="mcp.json"):
        load_golden(GOLDENS / "shared" / "mcp.json")


def test_the_librarys_goldens_can_be_read() -> None:
    from innkeeper.testing import load_golden

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
    plugins = ("-p", "innkeeper.pytest_plugin", "-p", "pytest_asyncio")
    pytester.runpytest_subprocess(*plugins).assert_outcomes(passed=1)


def test_a_test_without_configuration_says_where_it_looked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_fixture="def test_it(mcp_host): pass")
    run = pytester.runpytest_subprocess("-p", "innkeeper.pytest_plugin")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*no mcp.json next to test_fixture.py*"])

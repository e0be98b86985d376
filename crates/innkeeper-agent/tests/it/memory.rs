//! The memory of a tool output on its way to a model, and the memory and work of many runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::{HistoryBudget, Message};
use innkeeper_agent::provider::{LlmError, LlmProvider, Request, Response};
use innkeeper_agent::tool_output;
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_toolcall::Tool;
use peak_alloc::PeakAlloc;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

/// Counts the allocated bytes of the process. The test runner gives each test its own process.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The size of an output that a server can send in one message.
const OUTPUT_BYTES: usize = 2 << 20;

/// Maximum memory for an output, as a multiple of its size; includes the output.
const MAX_FACTOR: usize = 8;

/// Repeats `item` as an array of about [`OUTPUT_BYTES`].
fn array_of(item: &str) -> String {
    format!("[{}]", vec![item; OUTPUT_BYTES / (item.len() + 1)].join(","))
}

/// Returns a result whose structured content is short enough for a comparison with the text, which
/// differs in the last item only.
fn compared_with_text(item: &str, last_item: &str) -> String {
    let items = vec![item; ((1 << 20) - 16) / (item.len() + 1)].join(",");
    let (text, structured) = (format!("[{items},{last_item}]"), format!("[{items},{item}]"));
    let text = serde_json::Value::from(text);
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{structured}}}"#)
}

/// Attack: model | results with as many blocks, members or escapes as their bytes allow | the
/// content for the model takes at most eight times the bytes | No unbounded memory
#[test]
fn the_content_for_a_model_takes_at_most_eight_times_the_bytes_of_the_output() {
    let members: String = (0..OUTPUT_BYTES / 12).map(|at| format!(r#""{at:07}":0,"#)).collect();
    let escaped = r"\u00e4".repeat(OUTPUT_BYTES / 6);
    for (name, output) in [
        ("texts", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"text","text":""}"#))),
        ("images", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"image","data":""}"#))),
        ("unknown blocks", format!(r#"{{"content":{}}}"#, array_of(r#"{"type":"x"}"#))),
        ("no blocks", format!(r#"{{"content":{}}}"#, array_of("0"))),
        ("empty arrays", format!(r#"{{"content":{}}}"#, array_of("[]"))),
        ("one text", format!(r#"{{"content":[{{"type":"text","text":"{escaped}"}}]}}"#)),
        ("members", format!(r#"{{"content":[{{{members}"type":"text","text":"a"}}]}}"#)),
        ("members of the result", format!(r#"{{{members}"content":[]}}"#)),
        (
            "structured",
            format!(
                r#"{{"content":[{{"type":"text","text":"[]"}}],"structuredContent":{}}}"#,
                array_of("[]")
            ),
        ),
        ("not an object", array_of("[]")),
        ("structured content in a text", compared_with_text("[]", "[]")),
        ("structured content in no text", compared_with_text("[]", "{}")),
        ("objects in a text", compared_with_text(r#"{"a":[]}"#, r#"{"a":[]}"#)),
        ("an unescaped text", compared_with_text(r#""a""#, r#""b""#)),
    ] {
        let bytes = output.len();
        let output = ToolOutput::new(RawValue::from_string(output).unwrap(), false);
        let before = ALLOCATOR.current_usage() - bytes;
        ALLOCATOR.reset_peak_usage();
        let text = tool_output::to_text(&output);
        let peak = ALLOCATOR.peak_usage() - before;
        assert!(text.len() <= tool_output::MAX_OUTPUT_BYTES + 64, "{name}: {}", text.len());
        assert!(peak <= MAX_FACTOR * bytes, "{name}: {peak} bytes for {bytes}");
    }
}

/// A model that makes eight calls for each user message, then answers.
struct EightCalls;

#[async_trait]
impl LlmProvider for EightCalls {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        if request.tools.is_empty() {
            return Ok(Response::from_text("A summary."));
        }
        Ok(match request.messages.last() {
            Some(Message::ToolResults(_)) => Response::from_text("answer"),
            _ => Response::from_tool_calls([("echo", r#"{"message": "hello"}"#); CALLS]),
        })
    }

    fn name(&self) -> &'static str {
        "eight"
    }

    fn supports_tools(&self) -> bool {
        true
    }
}

/// The number of calls in one response.
const CALLS: usize = 8;

/// A tool that keeps nothing. Each call waits until all calls of its response run.
struct EchoTool(tokio::sync::Barrier);

impl EchoTool {
    fn new() -> Self {
        Self(tokio::sync::Barrier::new(CALLS))
    }
}

impl ToolRunner for EchoTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = Tool::new("echo", "Repeats a message.", json!({"type": "object"}));
        vec![AvailableTool::new(tool, ToolAnnotations::default())]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let text = arguments.get().repeat(4);
        let result = json!({"content": [{"type": "text", "text": text}]});
        Box::pin(async move {
            self.0.wait().await;
            Ok(ToolOutput::new(to_raw_value(&result).unwrap(), false))
        })
    }
}

/// The cost of one run.
#[derive(Clone, Copy, Debug)]
struct RunCost {
    time: Duration,
    /// The memory during the run beyond the memory before it.
    peak_bytes: usize,
    /// The memory that the run leaves.
    kept_bytes: usize,
}

async fn measure_run(agent: &Agent) -> RunCost {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let started_at = Instant::now();
    let result = agent.run("And now?").await;
    let time = started_at.elapsed();
    assert_eq!(result.tool_calls.len(), CALLS);
    drop(result);
    RunCost {
        time,
        peak_bytes: ALLOCATOR.peak_usage() - before,
        kept_bytes: ALLOCATOR.current_usage().saturating_sub(before),
    }
}

/// Proves: G75
#[tokio::test]
async fn the_last_of_five_hundred_turns_costs_what_the_first_ones_cost() {
    let mut settings = AgentSettings::default();
    settings.requests.history_budget = Some(HistoryBudget { max_tokens: 4000 });
    settings.calls.max_parallel = CALLS;
    let agent = Agent::new(Arc::new(EightCalls), Arc::new(EchoTool::new()), settings);
    let mut costs = Vec::new();
    for _ in 0..500 {
        costs.push(measure_run(&agent).await);
    }
    assert_eq!(agent.conversation().messages().len(), 500 * 4);
    let (early, late) = (&costs[50..100], &costs[450..]);
    // The fastest run counts, so that a pause of the machine does not.
    let time = |costs: &[RunCost]| costs.iter().map(|cost| cost.time).min().unwrap();
    assert!(time(late) < time(early) * 3, "{:?} and {:?}", time(early), time(late));
    let peak = |costs: &[RunCost]| costs.iter().map(|cost| cost.peak_bytes).max().unwrap();
    assert!(peak(late) < peak(early) * 2, "{} and {}", peak(early), peak(late));
    let kept =
        |costs: &[RunCost]| costs.iter().map(|cost| cost.kept_bytes).sum::<usize>() / costs.len();
    assert!(kept(late) < kept(early) * 2, "{} and {}", kept(early), kept(late));
}

/// Proves: G75
#[tokio::test]
async fn a_hundred_runs_one_after_the_other_leave_no_memory_behind() {
    let (model, tools) = (Arc::new(EightCalls), Arc::new(EchoTool::new()));
    let mut settings = AgentSettings::default();
    settings.calls.max_parallel = CALLS;
    let agent = Agent::new(model, tools, settings);
    let (mut after, mut times) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        times.push(measure_run(&agent).await.time);
        agent.clear();
        after.push(ALLOCATOR.current_usage());
    }
    let (early, late) = (after[9], after[99]);
    assert!(late < early + (64 << 10), "{early} and {late} bytes");
    let time = |times: &[Duration]| times.iter().min().copied().unwrap();
    let (early, late) = (time(&times[..50]), time(&times[50..]));
    assert!(late < early * 3, "{early:?} and {late:?}");
}

//! A run is recorded once, and replays from its file alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use innkeeper_golden::{Outcome, QuestionRecord, ReplyRecord, StreamEnd};
use innkeeper_toolcall::Tool;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{
    DescribedPrompts, DescribedServers, Golden, GoldenRecorder, RecordError, ReplayError,
    RunDescription, replay,
};
use crate::agent::AgentSettings;
use crate::ghost::GhostResult;
use crate::provider::{LlmProvider as _, ProviderApi};
use crate::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput,
    ToolRunner,
};
use crate::transport::in_memory::{InMemoryClient, InMemoryReply, InMemoryResponse};
use crate::transport::{Endpoint, HttpError, HttpProvider};

/// Tools that answer after a time of their own: `slow` after 80 ms, `fast` after 10 ms; `broken`
/// fails.
struct TimedTools;

impl ToolRunner for TimedTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tool = |name: &str| {
            let schema = json!({"type": "object", "properties": {"q": {"type": "number"}}});
            let definition = json!({"name": name, "description": "Finds.", "inputSchema": schema});
            AvailableTool {
                tool: Tool::new(format!("notes.{name}"), "Finds.", schema),
                annotations: ToolAnnotations::default(),
                definition: Some(to_raw_value(&definition).unwrap().into()),
                refusal: None,
            }
        };
        ["slow", "fast", "broken"].map(tool).to_vec()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            let millis = if name == "notes.slow" { 80 } else { 10 };
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if name == "notes.broken" {
                let source = "no such note".into();
                return Err(ToolError::Runner { tool: name.to_owned(), source });
            }
            // Blanks and digits that a parser would lose.
            let text = format!(
                r#"{{ "content":[{{"type":"text", "text":"{name} found 1.50"}}],
                "structuredContent": {{"asked": {arguments}, "big": 12345678901234567890.10}} }}"#
            );
            Ok(ToolOutput::new(RawValue::from_string(text).unwrap(), false))
        })
    }
}

fn delta(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "c1", "choices": [{"index": 0, "delta": delta}]}))
}

/// A streamed response of the Chat Completions API.
fn streamed(deltas: &[Value], finish: &str) -> InMemoryResponse {
    let mut response =
        InMemoryResponse::new(200, "").with_header("content-type", "text/event-stream");
    for item in deltas {
        response = response.with_chunk(delta(item));
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}});
    response.with_chunk(format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n"))
}

fn calls(calls: &[(&str, &str)]) -> InMemoryResponse {
    let deltas = calls.iter().enumerate().map(|(at, (name, arguments))| {
        json!({"tool_calls": [{"index": at, "id": format!("call_{at}"), "type": "function",
            "function": {"name": name, "arguments": arguments}}]})
    });
    streamed(&deltas.collect::<Vec<_>>(), "tool_calls")
}

fn answer(text: &str) -> InMemoryResponse {
    let words = text.split_inclusive(' ').map(|word| json!({"content": word}));
    streamed(&words.collect::<Vec<_>>(), "stop")
}

fn two_calls_and_an_answer() -> Vec<InMemoryReply> {
    let first = calls(&[("notes_slow", r#"{"q": 1.0}"#), ("notes_fast", r#"{"q": 2.50}"#)]);
    vec![first.into(), answer("Both are there.").into()]
}

fn no_credentials(_: &str) -> Vec<&str> {
    Vec::new()
}

async fn record(
    replies: Vec<InMemoryReply>,
    settings: AgentSettings,
) -> (GhostResult, Result<Golden, RecordError>) {
    record_messages(&["Look."], replies, settings).await
}

async fn record_messages(
    messages: &[&str],
    replies: Vec<InMemoryReply>,
    settings: AgentSettings,
) -> (GhostResult, Result<Golden, RecordError>) {
    let endpoint = Endpoint::new("openai-compatible", ProviderApi::OpenAiChat, "m-1");
    let endpoint = Endpoint { base_url: "http://a.example/v1".to_owned(), ..endpoint };
    let provider = HttpProvider::with_client(endpoint, InMemoryClient::new(replies));
    let recorder = GoldenRecorder::new();
    let provider = Arc::new(recorder.record_model(&provider));
    let tools = recorder.record_tools(Arc::new(TimedTools));
    let agent = recorder.agent(provider.clone(), tools, settings.clone());
    let mut report = GhostResult::before_run(&settings.system, provider.name());
    report.set_model(&*provider);
    (report.tools_discovered, report.servers_connected) = (3, 1);
    report.finish(agent.run_streaming(messages[0], |_| {}).await, agent.conversation());
    for message in &messages[1..] {
        recorder.start_further_run(&report);
        report.add_run(agent.run_streaming(*message, |_| {}).await, agent.conversation());
    }
    let description = RunDescription {
        test_name: "notes".to_owned(),
        category: None,
        recorded_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000),
        servers: DescribedServers {
            config: to_raw_value(&json!({"mcpServers": {"notes": {"command": "notes"}}})).unwrap(),
            states: BTreeMap::from([("notes".to_owned(), None)]),
        },
        prompts: DescribedPrompts {
            first: messages[0].to_owned(),
            further: messages[1..].iter().map(|message| (*message).to_owned()).collect(),
        },
        namespace: String::new(),
        streaming: true,
        settings,
    };
    let golden = recorder.finish(&description, &report, &[], no_credentials).await;
    (report, golden)
}

async fn recorded(replies: Vec<InMemoryReply>) -> Golden {
    record(replies, AgentSettings::default()).await.1.unwrap()
}

fn output(golden: &Golden) -> Value {
    serde_json::from_str(golden.golden_output.get()).unwrap()
}

/// Proves: G63, G64
#[tokio::test(start_paused = true)]
async fn a_recorded_run_replays_from_its_file_with_the_same_result() {
    let golden = recorded(two_calls_and_an_answer()).await;
    let text = golden.to_json().unwrap();
    let read = Golden::from_json(&text).unwrap();
    let replayed = replay(&read).await.unwrap();
    assert_eq!(replayed.result.result.text, "Both are there.");
    assert_eq!(replayed.golden.to_json().unwrap(), text);
    let output = output(&golden);
    assert_eq!(output["tool_chain"][0]["execution_time"], json!(0.08));
    assert_eq!(output["tool_chain"][1]["execution_time"], json!(0.01));
    assert!(text.contains("\"big\": 12345678901234567890.10} }"), "{text}");
    assert!(text.contains(r#""arguments": {"q":2.50}"#), "{text}");
    let usage = golden.provider_responses[0].token_usage.as_ref().unwrap().get();
    assert_eq!(usage, r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#);
}

#[tokio::test(start_paused = true)]
async fn a_replay_runs_the_loop_and_does_not_return_the_recorded_result() {
    let mut golden = recorded(two_calls_and_an_answer()).await;
    golden.golden_output = to_raw_value("forged").unwrap();
    let replayed = replay(&golden).await.unwrap();
    assert_eq!(output(&replayed.golden)["final_result"], "Both are there.");
}

#[tokio::test(start_paused = true)]
async fn failures_replay_as_they_were_and_take_no_time() {
    let busy = InMemoryResponse::new(429, r#"{"error": {"message": "busy"}}"#);
    let busy = busy.with_header("retry-after", "20");
    let lost = || HttpError::Disconnected { source: "reset by peer".into() };
    let broken = InMemoryResponse::new(200, delta(&json!({"content": "Bo"}))).with_error(lost());
    let replies: Vec<InMemoryReply> = vec![
        busy.into(),
        broken.into(),
        calls(&[("notes_broken", "{}")]).into(),
        InMemoryReply::Never,
        lost().into(),
        answer("It is broken.").into(),
    ];
    let mut settings = AgentSettings::default();
    settings.limits.response_timeout = Duration::from_secs(300);
    let (live, golden) = record(replies, settings).await;
    let golden = golden.unwrap();
    let replayed = replay(&golden).await.unwrap();
    assert_eq!(replayed.result.result.outcome, live.result.outcome);
    assert_eq!(replayed.result.result.errors, live.result.errors);
    assert_eq!(replayed.result.result.stats, live.result.stats);
    let elapsed = replayed.result.result.elapsed;
    assert!(elapsed > Duration::from_secs(300), "{elapsed:?}");
    let replies: Vec<_> = golden.provider_responses.iter().map(|item| &item.response).collect();
    assert!(matches!(replies[0], ReplyRecord::Http(response) if response.status == 429));
    assert!(matches!(
        replies[1],
        ReplyRecord::Http(response) if matches!(response.end, StreamEnd::Failed { .. })
    ));
    assert!(matches!(replies[3], ReplyRecord::Silent {}));
    assert!(matches!(replies[4], ReplyRecord::Failed { kind, .. } if kind == "disconnected"));
    let Outcome::Failed { class, .. } = &golden.tool_calls[0].outcome else { panic!() };
    assert_eq!(class, "runner");
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_have_one_result_in_any_schedule() {
    let all = [
        ("notes_slow", r#"{"q": 1}"#),
        ("notes_fast", r#"{"q": 2}"#),
        ("notes_fast", r#"{"q": 3}"#),
        ("notes_broken", r#"{"q": 4}"#),
        ("notes_slow", r#"{"q": 1}"#),
    ];
    let golden = recorded(vec![calls(&all).into(), answer("Done.").into()]).await;
    let without_times = |golden: &Golden| {
        let mut output = output(golden);
        output["execution_metadata"]["total_execution_time"] = Value::Null;
        output["execution_metadata"]["tool_times"] = Value::Null;
        for call in output["tool_chain"].as_array_mut().unwrap() {
            call["execution_time"] = Value::Null;
        }
        output
    };
    let expected = without_times(&golden);
    let mut random = fastrand::Rng::with_seed(43);
    for schedule in 0..50 {
        let mut shuffled = golden.clone();
        for call in &mut shuffled.tool_calls {
            call.end_ms = Some(call.begin_ms + random.u64(0..200));
        }
        random.shuffle(&mut shuffled.tool_calls);
        let replayed = replay(&shuffled).await.unwrap();
        assert_eq!(without_times(&replayed.golden), expected, "schedule {schedule}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_recording_names_the_nearest_and_the_changed_field() {
    let golden = recorded(two_calls_and_an_answer()).await;
    let changed = |change: &dyn Fn(&mut Golden)| {
        let mut golden = golden.clone();
        change(&mut golden);
        golden
    };
    let text = |raw: &RawValue, from: &str, to: &str| {
        assert!(raw.get().contains(from), "{from} in {raw}");
        RawValue::from_string(raw.get().replacen(from, to, 1)).unwrap()
    };
    let cases = [
        (
            changed(&|golden| golden.input.user_prompt = "Search.".to_owned()),
            "`/body/messages/0/content` was \"Look.\", is now \"Search.\"",
        ),
        (
            changed(&|golden| golden.input.model = "m-2".to_owned()),
            "`/body/model` was \"m-1\", is now \"m-2\"",
        ),
        (
            changed(&|golden| {
                let settings = &mut golden.input.settings;
                *settings = text(settings, "\"temperature\":null", "\"temperature\":0.5");
            }),
            "`/body/temperature` is new: 0.5",
        ),
        (
            changed(&|golden| {
                let definition = &mut golden.tools[0].definition;
                *definition = text(definition, "Finds.", "Seeks.");
            }),
            "`/body/tools/0/function/description` was \"Finds.\", is now \"Seeks.\"",
        ),
        (
            changed(&|golden| golden.offers[0].tools.swap(0, 1)),
            "`/body/tools/0/function/name` was \"notes_slow\", is now \"notes_fast\"",
        ),
    ];
    for (golden, expected) in cases {
        let Err(ReplayError::Missed(miss)) = replay(&golden).await else { panic!("{expected}") };
        let message = miss.to_string();
        assert!(message.contains(expected), "{expected} in {message}");
        assert!(
            message
                .contains("the nearest is request 1 (POST http://a.example/v1/chat/completions)"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_recording_and_an_unused_answer_end_the_replay() {
    let golden = recorded(two_calls_and_an_answer()).await;
    let mut other_call = golden.clone();
    other_call.tool_calls[0].arguments = RawValue::from_string(r#"{"q":9}"#.to_owned()).unwrap();
    let error = replay(&other_call).await.unwrap_err().to_string();
    assert!(error.contains("the call of `notes.slow` after request 1"), "{error}");
    assert!(error.contains("`/arguments/q` was 9, is now 1.0"), "{error}");
    let mut further = golden.clone();
    further.provider_responses.push(golden.provider_responses[1].clone());
    further.tool_calls.push(golden.tool_calls[0].clone());
    let replayed = replay(&further).await.unwrap();
    assert_eq!(replayed.result.result.text, "Both are there.");
    let error = replayed.require_complete().unwrap_err().to_string();
    assert_eq!(error, "nothing asked for request 3 (iteration 2), call 3 (`notes.slow`)");
}

/// Returns the golden of a chat of two messages.
async fn recorded_chat(replies: Vec<InMemoryReply>) -> Golden {
    let mut settings = AgentSettings::default();
    settings.limits.max_retries = 0;
    record_messages(&["Look.", "And now?"], replies, settings).await.1.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_chat_replays_all_its_messages_and_counts_its_iterations_on() {
    let mut replies = two_calls_and_an_answer();
    replies.push(calls(&[("notes_fast", r#"{"q": 3}"#)]).into());
    replies.push(answer("Still there.").into());
    let golden = recorded_chat(replies).await;
    let text = golden.to_json().unwrap();
    let replayed = replay(&Golden::from_json(&text).unwrap()).await.unwrap();
    assert_eq!(replayed.golden.to_json().unwrap(), text);
    let output = output(&golden);
    assert_eq!(output["final_result"], "Still there.");
    assert_eq!(output["tool_chain"][2]["iteration"], 3);
    assert_eq!(output["conversation_history"].as_array().unwrap().len(), 9);
    assert_eq!(output["execution_metadata"]["token_usage"]["total_tokens"], 40);
    let iterations = golden.provider_responses.iter().map(|exchange| exchange.iteration);
    assert_eq!(iterations.collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(golden.provider_responses.iter().all(|exchange| exchange.token_usage.is_some()));

    let mut shorter = golden.clone();
    shorter.input.further_prompts.clear();
    let error = replay(&shorter).await.unwrap().require_complete().unwrap_err().to_string();
    assert!(error.starts_with("nothing asked for request 3 (iteration 3)"), "{error}");
    let mut changed = golden;
    changed.input.further_prompts[0] = "Where?".to_owned();
    let error = replay(&changed).await.unwrap_err().to_string();
    assert!(
        error.contains("`/body/messages/5/content` was \"And now?\", is now \"Where?\""),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_earlier_message_of_a_chat_may_fail_and_its_failure_is_an_error() {
    let busy = InMemoryResponse::new(400, r#"{"error": {"message": "no"}}"#);
    let golden = recorded_chat(vec![busy.into(), answer("Hello.").into()]).await;
    let output = output(&golden);
    assert_eq!(output["success"], true);
    assert_eq!(output["errors"][0]["iteration"], 1);
    assert!(output["errors"][0]["error"].as_str().unwrap().contains("no"), "{output}");
    assert_eq!(golden.provider_responses[1].iteration, 2);
    let usage = golden.provider_responses[1].token_usage.as_ref().unwrap().get();
    assert!(usage.contains("\"total_tokens\":10"), "{usage}");
}

#[tokio::test(start_paused = true)]
async fn a_replay_has_the_questions_of_the_calls_that_it_made_in_its_own_order() {
    let mut golden = recorded(two_calls_and_an_answer()).await;
    golden.questions = [None, Some(0), Some(1), Some(7)]
        .map(|call| QuestionRecord {
            server: "notes".to_owned(),
            method: "elicitation/create".to_owned(),
            params: RawValue::NULL.to_owned(),
            answer: None,
            call,
        })
        .to_vec();
    // The calls of one response may be recorded in any order.
    golden.tool_calls.swap(0, 1);
    let replayed = replay(&golden).await.unwrap();
    let calls = replayed.golden.questions.iter().map(|question| question.call);
    assert_eq!(calls.collect::<Vec<_>>(), [None, Some(1), Some(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_not_sent_has_no_golden() {
    let recorder = GoldenRecorder::new();
    let report = GhostResult::before_run("", "openai");
    let description = RunDescription {
        test_name: "none".to_owned(),
        category: None,
        recorded_at: SystemTime::UNIX_EPOCH,
        servers: DescribedServers {
            config: to_raw_value(&json!({})).unwrap(),
            states: BTreeMap::new(),
        },
        prompts: DescribedPrompts { first: String::new(), further: Vec::new() },
        namespace: String::new(),
        streaming: false,
        settings: AgentSettings::default(),
    };
    let golden = recorder.finish(&description, &report, &[], no_credentials).await;
    assert!(matches!(golden, Err(RecordError::NotFinished { .. })), "{golden:?}");
}

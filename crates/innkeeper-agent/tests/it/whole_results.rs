//! Whole results of runs with a real server, over every API, streamed and not.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::run::RunLimits;
use innkeeper_agent::run_json::{RESULT_SCHEMA, RunContext, RunJson};
use innkeeper_agent::tools::ToolRunner as _;
use innkeeper_agent::transport::HttpProvider;
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{Fixture, Journal, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json};
use serde_json::{Value, json};

use super::provider_apis::{endpoint, model_name};

/// A run, which gives the same result over every API.
struct Course {
    /// Returns the server; `None` for a run without servers.
    server: fn() -> Option<Fixture>,
    settings: AgentSettings,
    replies: Vec<ScriptedReply>,
    /// The number of calls that reach the server.
    calls: usize,
}

impl Course {
    fn new(calls: usize, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let settings = AgentSettings { system: "Be brief.".to_owned(), ..AgentSettings::default() };
        let replies = replies.into_iter().map(|reply| reply.with_usage(100, 10)).collect();
        Self { server: || Some(fixture("fx")), settings, replies, calls }
    }

    /// Runs the course over one API, and returns its result without what differs by nature.
    async fn run(&self, api: ProviderApi, streaming: bool) -> Value {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal");
        let servers = (self.server)().map(|server| server.journal(&journal));
        let servers_connected = usize::from(servers.is_some());
        let servers = mcp_json(servers);
        let environment = Environment::from_process();
        let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment);
        let host = Host::start(config.unwrap()).await.unwrap();
        let llm = ScriptedLlm::start(Script::new(self.replies.clone())).await;
        let provider = Arc::new(HttpProvider::new(endpoint(api, &llm)));
        let agent = Agent::new(provider, Arc::new(host.clone()), self.settings.clone());
        let result = match streaming {
            true => agent.run_streaming("Do it.", |_| {}).await,
            false => agent.run("Do it.").await,
        };
        let conversation = agent.conversation();
        let context = RunContext {
            provider: "test",
            model: model_name(api),
            system: &self.settings.system,
            conversation: &conversation,
            tools_discovered: host.list_tools().len(),
            servers_connected,
        };
        let result = serde_json::to_value(RunJson::new(&result, &context)).unwrap();
        assert_schema(&result);
        host.shutdown().await;
        let calls = match journal.exists() {
            true => Journal::read(&journal).count("tools/call"),
            false => 0,
        };
        assert_eq!(calls, self.calls, "{api:?} {streaming}: {result:#}");
        normalized(result)
    }

    /// Runs the course over every API, streamed and not: the results are equal.
    async fn result(&self) -> Value {
        let expected = self.run(ProviderApi::ALL[0], false).await;
        for api in ProviderApi::ALL {
            for streaming in [false, true] {
                let result = self.run(api, streaming).await;
                assert_eq!(result, expected, "{api:?} {streaming}");
            }
        }
        expected
    }
}

/// Checks a result against its published schema.
pub(crate) fn assert_schema(result: &Value) {
    let schema: Value = serde_json::from_str(RESULT_SCHEMA).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(result).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{result:#}");
}

/// Replaces the durations, the model, and the ids of calls, which some APIs choose themselves.
fn normalized(mut result: Value) -> Value {
    let metadata = &mut result["execution_metadata"];
    for key in ["total_execution_time", "tool_times", "model"] {
        metadata[key] = json!(key);
    }
    let chain = result["tool_chain"].as_array_mut().unwrap();
    for call in chain {
        call["execution_time"] = json!("execution_time");
    }
    let mut ids: Vec<String> = Vec::new();
    let history = result["conversation_history"].as_array().unwrap();
    for message in history {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            ids.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    let mut text = result.to_string();
    for (number, id) in (1..).zip(&ids) {
        text = text.replace(&format!("\"{id}\""), &format!("\"id {number}\""));
    }
    serde_json::from_str(&text).unwrap()
}

fn call(tool: &str, arguments: Value) -> ScriptedReply {
    ScriptedReply::text("Next.").with_tool_call(format!("fx.{tool}"), arguments)
}

fn done() -> ScriptedReply {
    ScriptedReply::text("Done.")
}

fn echo(message: &str) -> ScriptedReply {
    call("echo", json!({"message": message}))
}

/// Compares a result with its snapshot.
macro_rules! assert_result {
    ($course:expr) => {
        insta::assert_json_snapshot!($course.result().await);
    };
}

/// Each call has an argument that is the result of the call before.
///
/// Proves: G7
#[tokio::test]
async fn five_steps_each_with_the_result_of_the_step_before() {
    let steps = (0..5).map(|step| {
        let term = 1 << step;
        ScriptedReply::text(format!("The sum is {term}."))
            .with_tool_call("fx.add", json!({"a": term, "b": term}))
    });
    assert_result!(Course::new(5, steps.chain([done()])));
}

/// Proves: G59
#[tokio::test]
async fn without_a_server_the_model_responds_without_tools() {
    let mut course = Course::new(0, [done()]);
    course.server = || None;
    assert_result!(course);
}

/// Proves: G62, G73
#[tokio::test]
async fn six_steps_one_after_the_other() {
    let steps = (1..=6).map(|step| call("add", json!({"a": step, "b": step})));
    assert_result!(Course::new(6, steps.chain([done()])));
}

/// Proves: G26, G28, G42
#[tokio::test]
async fn after_failures_other_arguments_another_tool_and_smaller_steps() {
    let both = ScriptedReply::text("In two steps.")
        .with_tool_call("fx.echo", json!({"message": "one"}))
        .with_tool_call("fx.echo", json!({"message": "two"}));
    let replies = [
        call("read", json!({"path": "/nowhere/one"})),
        call("read", json!({"path": "/nowhere/two"})),
        call("fail", json!({})),
        both,
        done(),
    ];
    assert_result!(Course::new(5, replies));
}

/// Proves: G-b10
#[tokio::test]
async fn a_loop_ends_the_run_after_the_third_equal_result() {
    let replies = (0..5).map(|_| echo("again"));
    assert_result!(Course::new(3, replies));
}

/// Proves: G-b10
#[tokio::test]
async fn polling_whose_results_change_is_no_loop() {
    let grow = || call("grow", json!({"what": "prompts"}));
    let mut course = Course::new(5, (0..5).map(|_| grow()).chain([done()]));
    course.server = || Some(fixture("fx").switch("--list-changed"));
    assert_result!(course);
}

/// Proves: G58
#[tokio::test]
async fn a_tool_that_failed_three_times_is_refused_without_a_call() {
    let fail = |at: u32| call("fail", json!({"attempt": at}));
    assert_result!(Course::new(3, (1..=4).map(fail).chain([done()])));
}

/// Proves: G50
#[tokio::test]
async fn a_history_that_exceeds_the_budget_is_summarized_in_the_middle_of_the_run() {
    let big = |at: u32| call("big", json!({"bytes": 8000 + at}));
    let summary = ScriptedReply::text("The first results are x, repeated.");
    let replies = [big(0), big(1), big(2), summary, big(3), done()];
    let mut course = Course::new(4, replies);
    course.settings.requests.history_budget = Some(HistoryBudget { max_tokens: 5500 });
    let result = course.result().await;
    assert_eq!(result["execution_metadata"]["summaries"], json!(1));
    // The results are as long as the reason for the summary; the snapshot has the rest.
    let text =
        serde_json::to_string_pretty(&result).unwrap().replace(&"x".repeat(8000), "8000 x, ");
    insta::assert_snapshot!(text);
}

/// Proves: G54, G74
#[tokio::test]
async fn the_last_permitted_response_is_a_success_and_one_more_a_partial_result() {
    let limited = |replies: Vec<ScriptedReply>| {
        let mut course = Course::new(2, replies);
        course.settings.limits = RunLimits { max_iterations: 3, ..RunLimits::default() };
        course
    };
    assert_result!(limited(vec![echo("one"), echo("two"), done()]));
    let so_far = ScriptedReply::text("So far one, two and three.");
    let mut course = limited(vec![echo("one"), echo("two"), echo("three"), so_far]);
    course.calls = 3;
    assert_result!(course);
}

/// Proves: G45
#[tokio::test]
async fn a_server_that_crashes_during_a_call_does_not_end_the_run() {
    let mut course = Course::new(2, [echo("one"), echo("two"), echo("three"), done()]);
    course.server = || Some(fixture("fx").with("--crash-after", 2));
    assert_result!(course);
}

/// Proves: G57
#[tokio::test]
async fn one_failure_among_three_calls_is_a_partial_success() {
    let three = ScriptedReply::text("All.")
        .with_tool_call("fx.echo", json!({"message": "one"}))
        .with_tool_call("fx.fail", json!({}))
        .with_tool_call("fx.add", json!({"a": 1, "b": 2}));
    assert_result!(Course::new(3, [three, done()]));
}

/// Proves: G21
#[tokio::test]
async fn without_backtracking_the_first_failure_ends_the_run() {
    let mut course = Course::new(1, [call("fail", json!({})), done()]);
    course.settings.tool_use.backtracking = false;
    assert_result!(course);
}

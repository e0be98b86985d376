//! Chats with real servers: child processes of a host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, RunResult};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::tools::{ResourceTools, ToolCallOptions};
use innkeeper_agent::{Chat, ChatSettings, SingleServer, ToolError, ToolRunner};
use innkeeper_host::{CallError, Config, Environment, Host};
use innkeeper_testkit::{
    Fault, Fixture, Journal, JournalEntry, RemoteServer, fixture, fixture_program, mcp_json,
};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::setup::{CollectedResponse, call_json, output_text, response_stream};

async fn start_host(servers: impl IntoIterator<Item = Fixture>) -> Host {
    let environment = Environment::from_process();
    let config =
        Config::from_value(&mcp_json(servers), "mcp.json", Path::new("/"), &environment).unwrap();
    Host::start(config).await.unwrap()
}

async fn read_response(runner: impl ToolRunner, text: String) -> CollectedResponse {
    let chat = Chat::new(Arc::new(runner), ChatSettings::default()).unwrap();
    CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream([text])).unwrap(),
    )
    .await
}

/// Proves: S2
#[tokio::test]
async fn the_tools_of_every_server_of_a_host_are_offered_and_run_by_their_public_names() {
    let host = start_host([fixture("one"), fixture("two")]).await;
    let tools = host.list_tools();
    let read_hint = tools.iter().find(|available| available.tool.name == "two.read").unwrap();
    assert!(read_hint.annotations.read_only && !read_hint.annotations.idempotent);
    assert!(read_hint.tool.property("path").is_some());
    let names: Vec<&str> = tools.iter().map(|available| available.tool.name.as_str()).collect();
    assert!(names.contains(&"one.a.b") && names.contains(&"two.a.b"), "{names:?}");
    let text = [call_json("one.echo", &json!({"message": "x"})), call_json("two.a.b", &json!({}))]
        .join("\n");
    let mut all = read_response(host.clone(), text).await;
    all.executions.sort_by_key(|execution| execution.index);
    assert_eq!(all.executions.iter().map(output_text).collect::<Vec<_>>(), ["x", "a.b"]);
    host.shutdown().await;
}

/// Proves: S3
#[tokio::test]
async fn one_server_is_started_from_its_command_and_its_tools_keep_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("with ${blank}");
    let program = fixture_program().display().to_string();
    let args = ["--journal", journal.to_str().unwrap()];
    let server =
        SingleServer::connect(&program, &args, &Environment::from_process()).await.unwrap();
    let all = read_response(server.clone(), call_json("echo", &json!({"message": "é"}))).await;
    assert_eq!(output_text(&all.executions[0]), "é");
    assert_eq!(all.executions[0].tool, "echo");
    let journal = Journal::read(&journal);
    let methods = journal.methods();
    assert!(methods.contains(&"initialize") && methods.contains(&"tools/call"), "{methods:?}");
    server.host().shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_named_by_its_command() {
    let environment = Environment::from_process();
    let error = SingleServer::connect("./no-such-server", &[], &environment).await.unwrap_err();
    assert_eq!(error.to_string(), "server `./no-such-server` did not start");
}

/// Proves: S4
#[tokio::test]
async fn a_server_killed_in_a_call_costs_that_call_and_the_chat_goes_on() {
    let host = start_host([fixture("frail").switch("--crash-signal"), fixture("well")]).await;
    let calls =
        [call_json("frail.pid", &json!({})), call_json("well.echo", &json!({"message": "x"}))];
    let all = read_response(host.clone(), format!("First\n{}\nLast", calls.join("\n"))).await;
    assert!(all.visible_text().starts_with("First") && all.visible_text().ends_with("Last"));
    let execution_of =
        |tool: &str| all.executions.iter().find(|execution| execution.tool == tool).unwrap();
    let error = execution_of("frail.pid").outcome.as_ref().unwrap_err();
    let in_the_call =
        matches!(&**error, ToolError::Host(CallError::Unavailable { may_have_run: true, .. }));
    assert!(in_the_call, "{error}");
    assert!(error.to_string().contains("server `frail` is unavailable"), "{error}");
    assert_eq!(output_text(execution_of("well.echo")), "x");
    let after = read_response(host.clone(), call_json("well.echo", &json!({"message": "y"}))).await;
    assert_eq!(output_text(&after.executions[0]), "y");
    host.shutdown().await;
}

/// Proves: S18, S43
#[tokio::test]
async fn calls_of_one_server_run_beside_each_other_and_are_timed() {
    let host = start_host([fixture("fx")]).await;
    let start = Instant::now();
    let calls = [1_000, 1_000].map(|ms| call_json("fx.sleep", &json!({"ms": ms}))).join("\n");
    let all = read_response(host.clone(), calls).await;
    let took = start.elapsed();
    assert_eq!(all.executions.len(), 2);
    for execution in &all.executions {
        assert!(execution.elapsed >= Duration::from_secs(1), "{:?}", execution.elapsed);
    }
    // Sequential calls would take two seconds; the tests with a paused clock are more exact.
    assert!(took < Duration::from_millis(1_900), "{took:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_reach_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let host = start_host([fixture("fx").journal(&journal)]).await;
    let all = read_response(host.clone(), call_json("fx.add", &json!({"a": 1}))).await;
    assert!(matches!(
        &**all.executions[0].outcome.as_ref().unwrap_err(),
        ToolError::InvalidArguments { violations, .. } if violations.len() == 1
    ));
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    host.shutdown().await;
}

/// Runs the calls of one response, in the text and as native calls.
async fn run_in_both_ways(host: &Host, arguments: &[&str]) {
    let text_call = |arguments: &&str| format!(r#"{{"tool": "fx.add", "params": {arguments}}}"#);
    let text = arguments.iter().map(text_call).collect::<Vec<_>>().join("\n");
    read_response(host.clone(), text).await;
    let calls = arguments.iter().map(|arguments| ("fx.add", *arguments));
    let model = ScriptedProvider::new([
        Ok(Response::from_tool_calls(calls)),
        Ok(Response::from_text("Done.")),
    ]);
    let settings = AgentSettings::default();
    let result = Agent::new(Arc::new(model), Arc::new(host.clone()), settings).run("Add.").await;
    assert!(result.is_success(), "{result:?}");
}

#[tokio::test]
async fn the_numbers_of_a_model_reach_the_server_byte_for_byte_in_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let host = start_host([fixture("fx").journal(&journal)]).await;
    let numbers = r#"{"a":123456789012345678901234567890,"b":1.50}"#;
    run_in_both_ways(&host, &[numbers, r#"{"a":1,"b":1e400}"#]).await;
    let journal = Journal::read(&journal);
    let is_call = |entry: &&JournalEntry| entry.method() == Some("tools/call");
    let calls: Vec<_> = journal.entries.iter().filter(is_call).collect();
    // The host sends no number that it cannot check.
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in calls {
        assert!(call.raw.contains(&format!(r#""arguments":{numbers}"#)), "{}", call.raw);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn dropping_the_answer_cancels_its_calls_at_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let host = start_host([fixture("fx").journal(&journal)]).await;
    let chat = Chat::new(Arc::new(host.clone()), ChatSettings::default()).unwrap();
    let call = call_json("fx.sleep", &json!({"ms": 60_000}));
    let response = chat.start_run().read_response(response_stream([call])).unwrap();
    let timeout = Duration::from_secs(20);
    Journal::wait_for(&journal, timeout, |journal| journal.count("tools/call") == 1).await;
    drop(response);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::wait_for(&journal, timeout, cancelled).await;
    host.shutdown().await;
}

/// Calls a tool of each script and returns the results of the run.
async fn run_script(
    host: &Host,
    settings: AgentSettings,
    calls: &[(&str, &str)],
    sink: impl FnMut(AgentEvent) + Send,
) -> RunResult {
    let replies = calls.iter().map(|call| Ok(Response::from_tool_calls([*call])));
    let replies = replies.chain([Ok(Response::from_text("Done."))]);
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model, Arc::new(host.clone()), settings);
    agent.run_streaming("Go.", sink).await
}

#[tokio::test]
async fn a_host_does_not_retry_a_call_of_a_model() {
    let server = fixture("a").config_key("retry", json!({"max": 3, "initialDelay": 0.01}));
    let busy = Fault::status(503).on_rpc_method("tools/call").first_n(1);
    let remote = RemoteServer::for_fixture(server).fault(busy).start().await;
    let config = json!({"servers": {"a": remote.config_entry()}});
    let environment = Environment::from_process();
    let config = Config::from_value(&config, "mcp.json", Path::new("/"), &environment).unwrap();
    let host = Host::start(config).await.unwrap();
    let calls = [("a.echo", r#"{"message": "x"}"#); 2];
    let report = run_script(&host, AgentSettings::default(), &calls, |_| {}).await;
    let outcomes: Vec<_> = report.tool_calls.iter().map(|call| call.outcome.success).collect();
    assert_eq!(outcomes, [false, true], "{report:?}");
    let requests = remote.requests();
    let requests = requests.iter().filter(|request| request.rpc_method() == Some("tools/call"));
    assert_eq!(requests.count(), 2);
    host.shutdown().await;
}

/// Proves: G-b3
#[tokio::test]
async fn the_progress_of_a_call_reaches_the_application_while_the_call_runs() {
    let host = start_host([fixture("fx").with("--progress", 3).with("--progress-delay", 20)]).await;
    let mut events = Vec::new();
    let calls = [("fx.echo", r#"{"message": "x"}"#)];
    let report = run_script(&host, AgentSettings::default(), &calls, |event| match event {
        AgentEvent::ToolCallStarted { id, .. } => events.push(format!("start {id}")),
        AgentEvent::ToolCallProgress { id, tool, progress } => {
            events.push(format!("{id} {tool} {}", progress.progress));
        }
        AgentEvent::ToolCallFinished(record) => events.push(format!("end {}", record.id)),
        _ => {}
    })
    .await;
    let id = &report.tool_calls[0].id;
    let step = |at| format!("{id} fx.echo {at}");
    let expected = [format!("start {id}"), step(1), step(2), step(3), format!("end {id}")];
    assert_eq!(events, expected);
    host.shutdown().await;
}

/// Proves: G19
#[tokio::test]
async fn an_agent_limits_the_time_of_a_call() {
    let host = start_host([fixture("fx").switch("--hang-calls")]).await;
    let mut settings = AgentSettings::default();
    settings.calls.timeout = Some(Duration::from_millis(200));
    let start = Instant::now();
    let calls = [("fx.echo", r#"{"message": "x"}"#)];
    let report = run_script(&host, settings, &calls, |_| {}).await;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(report.tool_calls[0].result_text.contains("0.2 s"), "{report:?}");
    host.shutdown().await;
}

/// Proves: G-b6
#[tokio::test]
async fn a_tool_that_appears_during_a_run_is_offered_in_the_next_request() {
    let host = start_host([fixture("fx").switch("--list-changed")]).await;
    let before = host.list_tools();
    assert!(before.iter().all(|tool| tool.definition.is_some()));
    let settings = AgentSettings::default();
    let replies = [
        Ok(Response::from_tool_calls([("fx.grow", "{}")])),
        Ok(Response::from_tool_calls([("fx.grow", "{}")])),
        Ok(Response::from_text("Done.")),
    ];
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model.clone(), Arc::new(host.clone()), settings);
    let report = agent.run("Grow.").await;
    assert!(report.is_success(), "{report:?}");
    let offered: Vec<usize> =
        model.requests().iter().map(|request| request.tools.iter().count()).collect();
    let count = before.len();
    assert_eq!(offered, [count, count + 1, count + 2]);
    host.shutdown().await;
}

#[tokio::test]
async fn each_runner_lists_the_tool_that_a_call_added_after_the_wait_for_the_refresh() {
    let environment = Environment::from_process();
    let program = fixture_program().display().to_string();
    let single = SingleServer::connect(&program, &["--list-changed"], &environment).await.unwrap();
    let host = start_host([fixture("fx").switch("--list-changed")]).await;
    let runners: [(&dyn ToolRunner, &str); 3] =
        [(&host, "fx.grow"), (&ResourceTools::new(host.clone()), "fx.grow"), (&single, "grow")];
    for (runner, grow) in runners {
        let before = runner.list_tools().len();
        let arguments = RawValue::from_string("{}".to_owned()).unwrap();
        runner.call_tool(grow, arguments, ToolCallOptions::default()).await.unwrap();
        runner.finish_refresh().await;
        assert_eq!(runner.list_tools().len(), before + 1, "{grow}");
    }
    host.shutdown().await;
    single.host().shutdown().await;
}

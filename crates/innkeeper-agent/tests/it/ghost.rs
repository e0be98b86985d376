//! One-shot runs with real servers and a model over HTTP.

mod document;
mod options;
#[cfg(target_os = "linux")]
mod repeated;

use std::path::Path;
use std::time::Duration;

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::ghost::{
    GhostConfig, GhostResult, GhostServers, mcp_ghost, mcp_ghost_streaming,
};
use innkeeper_agent::tool_search::ToolSearchSettings;
use innkeeper_host::config::Secret;
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{
    Fixture, Journal, ProcessTag, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json, wait_gone,
};
use serde_json::{Value, json};
use tokio::time::Instant;

fn config(servers: Value, llm: &ScriptedLlm) -> GhostConfig {
    let environment = Environment::from_process();
    let servers = GhostServers::Config(servers);
    let mut config = GhostConfig::new(servers, "Be brief.", "Anthropic", "Add.", environment);
    config.model.key = Some(Secret::new("k"));
    config.model.base_url = Some(llm.origin().to_owned());
    config
}

fn to_json(report: &GhostResult) -> Value {
    serde_json::to_value(report).unwrap()
}

/// Runs a script with one server.
async fn run(server: Fixture, replies: impl IntoIterator<Item = ScriptedReply>) -> Value {
    run_with(server, replies, |_| {}).await.0
}

async fn run_with(
    server: Fixture,
    replies: impl IntoIterator<Item = ScriptedReply>,
    change: impl FnOnce(&mut GhostConfig),
) -> (Value, ScriptedLlm) {
    let llm = ScriptedLlm::start(Script::new(replies)).await;
    let mut config = config(mcp_json([server]), &llm);
    change(&mut config);
    (to_json(&mcp_ghost(config).await), llm)
}

fn add(a: i32, b: i32) -> ScriptedReply {
    ScriptedReply::text(format!("Now {a} and {b}."))
        .with_tool_call("fx.add", json!({"a": a, "b": b}))
        .with_usage(10, 2)
}

/// Proves: G7, G26, G29
#[tokio::test]
async fn a_chain_of_five_calls_has_every_field_of_the_result() {
    // Each call needs the sum of the call before it.
    let terms: Vec<i32> = (0..5).map(|at| 1 << at).collect();
    let done = ScriptedReply::text("Done.").with_usage(10, 2);
    let replies = terms.iter().map(|term| add(*term, *term)).chain([done]);
    let (result, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    assert_eq!((&result["success"], &result["final_result"]), (&json!(true), &json!("Done.")));
    assert_eq!(
        result["summary"],
        "The model finished after 6 responses; 5 of 5 tool calls succeeded. It called `fx.add` 5 times."
    );
    let chain = result["tool_chain"].as_array().unwrap();
    let requests = llm.requests();
    let mut ids: Vec<&Value> = Vec::new();
    for ((at, term), call) in terms.iter().enumerate().zip(chain) {
        assert_eq!((&call["iteration"], &call["tool_name"]), (&json!(at + 1), &json!("fx.add")));
        assert_eq!(call["arguments"], json!({"a": term, "b": term}));
        assert_eq!(call["result"]["structuredContent"]["sum"], json!(term * 2));
        assert_eq!(call["reasoning"], json!(format!("Now {term} and {term}.")));
        assert_eq!((&call["error"], &call["retry_attempt"]), (&Value::Null, &json!(0)));
        assert_eq!(call["visible_results"], json!(ids));
        ids.push(&call["tool_call_id"]);
        let results = requests[at + 1].body["messages"].as_array().unwrap().last().unwrap();
        assert!(results.to_string().contains(&(term * 2).to_string()), "{results}");
    }
    let metadata = &result["execution_metadata"];
    for (key, value) in [
        ("total_iterations", json!(6)),
        ("servers_connected", json!(1)),
        ("backtrack_count", json!(0)),
        ("success_rate", json!(100.0)),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert_eq!(metadata["token_usage"]["total_tokens"], json!(72));
    assert!(metadata["tools_discovered"].as_u64().is_some_and(|tools| tools > 1));
    assert_eq!((chain.len(), &result["errors"]), (5, &json!([])));
}

/// Proves: G49, G-b7, G-b15
#[tokio::test]
async fn each_call_names_the_results_that_the_model_saw_and_each_iteration_its_tokens() {
    let both = ScriptedReply::text("Both.")
        .with_tool_call("fx.add", json!({"a": 1, "b": 2}))
        .with_tool_call("fx.echo", json!({"message": "hi"}))
        .with_usage(20, 3);
    let without_usage = ScriptedReply::tool_call("fx.add", json!({"a": 3, "b": 4})).without_usage();
    let done = ScriptedReply::text("Done.").with_usage(40, 4);
    let result = run(fixture("fx"), [both, without_usage, done]).await;
    let chain = result["tool_chain"].as_array().unwrap();
    let id = |at: usize| chain[at]["tool_call_id"].clone();
    let visible: Vec<_> = chain.iter().map(|call| call["visible_results"].clone()).collect();
    assert_eq!(visible, [json!([]), json!([]), json!([id(0), id(1)])]);
    let metadata = &result["execution_metadata"];
    let usage = |prompt: u64, completion: u64, available: bool| {
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion, "available": available,
        })
    };
    let expected = [usage(20, 3, true), usage(0, 0, false), usage(40, 4, true)];
    assert_eq!(metadata["token_usage_by_iteration"], json!(expected));
    let time = |at: usize| chain[at]["execution_time"].as_f64().unwrap();
    let (short, long) = (time(0).min(time(2)), time(0).max(time(2)));
    assert!(short > 0.0);
    assert_eq!(
        metadata["tool_times"],
        json!({
            "fx.add": {"calls": 2, "p50": short, "p95": long},
            "fx.echo": {"calls": 1, "p50": time(1), "p95": time(1)},
        })
    );
}

/// Proves: G-b3, G-b13
#[tokio::test]
async fn a_streamed_run_passes_each_step_and_the_progress_of_calls_to_the_function() {
    let call = ScriptedReply::tool_call("fx.echo", json!({"message": "hi"}));
    let llm = ScriptedLlm::start(Script::new([call, ScriptedReply::text("Done.")])).await;
    let server = fixture("fx").with("--progress", 2);
    let mut steps = Vec::new();
    let sink = |event| match event {
        AgentEvent::ToolCallStarted { tool, .. } => steps.push(format!("start {tool}")),
        AgentEvent::ToolCallProgress { progress, .. } => {
            steps.push(format!("progress {}", progress.progress));
        }
        AgentEvent::ToolCallFinished(call) => steps.push(format!("end {}", call.outcome.success)),
        AgentEvent::Text(text) => steps.push(text),
        _ => {}
    };
    let result = to_json(&mcp_ghost_streaming(config(mcp_json([server]), &llm), sink).await);
    assert_eq!(result["final_result"], "Done.");
    let progress = steps.iter().filter(|step| step.starts_with("progress")).count();
    assert!(progress > 0, "{steps:?}");
    steps.retain(|step| !step.starts_with("progress"));
    assert_eq!(steps.concat(), "start fx.echoend trueDone.");
}

/// Proves: G13, G27
#[tokio::test]
async fn the_history_has_all_messages_and_each_result_answers_a_call() {
    let replies = [add(1, 2), add(3, 4), ScriptedReply::text("Done.")];
    let (result, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    let history = result["conversation_history"].as_array().unwrap();
    let roles: Vec<_> = history.iter().map(|message| message["role"].as_str().unwrap()).collect();
    let expected = ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"];
    assert_eq!(roles, expected);
    assert_eq!(history[0]["content"], "Be brief.");
    for at in [2, 4] {
        let call = &history[at]["tool_calls"][0];
        assert_eq!(call["id"], history[at + 1]["tool_call_id"]);
        assert!(call["arguments"].is_object(), "{call}");
    }
    let requests = llm.requests();
    let body = &requests[0].body;
    assert!(body["system"].to_string().contains("Be brief."), "{body}");
    let tools = body["tools"].to_string();
    assert!(tools.contains("fx_add") && tools.contains("Adds two numbers"), "{tools}");
    assert!(requests[2].text.contains("Be brief.") && requests[2].text.contains("Now 1 and 2."));
}

/// Proves: G9
#[tokio::test]
async fn each_request_has_the_results_of_all_earlier_calls() {
    let say =
        |at: usize| ScriptedReply::tool_call("fx.big", json!({"bytes": 10 + at})).with_usage(10, 2);
    let replies = (0..4).map(say).chain([ScriptedReply::text("Done.")]);
    let (result, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    assert_eq!(result["success"], json!(true), "{result}");
    let lengths = |text: &str| -> Vec<usize> {
        let runs = text.split(|letter| letter != 'x').map(str::len);
        runs.filter(|length| *length >= 10).collect()
    };
    let seen: Vec<_> = llm.requests().iter().map(|request| lengths(&request.text)).collect();
    let expected: Vec<Vec<usize>> = (0..5).map(|at| (10..10 + at).collect()).collect();
    assert_eq!(seen, expected);
}

/// Proves: G22
#[tokio::test]
async fn without_memory_a_request_has_the_latest_results_only_and_the_history_has_all() {
    let replies = [add(1, 2), add(3, 4), ScriptedReply::text("Done.")];
    let (result, llm) = run_with(fixture("fx"), replies, |config| {
        config.settings.requests.conversation_memory = false;
    })
    .await;
    let last = &llm.requests()[2].text;
    assert!(last.contains("Add.") && last.contains("Now 3 and 4."), "{last}");
    assert!(!last.contains("Now 1 and 2."), "{last}");
    assert_eq!(result["conversation_history"].as_array().unwrap().len(), 7);
}

/// Proves: G14, G15, G59
#[tokio::test]
async fn what_prevents_the_run_is_told_in_the_result() {
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("No tools.")])).await;
    let servers = || mcp_json([fixture("fx")]);
    let mut unknown = config(servers(), &llm);
    unknown.model.provider = "nobody".to_owned();
    let environment = Environment::default();
    let mut keyless = GhostConfig { environment, ..config(servers(), &llm) };
    keyless.model.key = None;
    keyless.model.base_url = None;
    let invalid = config(json!({"mcpServers": 3}), &llm);
    for (config, part) in [
        (unknown, "unknown provider `nobody`"),
        (keyless, "ANTHROPIC_API_KEY"),
        (invalid, "server_config"),
    ] {
        let result = to_json(&mcp_ghost(config).await);
        assert_eq!((&result["success"], &result["tool_chain"]), (&json!(false), &json!([])));
        let metadata = &result["execution_metadata"];
        assert_eq!(metadata["total_iterations"], json!(0));
        assert_eq!(metadata["success_rate"], json!(0.0), "the model was not reached");
        let error = result["errors"][0]["error"].as_str().unwrap();
        assert!(error.contains(part) && error == result["error"], "{error}");
    }
    let result = to_json(&mcp_ghost(config(json!({"mcpServers": {}}), &llm)).await);
    assert_eq!(result["final_result"], "No tools.");
    assert_eq!(result["execution_metadata"]["servers_connected"], json!(0));
    assert_eq!(result["execution_metadata"]["success_rate"], json!(100.0));
    assert_eq!(result["execution_metadata"]["tool_times"], json!({}));
}

/// Proves: G12
#[tokio::test]
async fn servers_come_from_a_value_or_a_file_under_either_key() {
    let dir = tempfile::tempdir().unwrap();
    for key in ["mcpServers", "servers"] {
        let value = json!({ key: {"fx": fixture("fx").config_entry()} });
        let file = dir.path().join(format!("{key}.json"));
        std::fs::write(&file, value.to_string()).unwrap();
        for servers in [GhostServers::Config(value), GhostServers::File(file)] {
            let replies = [add(2, 3), ScriptedReply::text("Five.")];
            let llm = ScriptedLlm::start(Script::new(replies)).await;
            let config = GhostConfig { servers, ..config(Value::Null, &llm) };
            let result = to_json(&mcp_ghost(config).await);
            assert_eq!(
                (&result["success"], &result["errors"]),
                (&json!(true), &json!([])),
                "{key}"
            );
            assert_eq!(result["tool_chain"][0]["result"]["structuredContent"]["sum"], json!(5));
        }
    }
}

/// Proves: G59
#[tokio::test]
async fn a_server_that_does_not_start_is_told_and_the_others_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mcp.json");
    let mut servers = mcp_json([fixture("fx")]);
    let list = if servers.get("servers").is_some() { "servers" } else { "mcpServers" };
    servers[list]["broken"] = json!({"command": "./no-such-server", "required": true});
    std::fs::write(&file, servers.to_string()).unwrap();
    let llm = ScriptedLlm::start(Script::new([add(2, 3), ScriptedReply::text("Five.")])).await;
    let config = GhostConfig { servers: GhostServers::File(file), ..config(Value::Null, &llm) };
    let result = to_json(&mcp_ghost(config).await);
    assert_eq!(result["success"], json!(true), "{result}");
    let error = result["errors"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("server `broken` is not available: "), "{error}");
    assert_eq!(result["execution_metadata"]["servers_connected"], json!(1));
}

/// Proves: G18, G19, G20
#[test]
fn a_run_has_the_namespace_the_timeout_and_the_limit_of_the_document_by_default() {
    let servers = GhostServers::Config(json!({}));
    let config = GhostConfig::new(servers, "Be brief.", "openai", "Add.", Environment::default());
    assert_eq!(config.namespace, "mcp_ghost");
    assert_eq!(config.settings.calls.timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.settings.limits.max_iterations, 10);
}

/// Proves: G21, G22
#[tokio::test]
async fn by_default_a_run_goes_on_after_a_failure_and_keeps_the_whole_conversation() {
    let fail = ScriptedReply::text("I fail.").with_tool_call("fx.fail", json!({}));
    let replies = [fail, add(1, 2), ScriptedReply::text("Three.")];
    let (result, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    assert_eq!(result["final_result"], "Three.", "{result}");
    let last = &llm.requests()[2].text;
    assert!(last.contains("I fail.") && last.contains("Now 1 and 2."), "{last}");
}

/// Proves: G18
#[tokio::test]
async fn the_model_sees_a_namespace_that_is_not_the_default_and_the_result_does_not() {
    for (namespace, shown) in [("mcp_ghost", "fx_add"), ("db", "db_fx_add")] {
        let call = ScriptedReply::tool_call(shown, json!({"a": 1, "b": 2}));
        let fail = ScriptedReply::tool_call(shown.replace("add", "fail"), json!({}));
        let replies = [call, fail, ScriptedReply::text("Three.")];
        let (result, llm) = run_with(fixture("fx"), replies, |config| {
            config.namespace = namespace.to_owned();
        })
        .await;
        assert_eq!(result["errors"][0]["tool_name"], "fx.fail");
        let tools = llm.requests()[0].body["tools"].clone();
        let names: Vec<_> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert!(names.contains(&json!(shown)), "{names:?}");
        assert_eq!(result["tool_chain"][0]["tool_name"], "fx.add", "{result}");
        assert_eq!(result["tool_chain"][0]["success"], json!(true));
    }
}

#[tokio::test]
async fn a_tool_that_a_call_added_is_offered_in_the_next_request_in_each_namespace() {
    for (namespace, shown) in [("mcp_ghost", "fx_grow"), ("db", "db_fx_grow")] {
        let replies = [ScriptedReply::tool_call(shown, json!({})), ScriptedReply::text("Grown.")];
        let server = fixture("fx").switch("--list-changed");
        let (_, llm) = run_with(server, replies, |config| {
            config.namespace = namespace.to_owned();
        })
        .await;
        let requests = llm.requests();
        let offered = |at: usize| requests[at].body["tools"].as_array().unwrap().len();
        assert_eq!(offered(1), offered(0) + 1);
    }
}

#[tokio::test]
async fn a_tool_pinned_by_its_public_name_is_offered_beside_the_search_in_each_namespace() {
    for (namespace, shown) in [("mcp_ghost", "fx_add"), ("db", "db_fx_add")] {
        let replies = [ScriptedReply::text("Three.")];
        let (_, llm) = run_with(fixture("fx"), replies, |config| {
            config.namespace = namespace.to_owned();
            config.settings.tool_search = ToolSearchSettings {
                max_listing_share: Some(0.0),
                pinned_tools: vec!["fx.add".to_owned()],
            };
        })
        .await;
        let tools = llm.requests()[0].body["tools"].clone();
        let names: Vec<_> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["search_tools", "describe_tools", shown]);
    }
}

/// Proves: G46, G72
#[tokio::test]
async fn a_call_that_reports_progress_for_ever_ends_at_its_timeout_and_the_run_goes_on() {
    let server = fixture("fx").with("--progress", 1000).with("--progress-delay", 50);
    let replies = [add(1, 2), add(3, 4), ScriptedReply::text("It is slow.")];
    let start = Instant::now();
    let (result, _llm) = run_with(server, replies, |config| {
        config.settings.calls.timeout = Some(Duration::from_secs(1));
    })
    .await;
    // Two calls of a second each, beside the start and the stop of the server.
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    assert_eq!(result["final_result"], "It is slow.");
    let chain = result["tool_chain"].as_array().unwrap();
    for call in chain {
        assert_eq!(call["success"], json!(false), "{call}");
        // The first timeout does not make the server unavailable, so the second call runs as long.
        assert!((1.0..2.0).contains(&call["execution_time"].as_f64().unwrap()), "{call}");
    }
    assert_eq!((chain.len(), &chain[1]["retry_attempt"]), (2, &json!(1)));
    assert_eq!(result["success"], json!(false), "every call failed");
}

/// Proves: G20, G54
#[tokio::test]
async fn one_iteration_too_many_is_a_partial_result_and_the_last_permitted_one_a_success() {
    for (limit, success) in [(3, true), (2, false)] {
        let replies = [add(1, 2), add(3, 4), ScriptedReply::text("Done.")];
        let (result, _llm) = run_with(fixture("fx"), replies, |config| {
            config.settings.limits.max_iterations = limit;
        })
        .await;
        assert_eq!(result["success"], json!(success), "{result}");
        assert_eq!(result["tool_chain"].as_array().unwrap().len(), 2);
        let errors = result["errors"].as_array().unwrap();
        let told = errors.iter().any(|error| {
            error["error"].as_str().is_some_and(|text| text.contains("iteration limit"))
        });
        assert_eq!(told, !success, "{errors:?}");
    }
}

#[tokio::test]
async fn an_invalid_server_of_a_value_is_told_and_the_others_are_used() {
    let llm = ScriptedLlm::start(Script::new([add(2, 3), ScriptedReply::text("Five.")])).await;
    let mut servers = mcp_json([fixture("fx")]);
    let list = if servers.get("servers").is_some() { "servers" } else { "mcpServers" };
    servers[list]["wrong"] = json!({"command": 3});
    let result = to_json(&mcp_ghost(config(servers, &llm)).await);
    assert_eq!(result["success"], json!(true), "{result}");
    let error = result["errors"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("server `wrong` is not available: "), "{error}");
}

/// Attack: secrets | a server writes a value of its environment to stderr and exits | the result of
/// the run has a mask in its place | Secrets do not print
#[tokio::test]
async fn the_reason_of_a_server_that_does_not_start_has_no_value_of_its_environment() {
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("No tools.")])).await;
    let script = "echo invalid token $TOKEN >&2; exit 3";
    let server = json!({
        "command": "sh", "args": ["-c", script], "env": {"TOKEN": "tok-4711-secret"},
    });
    let config = config(json!({"mcpServers": {"x": server}}), &llm);
    assert!(!format!("{config:?}").contains("tok-4711"));
    let result = to_json(&mcp_ghost(config).await).to_string();
    assert!(result.contains("invalid token") && !result.contains("tok-4711"), "{result}");
}

/// Attack: secrets | a server answers the first requests with an error that has a value of its
/// environment | the result of the run has a mask in its place | Secrets do not print
#[tokio::test]
async fn the_error_of_a_server_that_refuses_to_start_has_no_value_of_its_environment() {
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("No tools.")])).await;
    let script = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
        error="{\"code\":-32000,\"message\":\"invalid token $TOKEN\"}"
        printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$error"
    done"#;
    let server = json!({
        "command": "sh", "args": ["-c", script], "env": {"TOKEN": "tok-4711-secret"},
    });
    let config = config(json!({"mcpServers": {"x": server}}), &llm);
    let result = to_json(&mcp_ghost(config).await).to_string();
    assert!(result.contains("invalid token") && !result.contains("tok-4711"), "{result}");
}

/// Proves: G60
#[tokio::test]
async fn a_run_leaves_no_process_when_it_succeeds_and_when_it_fails() {
    let rejected = ScriptedReply::status(401).with_error_message("who");
    for (last, success) in [(ScriptedReply::text("Three."), true), (rejected, false)] {
        let tag = ProcessTag::new();
        let server = fixture("fx").process_tag(&tag);
        let result = run(server, [add(1, 2), last]).await;
        assert_eq!(result["success"], json!(success), "{result}");
        assert_eq!(result["tool_chain"][0]["success"], json!(true), "the server has run");
        wait_gone(&tag, Duration::from_secs(1)).unwrap();
    }
}

/// Proves: G60
#[tokio::test]
async fn a_dropped_run_leaves_no_process() {
    for streaming in [false, true] {
        drop_run(streaming).await;
    }
}

/// Drops a run during a call, and waits for the end of its server.
async fn drop_run(streaming: bool) {
    let llm = ScriptedLlm::start(Script::new([add(1, 2)])).await;
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let server = fixture("fx").switch("--hang-calls").journal(&journal);
    let config = config(mcp_json([server]), &llm);
    let run = async {
        match streaming {
            true => mcp_ghost_streaming(config, |_| {}).await,
            false => mcp_ghost(config).await,
        }
    };
    let called = async {
        while !journal.exists() || Journal::read(&journal).count("tools/call") == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = run => panic!("ended: {result:?}"),
        () = called => {}
    }
    let pids = Journal::read(&journal).pids();
    assert!(!pids.is_empty());
    let gone = async {
        while pids.iter().any(|pid| Path::new("/proc").join(pid.to_string()).exists()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the server is gone");
}

/// Proves: G29, G42
#[tokio::test]
async fn the_metadata_has_exact_counts_and_the_real_duration() {
    let started_at = Instant::now();
    let fail = ScriptedReply::tool_call("fx.fail", json!({}));
    let replies = [fail, add(1, 2), ScriptedReply::text("Three.")];
    let result = run(fixture("fx").with("--slow", 100), replies).await;
    let metadata = &result["execution_metadata"];
    assert_eq!(metadata["success_rate"], json!(50.0), "{result}");
    assert_eq!(
        (&metadata["backtrack_count"], &metadata["total_iterations"]),
        (&json!(1), &json!(3))
    );
    let seconds = metadata["total_execution_time"].as_f64().unwrap();
    let all = started_at.elapsed().as_secs_f64();
    assert!((0.2..=all).contains(&seconds), "{seconds} of {all}");
    let environment = Environment::from_process();
    let servers = mcp_json([fixture("fx")]);
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment).unwrap();
    let host = Host::start(config).await.unwrap();
    assert_eq!(metadata["tools_discovered"], json!(host.catalog().tools().count()));
    host.shutdown().await;
    assert_eq!(result["errors"][0]["recovery_action"], "other_tool");
    assert_eq!(result["tool_chain"][1]["retry_attempt"], json!(1));
}

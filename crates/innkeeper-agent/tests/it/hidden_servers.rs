//! Servers that a conversation does not use, with real servers of a host.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::ToolRunner;
use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::safety::ToolBlocklist;
use innkeeper_agent::tool_search::{SearchableTools, ToolSearchSettings};
use innkeeper_agent::tools::{HiddenServers, ResourceTools, ToolCallOptions};
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{fixture, mcp_json};
use serde_json::json;
use serde_json::value::RawValue;

const REFUSAL: &str = "the user disabled the server `two` in this conversation";

async fn start_host() -> Host {
    let servers = mcp_json([fixture("one"), fixture("two")]);
    let environment = Environment::from_process();
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment).unwrap();
    Host::start(config).await.unwrap()
}

async fn call(runner: &impl ToolRunner, tool: &str, arguments: &str) -> Result<String, String> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let result = runner.call_tool(tool, arguments, ToolCallOptions::default()).await;
    result.map(|output| output.raw().get().to_owned()).map_err(|error| error.to_string())
}

/// Attack: model | a model calls a tool of a server that the user disabled | the call is refused in
/// words, and the server gets no call | Approval first
#[tokio::test]
async fn a_call_of_a_hidden_server_is_refused_in_words_and_its_tools_are_not_offered() {
    let (host, hidden) = (start_host().await, HiddenServers::default());
    let call = || Ok(Response::from_tool_calls([("two.pid", "{}")]));
    let done = || Ok(Response::from_text("Done."));
    let model = Arc::new(ScriptedProvider::new([call(), done(), call(), done()]));
    let tools = ResourceTools::new(host.clone()).with_hidden_servers(hidden.clone());
    let agent = Agent::new(model.clone(), Arc::new(tools), AgentSettings::default());
    assert!(hidden.hide("two") && !hidden.hide("two"));
    let refused = agent.run("Call.").await;
    assert_eq!(refused.tool_calls[0].result_text, format!("not run: {REFUSAL}"));
    assert!(!refused.tool_calls[0].outcome.was_run);
    assert!(hidden.show("two") && !hidden.show("two"));
    let called = agent.run("Call.").await;
    assert!(called.tool_calls[0].outcome.success, "{called:?}");
    let offers_two = |index: usize| {
        let tools = model.requests()[index].tools.clone();
        assert!(tools.get("one.pid").is_some());
        tools.get("two.pid").is_some()
    };
    assert_eq!([offers_two(0), offers_two(1), offers_two(2)], [false, false, true]);
    assert_eq!(host.metrics()["two"].request_count, 1, "the hidden server got a call");
    assert!(host.status()["two"].pid.is_some());
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_is_hidden_during_a_run_gets_no_call_of_the_older_list() {
    let (host, hidden) = (start_host().await, HiddenServers::default());
    let tools = ResourceTools::new(host.clone()).with_hidden_servers(hidden.clone());
    call(&tools, "two.pid", "{}").await.unwrap();
    hidden.hide("two");
    assert_eq!(call(&tools, "two.pid", "{}").await, Err(format!("not run: {REFUSAL}")));
    call(&tools, "one.pid", "{}").await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_resource_of_a_hidden_server_is_refused_and_a_shared_one_is_read_from_the_other_server() {
    let (host, hidden) = (start_host().await, HiddenServers::default());
    let tools = ResourceTools::new(host.clone()).with_hidden_servers(hidden.clone());
    let read =
        async |uri: &str| call(&tools, "read_resource", &json!({"uri": uri}).to_string()).await;
    assert!(read("fx://two/static").await.is_ok());
    assert!(read("fx://shared").await.unwrap_err().contains("fx://shared"), "two servers have it");
    hidden.hide("two");
    assert_eq!(read("fx://two/static").await, Err(format!("not run: {REFUSAL}")));
    assert!(read("fx://one/static").await.is_ok());
    assert!(read("fx://shared").await.is_ok());
    hidden.hide("one");
    assert!(read("fx://shared").await.unwrap_err().contains("the user disabled the server"));
    hidden.show_all();
    assert!(read("fx://two/static").await.is_ok() && hidden.names().is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn a_search_does_not_find_the_tools_of_a_hidden_server() {
    let (host, hidden) = (start_host().await, HiddenServers::default());
    let tools = ResourceTools::new(host.clone()).with_hidden_servers(hidden.clone());
    let settings =
        ToolSearchSettings { max_listing_share: Some(0.0), ..ToolSearchSettings::default() };
    let search = SearchableTools::new(Arc::new(tools), settings, ToolBlocklist::default(), 100_000);
    let find = async || {
        search.list_tools();
        call(&search, "search_tools", r#"{"query": "process id"}"#).await.unwrap()
    };
    assert!(find().await.contains("two.pid"));
    hidden.hide("two");
    let found = find().await;
    assert!(found.contains("one.pid") && !found.contains("two."), "{found}");
    host.shutdown().await;
}

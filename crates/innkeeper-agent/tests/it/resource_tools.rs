//! Resources of one server in the calls of another server's tools.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::tools::{READ_RESOURCE_TOOL, ResourceTools, ToolAnnotations, ToolRunner as _};
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::{Journal, fixture, mcp_json};
use serde_json::json;

/// Proves: G-b12
#[tokio::test]
async fn a_resource_to_which_a_result_links_is_read_from_its_server_for_another_server_s_tool() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    // Both servers list the resource, so that only the link says whose resource is meant.
    let link = json!({"type": "resource_link", "uri": "fx://shared", "name": "note"});
    let links = json!({"content": [link]}).to_string();
    let notes = fixture("notes").with("--call-result", &links);
    let servers = mcp_json([notes.journal(&journal), fixture("mail").journal(&journal)]);
    let environment = Environment::from_process();
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment).unwrap();
    let host = Host::start(config).await.unwrap();
    let call = |tool: &str, arguments: &str| Ok(Response::from_tool_calls([(tool, arguments)]));
    let read = r#"{"uri": "fx://shared"}"#;
    let model = ScriptedProvider::new([
        // No result has linked to the resource yet.
        call(READ_RESOURCE_TOOL, read),
        call("notes.echo", r#"{"message": "find"}"#),
        call(READ_RESOURCE_TOOL, read),
        call("mail.echo", r#"{"message": "notes: fx://shared, reading 1"}"#),
        Ok(Response::from_text("Sent.")),
    ]);
    let tools = Arc::new(ResourceTools::new(host.clone()));
    let offered = tools.list_tools().pop().unwrap();
    assert_eq!(offered.tool.name, READ_RESOURCE_TOOL);
    let expected =
        ToolAnnotations { read_only: true, idempotent: true, ..ToolAnnotations::default() };
    assert_eq!(offered.annotations, expected);
    let result = Agent::new(Arc::new(model), tools, AgentSettings::default()).run("Mail it.").await;
    assert!(result.is_success(), "{result:?}");
    let texts: Vec<_> = result.tool_calls.iter().map(|call| call.result_text.as_str()).collect();
    assert!(texts[0].contains("exists on several servers"), "{texts:?}");
    assert!(texts[2].contains("notes: fx://shared, reading 1"), "{texts:?}");
    assert!(result.tool_calls[3].outcome.success);
    host.shutdown().await;
    let journal = Journal::read(&journal);
    let reads = journal.for_server("notes");
    assert_eq!(reads.params("resources/read")[0]["uri"], "fx://shared");
    assert_eq!(reads.count("resources/read"), 1);
    assert_eq!(journal.for_server("mail").count("resources/read"), 0);
    let calls = journal.for_server("mail");
    assert_eq!(
        calls.params("tools/call")[0]["arguments"],
        json!({"message": "notes: fx://shared, reading 1"})
    );
}

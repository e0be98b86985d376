//! The headers of a remote server are secrets, wherever they are repeated.

use std::time::Duration;

use innkeeper_agent::ghost::{GhostConfig, GhostServers};
use innkeeper_agent::golden::{Outcome, mcp_ghost_recorded};
use innkeeper_host::Environment;
use innkeeper_host::config::Secret;
use innkeeper_testkit::{RemoteServer, Script, ScriptedLlm, ScriptedReply, fixture};
use serde_json::{Value, json};

use super::{KEY, WIRES, assert_no_trace, forms, output};

const BEARER: &str = "planted-bearer.Kq7~Vw4Zm";

/// Proves: G63
#[tokio::test]
async fn no_header_of_a_remote_server_is_in_a_recording_in_any_form() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("told.txt");
    let remote = RemoteServer::for_fixture(fixture("far")).start().await;
    for (at, form) in forms(BEARER).into_iter().enumerate() {
        let (provider, model, path) = WIRES[at % WIRES.len()];
        // The server tells by itself what it was called with, and repeats what the model tells.
        std::fs::write(&file, format!("called with {form}.")).unwrap();
        let replies = [
            ScriptedReply::text(format!("I send {form}."))
                .with_tool_call("far.read", json!({"path": file}))
                .with_tool_call("far.echo", json!({"message": format!("got {form}")})),
            ScriptedReply::text(format!("The server said {form}.")),
        ];
        let llm = ScriptedLlm::start(Script::new(replies).chunk_bytes(5)).await;
        let token = if at % 2 == 0 { BEARER } else { "${FAR_TOKEN}" };
        let mut entry = remote.config_entry();
        entry["headers"] = json!({"Authorization": format!("Bearer {token}")});
        let servers = GhostServers::Config(json!({"servers": {"far": entry}}));
        let environment = Environment::from_pairs([("FAR_TOKEN", BEARER)]);
        let mut config = GhostConfig::new(servers, "Be brief.", provider, "Ask far.", environment);
        config.model.key = Some(Secret::new(KEY));
        config.model.model = Some(model.to_owned());
        config.model.base_url = Some(format!("{}{path}", llm.origin()));
        config.settings.calls.timeout = Some(Duration::from_secs(20));
        let (result, golden) = mcp_ghost_recorded(config, "far").await;
        let golden = golden.unwrap_or_else(|error| panic!("{form}: {error:?}: {result:?}"));
        assert_no_trace(&golden, &[KEY, BEARER], &format!("{model}, form {at}"));
        let written: Value = serde_json::from_str(golden.input.server_config.get()).unwrap();
        let expected = if at % 2 == 0 { "[redacted:header:Authorization]" } else { token };
        let header = written["mcpServers"]["far"]["headers"]["Authorization"].as_str().unwrap();
        assert!(header.contains(expected), "{header}");
        for call in &golden.tool_calls {
            let Outcome::Result(result) = &call.outcome else { panic!("{call:?}") };
            assert!(result.get().contains("[redacted:header:Authorization"), "{form}: {result}");
        }
        let output = output(&golden);
        let last = output["final_result"].as_str().unwrap();
        assert!(last.contains("[redacted:header:Authorization"), "{form}: {last}");
    }
    let bearer = format!("Bearer {BEARER}");
    let requests = remote.requests();
    let calls = requests.iter().filter(|request| request.header("authorization") == Some(&bearer));
    assert!(calls.count() > 2 * forms(BEARER).len(), "{requests:#?}");
}

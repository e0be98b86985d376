//! Parameters of a run beyond the document: safety rules, keys of `.env`, telemetry and links.

use std::sync::{Arc, Mutex};

use innkeeper_agent::agent::CacheSettings;
use innkeeper_agent::safety::{
    ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver, ToolBlocklist,
};
use innkeeper_agent::tools::READ_RESOURCE_TOOL;
use innkeeper_agent::transport::{ModelRule, ModelSelector, PromptCondition};
use innkeeper_host::Telemetry;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

use super::*;

fn offered_names(llm: &ScriptedLlm, request: usize) -> Vec<String> {
    let tools = llm.requests()[request].body["tools"].clone();
    let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Approves the calls of one tool.
#[derive(Default)]
struct AddOnly(Mutex<Vec<String>>);

#[async_trait::async_trait]
impl Approver for AddOnly {
    async fn decide(&self, request: ApprovalRequest<'_>) -> ApprovalDecision {
        self.0.lock().unwrap().push(request.tool.to_owned());
        match request.tool {
            "fx.add" => ApprovalDecision::Approve,
            _ => ApprovalDecision::Deny("the user says no".to_owned()),
        }
    }
}

/// Attack: model | a model in a namespace of its own calls a tool that is blocked by its public name,
/// and a tool that the approver denies | neither call reaches the server | Approval first
#[tokio::test]
async fn blocked_and_denied_tools_of_a_run_are_named_by_their_public_names() {
    for (namespace, prefix) in [("mcp_ghost", ""), ("db", "db_")] {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal");
        let server = fixture("fx").journal(&journal);
        let call = |tool: &str, arguments| {
            ScriptedReply::tool_call(format!("{prefix}fx_{tool}"), arguments)
        };
        let replies = [
            call("fail", json!({})),
            call("echo", json!({"message": "hi"})),
            call("add", json!({"a": 1, "b": 2})),
            ScriptedReply::text("Three."),
        ];
        let approver = Arc::new(AddOnly::default());
        let (result, llm) = run_with(server, replies, |config| {
            config.namespace = namespace.to_owned();
            config.settings.blocklist = ToolBlocklist::new(["re:^fx.fail$"]).unwrap();
            config.settings.approval_policy = ApprovalPolicy::Ask;
            config.approver = Some(approver.clone());
        })
        .await;
        let names = offered_names(&llm, 0);
        assert!(names.contains(&format!("{prefix}fx_add")), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with("fail")), "{names:?}");
        let journal = Journal::read(&journal);
        assert_eq!(journal.params("tools/call").len(), 1, "{result:#}");
        assert_eq!(*approver.0.lock().unwrap(), ["fx.echo", "fx.add"]);
        let chain = result["tool_chain"].as_array().unwrap();
        assert!(
            chain.iter().any(|call| call["error"] == "not run: the user says no"),
            "{chain:#?}"
        );
        assert_eq!(result["success"], json!(true), "{result:#}");
    }
}

/// Attack: files | a `.env` of the working directory sets the address of a proxy and the model | only
/// the API key of the file is used | Secrets stay with their owner
#[tokio::test]
async fn the_file_dotenv_gives_the_api_key_of_the_provider_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let dotenv = "ANTHROPIC_API_KEY=from-file\nINNKEEPER_ANTHROPIC_MODEL=evil\n\
                  http_proxy=http://127.0.0.1:1\nHTTP_PROXY=http://127.0.0.1:1\nWORD=evil\n";
    std::fs::write(dir.path().join(".env"), dotenv).unwrap();
    for (own_key, expected) in [(None, "from-file"), (Some("own"), "own")] {
        let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("Hello.")])).await;
        let key = own_key.map(|key| ("ANTHROPIC_API_KEY", key));
        let environment = Environment::from_pairs(key).with_current_dir(dir.path());
        let script = "echo the word is ${WORD:-own} >&2; exit 3";
        let servers = json!({"mcpServers": {"x": {"command": "/bin/sh", "args": ["-c", script]}}});
        let mut config = GhostConfig { environment, ..config(servers, &llm) };
        config.model.key = None;
        let result = to_json(&mcp_ghost(config).await);
        assert_eq!(result["final_result"], "Hello.", "{result:#}");
        assert_eq!(llm.requests()[0].header("x-api-key"), Some(expected));
        assert_eq!(result["execution_metadata"]["model"], "claude-sonnet-5-5");
        let reason = result["errors"][0]["error"].as_str().unwrap();
        assert!(reason.contains("the word is own"), "{reason}");
    }
}

#[tokio::test]
async fn the_spans_of_the_run_its_requests_and_its_calls_go_to_the_telemetry_of_the_parameters() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = Telemetry::new().traces(&provider, TraceContextPropagator::new());
    let replies = [add(1, 2), ScriptedReply::text("Three.")];
    let change = |config: &mut GhostConfig| config.telemetry = telemetry;
    let (result, _llm) = run_with(fixture("fx"), replies, change).await;
    assert_eq!(result["success"], json!(true));
    let spans = exporter.get_finished_spans().unwrap();
    let run = spans.iter().find(|span| span.name.starts_with("invoke_agent")).unwrap();
    let children = spans.iter().filter(|span| span.parent_span_id == run.span_context.span_id());
    let mut names: Vec<_> =
        children.map(|span| span.name.split(' ').next().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["chat", "chat", "tools/call"]);
}

#[tokio::test]
async fn each_request_of_a_run_is_marked_for_the_cache_of_the_provider() {
    let replies = [add(1, 2), ScriptedReply::text("Three.")];
    let (_, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    let mark = json!({"type": "ephemeral"});
    for request in llm.requests() {
        assert_eq!(request.body["cache_control"], mark, "the last message");
        assert_eq!(request.body["system"][0]["cache_control"], mark, "the tools and the prompt");
    }
}

/// Proves: G-b2
#[tokio::test]
async fn the_first_rule_that_fits_the_prompt_chooses_the_model_of_the_run() {
    let done = || ScriptedReply::text("Done.");
    for (word, expected) in [("add", "model-for-sums"), ("subtract", "claude-sonnet-5-5")] {
        let (result, llm) = run_with(fixture("fx"), [done()], |config| {
            let rule = ModelRule {
                condition: PromptCondition {
                    any_word: vec![word.to_owned()],
                    ..PromptCondition::default()
                },
                model: ModelSelector {
                    provider: "openai-compatible".to_owned(),
                    model: Some("model-for-sums".to_owned()),
                    base_url: config.model.base_url.clone(),
                    ..ModelSelector::default()
                },
            };
            config.model_rules = vec![rule];
        })
        .await;
        assert_eq!(result["execution_metadata"]["model"], expected);
        assert_eq!(llm.requests()[0].body["model"], expected);
    }
}

/// Proves: G-b12
#[tokio::test]
async fn a_linked_resource_can_be_read_from_the_next_request_on() {
    let link = json!({"type": "resource_link", "uri": "fx://shared", "name": "note"});
    let links = json!({"content": [link]}).to_string();
    let replies = [
        ScriptedReply::tool_call("fx_echo", json!({"message": "find"})),
        ScriptedReply::tool_call(READ_RESOURCE_TOOL, json!({"uri": "fx://shared"})),
        ScriptedReply::text("Read."),
    ];
    let server = fixture("fx").with("--call-result", &links);
    let (result, llm) = run_with(server, replies, |_| {}).await;
    let offers = |request| offered_names(&llm, request).contains(&READ_RESOURCE_TOOL.to_owned());
    assert_eq!([offers(0), offers(1)], [false, true]);
    let read = &result["tool_chain"][1];
    assert_eq!(read["success"], json!(true), "{result:#}");
    assert!(read["result"].to_string().contains("fx://shared, reading 1"), "{read}");
    assert_eq!(
        json!(offered_names(&llm, 0).len()),
        result["execution_metadata"]["tools_discovered"]
    );
}

/// Proves: G-b5
#[tokio::test]
async fn the_cache_of_the_parameters_answers_a_repeated_call() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let tool = json!({
        "name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
    });
    let server = fixture("fx").with("--tools", json!([tool])).journal(&journal);
    let look = || ScriptedReply::tool_call("fx_look", json!({}));
    let replies = [look(), look(), ScriptedReply::text("Seen.")];
    let change =
        |config: &mut GhostConfig| config.settings.calls.cache = Some(CacheSettings::default());
    let (result, _llm) = run_with(server, replies, change).await;
    let cached = [0, 1].map(|at| result["tool_chain"][at]["cached"].clone());
    assert_eq!(cached, [json!(false), json!(true)]);
    assert_eq!(Journal::read(&journal).count("tools/call"), 1);
}

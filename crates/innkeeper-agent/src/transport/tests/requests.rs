//! The bytes of the requests.

use std::sync::{Arc, Mutex};

use innkeeper_toolcall::Tool;
use serde_json::json;
use serde_json::value::RawValue;

use super::bodies::{call_body, text_body};
use super::{KEY, endpoint, error_chain, model_name, parse_body, provider, request};
use crate::agent::{Agent, AgentSettings, RunResult};
use crate::provider::{Capabilities, InferenceServer, LlmProvider as _, ProviderApi};
use crate::run::{RunOutcome, ToolCallMode};
use crate::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use crate::transport::in_memory::{InMemoryClient, InMemoryResponse};
use crate::transport::{Endpoint, HttpProvider};

/// One tool, with the arguments of its calls.
#[derive(Default)]
struct ListTool(Mutex<Vec<String>>);

impl ToolRunner for ListTool {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let schema = json!({"type": "object", "properties": {"folder": {"type": "string"}}});
        let tool = Tool::new("files.list", "Lists a folder.", schema);
        vec![AvailableTool::new(tool, ToolAnnotations::default())]
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        self.0.lock().unwrap().push(arguments.get().to_owned());
        let result = json!({"content": [{"type": "text", "text": "a.txt"}]});
        let result = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(result, false)) })
    }
}

async fn run(api: ProviderApi, client: &Arc<InMemoryClient>) -> (RunResult, Arc<ListTool>) {
    let tools = Arc::new(ListTool::default());
    let provider = Arc::new(provider(api, client));
    let agent = Agent::new(provider, tools.clone(), AgentSettings::default());
    (agent.run("List the folder.").await, tools)
}

fn path_and_key_header(api: ProviderApi) -> (&'static str, &'static str) {
    match api {
        ProviderApi::OpenAiChat => ("/chat/completions", "authorization"),
        ProviderApi::OpenAiResponses => ("/responses", "authorization"),
        ProviderApi::Anthropic => ("/v1/messages", "x-api-key"),
        ProviderApi::GeminiGenerate => {
            ("/v1beta/models/gemini-3.8-flash:generateContent", "x-goog-api-key")
        }
        ProviderApi::GeminiInteractions => ("/v1beta/interactions", "x-goog-api-key"),
        ProviderApi::Ollama => ("/api/chat", "authorization"),
    }
}

/// Proves: G15
#[tokio::test]
async fn a_request_is_json_for_the_path_of_its_api_below_the_base_url() {
    for api in ProviderApi::ALL {
        let client = InMemoryClient::new([InMemoryResponse::json(&text_body(api, "Hello."))]);
        let response = provider(api, &client).generate(request("Hi")).await.unwrap();
        assert_eq!(response.message.visible_text(), "Hello.", "{api:?}");
        let [sent] = &client.requests()[..] else { panic!("{api:?}") };
        let (path, key_header) = path_and_key_header(api);
        assert_eq!(sent.method, "POST", "{api:?}");
        assert_eq!(sent.url, format!("https://user:password@models.test/base{path}"), "{api:?}");
        assert_eq!(sent.headers["Content-Type"], "application/json", "{api:?}");
        assert!(sent.headers[key_header].to_str().unwrap().ends_with(KEY), "{api:?}");
        let body = parse_body(&sent.body);
        assert!(body.to_string().contains("Hi"), "{api:?}: {body}");
        if !sent.url.contains("/models/") {
            assert_eq!(body["model"], model_name(api), "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_key_is_sent_in_one_sensitive_header_and_shown_to_nobody_else() {
    for api in ProviderApi::ALL {
        let error = json!({"error": {"message": "no"}});
        let client = InMemoryClient::new([InMemoryResponse::new(401, error.to_string())]);
        let (report, _) = run(api, &client).await;
        let sent = &client.requests()[0];
        let with_key = sent
            .headers
            .iter()
            .filter(|(_, value)| std::str::from_utf8(value.as_bytes()).unwrap().contains(KEY));
        let with_key: Vec<_> = with_key.collect();
        let [(_, value)] = with_key[..] else { panic!("{api:?}: {with_key:?}") };
        assert!(value.is_sensitive(), "{api:?}");
        let body = std::str::from_utf8(&sent.body).unwrap();
        assert!(!body.contains(KEY) && !sent.url.contains(KEY), "{api:?}");
        let RunOutcome::Failed(error) = &report.outcome else { panic!("{api:?}: {report:?}") };
        let debug = format!("{report:?} {:?} {sent:?}", endpoint(api));
        let output = format!("{} {debug}", error_chain(error));
        assert!(!output.contains(KEY) && !output.contains("password"), "{api:?}: {output}");
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_contain_is_left_out() {
    let client = InMemoryClient::new([InMemoryResponse::new(401, "{}")]);
    let key = Some(innkeeper_host::config::Secret::new("line\nbreak"));
    let endpoint = Endpoint { key, ..endpoint(ProviderApi::Anthropic) };
    let provider = HttpProvider::with_client(endpoint, client.clone());
    provider.generate(request("Hi")).await.unwrap_err();
    assert!(client.requests()[0].headers.get("x-api-key").is_none());
}

#[tokio::test]
async fn arguments_with_numbers_beyond_64_bits_are_kept_to_the_digit() {
    for api in ProviderApi::ALL {
        let arguments = r#"{"folder":"a","size":123456789012345678901234567890}"#;
        // Ollama alone accepts a dot in a name.
        let name = if api == ProviderApi::Ollama { "files.list" } else { "files_list" };
        let client = InMemoryClient::new([
            InMemoryResponse::new(200, call_body(api, name, arguments)),
            InMemoryResponse::json(&text_body(api, "Done.")),
        ]);
        let (report, tools) = run(api, &client).await;
        assert!(report.is_success(), "{api:?}: {report:?}");
        assert_eq!(*tools.0.lock().unwrap(), [arguments], "{api:?}");
        let second_request = &client.requests()[1];
        let text = std::str::from_utf8(&second_request.body).unwrap();
        let count = text.matches("123456789012345678901234567890").count();
        assert_eq!(count, 1, "{api:?}: {text}");
    }
}

/// Proves: P25
#[tokio::test]
async fn a_model_without_tools_is_asked_by_prompt_after_its_server_said_so() {
    let refusal = r#"{"error": "registry.ollama.ai/library/llama3.1:8b does not support tools"}"#;
    let call = r#"{"name": "files.list", "parameters": {"folder": "a"}}"#;
    let client = InMemoryClient::new([
        InMemoryResponse::new(400, refusal),
        InMemoryResponse::json(&text_body(ProviderApi::Ollama, call)),
        InMemoryResponse::json(&text_body(ProviderApi::Ollama, "Done.")),
    ]);
    let (report, tools) = run(ProviderApi::Ollama, &client).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Prompt));
    assert_eq!(tools.0.lock().unwrap().len(), 1);
    let bodies: Vec<_> = client.requests().iter().map(|sent| parse_body(&sent.body)).collect();
    assert!(bodies[0].get("tools").is_some());
    assert!(bodies[1].get("tools").is_none());
}

#[tokio::test]
async fn ollama_is_given_a_context_window_that_fits_the_request() {
    let body = text_body(ProviderApi::Ollama, "Hi.");
    let client = InMemoryClient::new([InMemoryResponse::json(&body)]);
    let (report, _) = run(ProviderApi::Ollama, &client).await;
    assert!(report.is_success(), "{report:?}");
    let options = &parse_body(&client.requests()[0].body)["options"];
    assert_eq!((&options["num_ctx"], &options["num_predict"]), (&json!(16_384), &json!(4096)));
}

#[tokio::test]
async fn providers_that_share_a_client_keep_their_own_keys_and_models() {
    let apis = [ProviderApi::Anthropic, ProviderApi::OpenAiChat];
    let replies = apis.map(|api| InMemoryResponse::json(&text_body(api, "Hello.")));
    let client = InMemoryClient::new(replies);
    for api in apis {
        provider(api, &client).generate(request("Hi")).await.unwrap();
    }
    for (sent, api) in client.requests().iter().zip(apis) {
        assert!(sent.headers.contains_key(path_and_key_header(api).1), "{api:?}");
        assert_eq!(parse_body(&sent.body)["model"], model_name(api));
    }
}

#[tokio::test]
async fn a_llama_server_whose_template_knows_no_tools_is_noticed_before_it_is_asked() {
    let client = InMemoryClient::new([
        InMemoryResponse::json(&json!({"data": [{"id": "small"}]})),
        InMemoryResponse::json(&json!({
            "chat_template_caps": {"supports_tools": false},
            "default_generation_settings": {"n_ctx": 8192},
        })),
    ]);
    let api = ProviderApi::OpenAiChat;
    let base_url = "http://127.0.0.1:8080/v1/".to_owned();
    let endpoint = Endpoint { base_url, ..Endpoint::new("local", api, "") };
    let mut provider = HttpProvider::with_client(endpoint, client.clone());
    assert!(provider.capabilities().tools.native && provider.supports_tools());
    provider.probe_server().await.unwrap();
    assert!(!provider.supports_tools());
    let Capabilities { server, tools, tokens, constraints, .. } = provider.capabilities();
    assert!(constraints.gbnf);
    assert_eq!(
        (provider.model(), server, tools.native, tokens.context),
        ("small", InferenceServer::LlamaCpp, false, Some(8192))
    );
    let sent = client.requests();
    let urls: Vec<_> = sent.iter().map(|sent| sent.url.as_str()).collect();
    assert_eq!(urls, ["http://127.0.0.1:8080/v1/models", "http://127.0.0.1:8080/props"]);
    assert!(sent.iter().all(|sent| sent.method == "GET" && sent.body.is_empty()));
}

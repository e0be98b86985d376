//! Tools at the limits of each provider and past them, in requests that `cargo xtask providers`
//! validates with the providers' own types.

use innkeeper_agent::agent::AgentEvent;

use super::*;

/// A runner with these tools; each call returns its arguments.
struct LimitTools(Vec<Tool>);

impl ToolRunner for LimitTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tools = self.0.iter().cloned();
        tools.map(|tool| AvailableTool::new(tool, ToolAnnotations::default())).collect()
    }

    fn call_tool<'r>(
        &'r self,
        _: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let result = json!({"content": [{"type": "text", "text": arguments.get()}]});
        let result = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(result, false)) })
    }
}

fn object(properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: serde_json::Map<_, _> = properties.into_iter().collect();
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false})
}

/// Schemas at each limit of some provider and one past it.
fn schemas() -> Vec<(String, Value)> {
    let text = json!({"type": "string"});
    let of = |schema: Value| object([("a".to_owned(), schema)]);
    let nested = |levels: usize| (1..levels).fold(text.clone(), |inside, _| of(inside));
    let keyed = |key: &str| object([(key.to_owned(), json!({"type": "integer"}))]);
    let numbered = |count: usize, schema: &Value| {
        object((0..count).map(|at| (format!("p{at}"), schema.clone())))
    };
    let optional = |count: usize| {
        let mut schema = numbered(count, &text);
        schema["required"] = json!([]);
        schema
    };
    let choices = |count: usize| {
        of(
            json!({"type": "string", "enum": (0..count).map(|at| format!("c{at}")).collect::<Vec<_>>()}),
        )
    };
    let union = json!({"type": ["string", "integer"]});
    let mut schemas = vec![
        ("array", of(json!({"type": "array"}))),
        ("array_in_union", of(json!({"anyOf": [text, {"type": "array"}]}))),
        ("tuple", of(json!({"type": "array", "prefixItems": [text]}))),
        ("empty_choice", of(json!({"type": "string", "enum": ["a", ""]}))),
        ("no_properties", json!({"type": "object"})),
        ("root_union", json!({"anyOf": [keyed("x"), keyed("$y")]})),
        ("recursive", json!({"type": "object", "properties": {"next": {"$ref": "#"}}})),
    ];
    for (name, key) in [("dollar", "$top"), ("brackets", "filter[name]"), ("empty_key", "")] {
        schemas.push((name, keyed(key)));
    }
    let mut named: Vec<(String, Value)> =
        schemas.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    for past in [0, 1] {
        named.push((format!("depth_{past}"), nested(10 + past)));
        named.push((format!("key_{past}"), keyed(&"k".repeat(64 + past))));
        named.push((format!("optional_{past}"), optional(24 + past)));
        named.push((format!("unions_{past}"), numbered(16 + past, &union)));
        named.push((format!("choices_{past}"), choices(1000 + past)));
        named.push(("n".repeat(64 + past), numbered(1, &text)));
    }
    named
}

async fn sent_tools(api: ProviderApi, tools: Vec<Tool>, name: &str) -> (RunResult, ScriptedLlm) {
    let script = Script::new([ScriptedReply::text("Done.").with_usage(3000, 5)]);
    let llm = ScriptedLlm::start(script).await;
    let provider = HttpProvider::new(endpoint(api, &llm));
    let settings = AgentSettings {
        tool_search: innkeeper_agent::tool_search::ToolSearchSettings::disabled(),
        ..AgentSettings::default()
    };
    let agent = Agent::new(Arc::new(provider), Arc::new(LimitTools(tools)), settings);
    let result = agent.run("Go.").await;
    save_requests(api, name, &llm);
    (result, llm)
}

/// Returns the tools of a request.
fn tools_of(api: ProviderApi, body: &Value) -> Vec<Value> {
    let tools = &body["tools"];
    let list = match api {
        ProviderApi::GeminiGenerate => &tools[0]["functionDeclarations"],
        _ => tools,
    };
    list.as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_tool_at_and_past_each_limit_is_sent_over_every_api() {
    for api in ProviderApi::ALL {
        let tools: Vec<Tool> = schemas()
            .into_iter()
            .map(|(name, schema)| Tool::new(name, "Tests a limit.", schema))
            .collect();
        let count = tools.len();
        let (result, llm) = sent_tools(api, tools, "limits").await;
        assert!(result.is_success(), "{api:?}: {result:?}");
        let body = llm.requests().remove(0).body;
        assert_eq!(tools_of(api, &body).len(), count, "{api:?}");
    }
}

/// The form in which the provider of an API names the second tool.
fn refusal(api: ProviderApi) -> &'static str {
    match api {
        ProviderApi::OpenAiChat => "Invalid schema for function 's_bad': no.",
        ProviderApi::OpenAiResponses => "Invalid value: 'tools[1].parameters'.",
        ProviderApi::Anthropic => "tools.1.custom.input_schema: JSON schema is invalid",
        ProviderApi::GeminiGenerate => {
            "* GenerateContentRequest.tools[0].function_declarations[1].name: no"
        }
        ProviderApi::GeminiInteractions => "tools[1].parameters: no",
        ProviderApi::Ollama => "invalid schema of tool s_bad",
    }
}

#[tokio::test]
async fn a_tool_that_an_error_names_is_left_out_over_every_api() {
    for api in ProviderApi::ALL {
        let refused = || ScriptedReply::status(400).with_error_message(refusal(api));
        let done = ScriptedReply::text("Done.").with_usage(3000, 5);
        let llm = ScriptedLlm::start(Script::new([])).await;
        // The same tools are sent once more without strict mode.
        let is_strict = HttpProvider::new(endpoint(api, &llm)).capabilities().tools.strict;
        let refusals = if is_strict { vec![refused(), refused()] } else { vec![refused()] };
        let expected = if is_strict { vec![3, 3, 2] } else { vec![3, 2] };
        let llm = ScriptedLlm::start(Script::new(refusals.into_iter().chain([done]))).await;
        let empty = json!({"type": "object", "properties": {}});
        let tools = ["s.good", "s.bad", "s.best"].map(|name| Tool::new(name, "", empty.clone()));
        let provider = HttpProvider::new(endpoint(api, &llm));
        let runner = Arc::new(LimitTools(tools.to_vec()));
        let agent = Agent::new(Arc::new(provider), runner, AgentSettings::default());
        let mut omitted = Vec::new();
        let result = agent
            .run_streaming("Go.", |event| {
                if let AgentEvent::ToolsOmitted(tools) = event {
                    omitted.push(tools);
                }
            })
            .await;
        assert!(result.is_success(), "{api:?}: {result:?}");
        let requests = llm.requests();
        let counts: Vec<usize> =
            requests.iter().map(|request| tools_of(api, &request.body).len()).collect();
        assert_eq!(counts, expected, "{api:?}");
        assert_eq!(result.errors[0].tool.as_deref(), Some("s.bad"), "{api:?}");
        assert_eq!(omitted.len(), 1, "{api:?}");
        assert_eq!(omitted[0].tools, ["s.bad"], "{api:?}");
    }
}

#[tokio::test]
async fn more_tools_than_the_provider_takes_are_cut_and_reported() {
    for (api, limit) in [
        (ProviderApi::OpenAiChat, Some(128)),
        (ProviderApi::OpenAiResponses, Some(128)),
        (ProviderApi::GeminiGenerate, Some(512)),
        (ProviderApi::Anthropic, None),
    ] {
        let count = 520;
        let empty = json!({"type": "object", "properties": {}});
        let tools = (0..count).map(|at| Tool::new(format!("t{at}"), "", empty.clone())).collect();
        let (result, llm) = sent_tools(api, tools, "counts").await;
        assert!(result.is_success(), "{api:?}: {result:?}");
        let body = llm.requests().remove(0).body;
        assert_eq!(tools_of(api, &body).len(), limit.unwrap_or(count), "{api:?}");
        assert_eq!(result.errors.len(), usize::from(limit.is_some()), "{api:?}");
    }
}

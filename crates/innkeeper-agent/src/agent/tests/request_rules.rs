//! The rules of each provider for a conversation, independent of the encoders.

use std::collections::HashSet;

use serde_json::Value;

use crate::provider::ProviderApi;

type CheckResult = Result<(), String>;

/// Checks whether a provider accepts this body. `paused`: the request continues the model's own
/// message.
pub(super) fn check_body(api: ProviderApi, body: &Value, paused: bool) -> CheckResult {
    match api {
        ProviderApi::OpenAiChat => check_chat(body),
        ProviderApi::OpenAiResponses => check_responses(body),
        ProviderApi::Anthropic => check_anthropic(body, paused),
        ProviderApi::GeminiGenerate => check_generate_content(body),
        ProviderApi::GeminiInteractions => check_interactions(body),
        ProviderApi::Ollama => check_ollama(body),
    }
}

fn ensure(fits: bool, rule: impl Into<String>) -> CheckResult {
    if fits { Ok(()) } else { Err(rule.into()) }
}

fn as_slice(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn expect_str<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{name} is {value} and no text"))
}

fn is_ascii_identifier(name: &str, longest: usize) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=longest).contains(&name.len()) && name.bytes().all(letter)
}

fn is_gemini_name(name: &str) -> bool {
    is_ascii_identifier(name, 63)
        && !name.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
}

/// Checks that the names of the tools are well-formed and unique.
fn check_tool_names<'v>(
    names: impl Iterator<Item = &'v Value>,
    form: fn(&str) -> bool,
) -> CheckResult {
    let mut unique_names = HashSet::new();
    for name in names {
        let name = expect_str(name, "a tool's name")?;
        ensure(form(name), format!("`{name}` is no tool's name"))?;
        ensure(unique_names.insert(name), format!("two tools are called `{name}`"))?;
    }
    Ok(())
}

fn is_openai_name(name: &str) -> bool {
    is_ascii_identifier(name, 64)
}

/// Checks that each id is present and belongs to one call.
#[derive(Default)]
struct CallIds(HashSet<String>);

impl CallIds {
    fn register(&mut self, id: &Value, form: fn(&str) -> bool) -> Result<String, String> {
        let id = expect_str(id, "a call's id")?;
        ensure(!id.is_empty() && form(id), format!("`{id}` is no id"))?;
        ensure(self.0.insert(id.to_owned()), format!("two calls have the id `{id}`"))?;
        Ok(id.to_owned())
    }
}

fn check_json_arguments(value: &Value) -> CheckResult {
    let text = expect_str(value, "arguments")?;
    let parsed: Result<Value, _> = serde_json::from_str(text);
    ensure(parsed.is_ok_and(|json| json.is_object()), format!("arguments are no object: {text}"))
}

fn check_chat(body: &Value) -> CheckResult {
    check_tool_names(
        as_slice(&body["tools"]).iter().map(|tool| &tool["function"]["name"]),
        is_openai_name,
    )?;
    let messages = as_slice(&body["messages"]);
    let mut ids = CallIds::default();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = expect_str(&message["role"], "a role")?;
        if role == "tool" {
            let id = expect_str(&message["tool_call_id"], "a result's id")?;
            let position = open.iter().position(|open_id| open_id == id);
            open.remove(position.ok_or_else(|| format!("a result of `{id}`, which is not open"))?);
            expect_str(&message["content"], "a result")?;
            continue;
        }
        ensure(open.is_empty(), format!("{open:?} have no results at {at}"))?;
        match role {
            "system" => ensure(at == 0, "a system message in the middle")?,
            "user" => drop(expect_str(&message["content"], "what the person says")?),
            "assistant" => {
                let calls = message.get("tool_calls");
                ensure(
                    calls.is_none_or(|list| !as_slice(list).is_empty()),
                    "an empty list of calls",
                )?;
                let content = &message["content"];
                ensure(!content.is_null() || calls.is_some(), "an assistant without content")?;
                for call in calls.map(as_slice).unwrap_or_default() {
                    ensure(call["type"] == "function", format!("no function: {call}"))?;
                    open.push(ids.register(&call["id"], |_| true)?);
                    let name = expect_str(&call["function"]["name"], "a call's name")?;
                    ensure(is_openai_name(name), format!("`{name}` is no tool's name"))?;
                    check_json_arguments(&call["function"]["arguments"])?;
                }
            }
            role => return Err(format!("the role {role}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn check_responses(body: &Value) -> CheckResult {
    check_tool_names(as_slice(&body["tools"]).iter().map(|tool| &tool["name"]), is_openai_name)?;
    let items = as_slice(&body["input"]);
    let mut ids = CallIds::default();
    let mut open: Vec<String> = Vec::new();
    let mut results = false;
    for (at, item) in items.iter().enumerate() {
        let kind = expect_str(&item["type"], "a type")?;
        let from_model = match kind {
            "function_call" | "reasoning" => true,
            "message" => item["role"] == "assistant",
            _ => false,
        };
        if kind != "function_call_output" {
            ensure(!results || open.is_empty(), format!("{open:?} have no results at {at}"))?;
            ensure(from_model || open.is_empty(), format!("{open:?} have no results at {at}"))?;
            results = false;
        }
        match kind {
            "message" => ensure(!item["content"].is_null(), "a message without content")?,
            "reasoning" => {
                let next = items.get(at + 1);
                let follows = next.is_some_and(|next| {
                    matches!(next["type"].as_str(), Some("function_call" | "reasoning"))
                        || next["role"] == "assistant"
                });
                ensure(follows, "a thought that nothing follows")?;
            }
            "function_call" => {
                open.push(ids.register(&item["call_id"], |_| true)?);
                let name = expect_str(&item["name"], "a call's name")?;
                ensure(is_openai_name(name), format!("`{name}` is no tool's name"))?;
                check_json_arguments(&item["arguments"])?;
            }
            "function_call_output" => {
                let id = expect_str(&item["call_id"], "a result's id")?;
                let position = open.iter().position(|open_id| open_id == id);
                open.remove(
                    position.ok_or_else(|| format!("a result of `{id}`, which is not open"))?,
                );
                results = true;
            }
            kind => return Err(format!("an item {kind}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn check_anthropic(body: &Value, paused: bool) -> CheckResult {
    check_tool_names(as_slice(&body["tools"]).iter().map(|tool| &tool["name"]), is_openai_name)?;
    let mut ids = CallIds::default();
    let mut open: Vec<String> = Vec::new();
    let messages = as_slice(&body["messages"]);
    ensure(!messages.is_empty(), "no messages")?;
    for (at, message) in messages.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == role, format!("message {at} is not of the {role}"))?;
        let blocks = as_slice(&message["content"]);
        ensure(!blocks.is_empty(), format!("message {at} is empty"))?;
        let mut text_before = false;
        for block in blocks {
            let kind = expect_str(&block["type"], "a type")?;
            match (role, kind) {
                (_, "text") => {
                    let text = expect_str(&block["text"], "a text")?;
                    ensure(!text.trim().is_empty(), "a blank text")?;
                    text_before = true;
                }
                ("assistant", "thinking") => {
                    expect_str(&block["signature"], "a signature")?;
                }
                ("assistant", "redacted_thinking") => {
                    expect_str(&block["data"], "a thought")?;
                }
                ("assistant", "tool_use") => {
                    open.push(
                        ids.register(&block["id"], |id| is_ascii_identifier(id, usize::MAX))?,
                    );
                    let name = expect_str(&block["name"], "a call's name")?;
                    ensure(is_openai_name(name), format!("`{name}` is no tool's name"))?;
                    ensure(block["input"].is_object(), "arguments that are no object")?;
                }
                ("user", "tool_result") => {
                    ensure(!text_before, "a result behind a text")?;
                    let id = expect_str(&block["tool_use_id"], "a result's id")?;
                    let position = open.iter().position(|open_id| open_id == id);
                    let position =
                        position.ok_or_else(|| format!("a result of `{id}`, not open"))?;
                    open.remove(position);
                }
                (role, kind) => return Err(format!("a block {kind} of the {role}")),
            }
        }
        let last =
            blocks.last().and_then(|last_block| last_block["type"].as_str()).unwrap_or_default();
        ensure(!last.ends_with("thinking"), "the final block is a thought")?;
        ensure(role == "assistant" || open.is_empty(), format!("{open:?} have no results"))?;
    }
    ensure(open.is_empty(), "calls are open at the end")?;
    ensure(paused || messages.len() % 2 == 1, "the last message is not of the user")
}

fn check_generate_content(body: &Value) -> CheckResult {
    let declarations = &body["tools"][0]["functionDeclarations"];
    check_tool_names(
        as_slice(declarations).iter().map(|declaration| &declaration["name"]),
        is_gemini_name,
    )?;
    let signs = body["signs"] == true;
    let contents = as_slice(&body["contents"]);
    ensure(!contents.is_empty(), "no contents")?;
    let mut open: Vec<(String, Value)> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parts = as_slice(&content["parts"]);
        ensure(!parts.is_empty(), format!("content {at} has no parts"))?;
        let role = expect_str(&content["role"], "a role")?;
        let calls: Vec<_> = parts.iter().filter(|part| part["functionCall"].is_object()).collect();
        let results: Vec<_> = parts.iter().map(|part| &part["functionResponse"]).collect();
        let results: Vec<_> = results.into_iter().filter(|response| response.is_object()).collect();
        ensure(results.is_empty() || role == "user", "a result of the model")?;
        ensure(results.len() == open.len(), format!("{open:?} and {} results", results.len()))?;
        for ((name, id), result) in open.drain(..).zip(results) {
            ensure(result["name"] == *name, format!("a result of {name} says {result}"))?;
            ensure(result["id"] == id, format!("a result of the call {id} says {result}"))?;
            ensure(result["response"].is_object(), "a result that is no object")?;
        }
        if let Some(first) = calls.first() {
            ensure(role == "model", "a call of the user")?;
            let before = at.checked_sub(1).map(|at| &contents[at]["role"]);
            ensure(
                before.is_some_and(|previous| previous == "user"),
                "a call not behind the user's turn",
            )?;
            ensure(!signs || first["thoughtSignature"].is_string(), "the first call is unsigned")?;
        }
        for call in calls {
            let call = &call["functionCall"];
            let name = expect_str(&call["name"], "a call's name")?;
            ensure(is_gemini_name(name), format!("`{name}` is no tool's name"))?;
            let args = &call["args"];
            ensure(args.is_object() || args.is_null(), "arguments that are no object")?;
            open.push((name.to_owned(), call["id"].clone()));
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn check_interactions(body: &Value) -> CheckResult {
    check_tool_names(as_slice(&body["tools"]).iter().map(|tool| &tool["name"]), is_gemini_name)?;
    let signs = body["signs"] == true;
    let (mut ids, mut open) = (CallIds::default(), Vec::<(String, String)>::new());
    let (mut results, mut signed) = (false, false);
    for step in as_slice(&body["input"]) {
        let kind = expect_str(&step["type"], "a type")?;
        if kind != "function_result" {
            let from_model = kind != "user_input" && !results;
            ensure(from_model || open.is_empty(), format!("{open:?} have no results"))?;
            results = false;
        }
        match kind {
            "user_input" => signed = false,
            "model_output" => ensure(!as_slice(&step["content"]).is_empty(), "an empty output")?,
            "thought" => {
                expect_str(&step["signature"], "a signature")?;
                signed = true;
            }
            "function_call" => {
                ensure(signed || !signs, "a call without a thought before it")?;
                let name = expect_str(&step["name"], "a call's name")?;
                ensure(is_gemini_name(name), format!("`{name}` is no tool's name"))?;
                ensure(step["arguments"].is_object(), "arguments that are no object")?;
                open.push((ids.register(&step["id"], |_| true)?, name.to_owned()));
            }
            "function_result" => {
                let id = expect_str(&step["call_id"], "a result's id")?;
                let position = open.iter().position(|(open_id, _)| open_id == id);
                let position =
                    position.ok_or_else(|| format!("a result of `{id}`, which is not open"))?;
                let (_, name) = open.remove(position);
                ensure(step["name"] == *name, format!("a result of {name} says {step}"))?;
                (results, signed) = (true, false);
            }
            kind => return Err(format!("a step {kind}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn check_ollama(body: &Value) -> CheckResult {
    check_tool_names(
        as_slice(&body["tools"]).iter().map(|tool| &tool["function"]["name"]),
        is_openai_name,
    )?;
    let mut open: Vec<(Value, Value)> = Vec::new();
    for message in as_slice(&body["messages"]) {
        let role = expect_str(&message["role"], "a role")?;
        expect_str(&message["content"], "content")?;
        if role == "tool" {
            ensure(!open.is_empty(), "a result of no call")?;
            let (id, name) = open.remove(0);
            ensure(message["tool_name"] == name, format!("a result of {name} says {message}"))?;
            let same = id.as_str().is_none_or(str::is_empty) || message["tool_call_id"] == id;
            ensure(same, format!("a result of the call {id} says {message}"))?;
            continue;
        }
        ensure(open.is_empty(), format!("{open:?} have no results"))?;
        for call in as_slice(&message["tool_calls"]) {
            ensure(role == "assistant", "a call of another than the assistant")?;
            ensure(call["function"]["arguments"].is_object(), "arguments that are no object")?;
            open.push((call["id"].clone(), call["function"]["name"].clone()));
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

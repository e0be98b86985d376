//! What each provider asks of a conversation, told apart from the code that writes it.

use std::collections::HashSet;

use serde_json::Value;

use crate::provider::Wire;

type Verdict = Result<(), String>;

/// Whether a provider takes this body. `paused`: the model itself is asked to go on.
pub(super) fn valid(wire: Wire, body: &Value, paused: bool) -> Verdict {
    match wire {
        Wire::OpenAiChat => chat(body),
        Wire::OpenAiResponses => responses(body),
        Wire::Anthropic => anthropic(body, paused),
        Wire::GeminiGenerate => generate(body),
        Wire::GeminiInteractions => interactions(body),
        Wire::Ollama => ollama(body),
    }
}

fn ensure(fits: bool, what: impl Into<String>) -> Verdict {
    if fits { Ok(()) } else { Err(what.into()) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| format!("{what} is {value} and no text"))
}

fn in_letters(name: &str, longest: usize) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=longest).contains(&name.len()) && name.bytes().all(letter)
}

fn gemini_name(name: &str) -> bool {
    in_letters(name, 63) && !name.starts_with(|it: char| it.is_ascii_digit() || it == '-')
}

/// Names of offered tools: in form, each once.
fn offered<'v>(names: impl Iterator<Item = &'v Value>, form: fn(&str) -> bool) -> Verdict {
    let mut seen = HashSet::new();
    for name in names {
        let name = text(name, "a tool's name")?;
        ensure(form(name), format!("`{name}` is no tool's name"))?;
        ensure(seen.insert(name), format!("two tools are called `{name}`"))?;
    }
    Ok(())
}

fn openai_name(name: &str) -> bool {
    in_letters(name, 64)
}

/// Ids that are there and stand for one call each.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    fn new_call(&mut self, id: &Value, form: fn(&str) -> bool) -> Result<String, String> {
        let id = text(id, "a call's id")?;
        ensure(!id.is_empty() && form(id), format!("`{id}` is no id"))?;
        ensure(self.0.insert(id.to_owned()), format!("two calls have the id `{id}`"))?;
        Ok(id.to_owned())
    }
}

fn arguments_in_text(value: &Value) -> Verdict {
    let written = text(value, "arguments")?;
    let parsed: Result<Value, _> = serde_json::from_str(written);
    ensure(parsed.is_ok_and(|it| it.is_object()), format!("arguments are no object: {written}"))
}

fn chat(body: &Value) -> Verdict {
    offered(list(&body["tools"]).iter().map(|it| &it["function"]["name"]), openai_name)?;
    let messages = list(&body["messages"]);
    let mut ids = Ids::default();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"], "a role")?;
        if role == "tool" {
            let id = text(&message["tool_call_id"], "a result's id")?;
            let found = open.iter().position(|it| it == id);
            open.remove(found.ok_or_else(|| format!("a result of `{id}`, which is not open"))?);
            text(&message["content"], "a result")?;
            continue;
        }
        ensure(open.is_empty(), format!("{open:?} have no results at {at}"))?;
        match role {
            "system" => ensure(at == 0, "a system message in the middle")?,
            "user" => drop(text(&message["content"], "what the person says")?),
            "assistant" => {
                let calls = message.get("tool_calls");
                ensure(calls.is_none_or(|it| !list(it).is_empty()), "an empty list of calls")?;
                let content = &message["content"];
                ensure(!content.is_null() || calls.is_some(), "an assistant without content")?;
                for call in calls.map(list).unwrap_or_default() {
                    ensure(call["type"] == "function", format!("no function: {call}"))?;
                    open.push(ids.new_call(&call["id"], |_| true)?);
                    let name = text(&call["function"]["name"], "a call's name")?;
                    ensure(openai_name(name), format!("`{name}` is no tool's name"))?;
                    arguments_in_text(&call["function"]["arguments"])?;
                }
            }
            role => return Err(format!("the role {role}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn responses(body: &Value) -> Verdict {
    offered(list(&body["tools"]).iter().map(|it| &it["name"]), openai_name)?;
    let items = list(&body["input"]);
    let mut ids = Ids::default();
    let mut open: Vec<String> = Vec::new();
    let mut results = false;
    for (at, item) in items.iter().enumerate() {
        let kind = text(&item["type"], "a type")?;
        let own = match kind {
            "function_call" | "reasoning" => true,
            "message" => item["role"] == "assistant",
            _ => false,
        };
        if kind != "function_call_output" {
            ensure(!results || open.is_empty(), format!("{open:?} have no results at {at}"))?;
            ensure(own || open.is_empty(), format!("{open:?} have no results at {at}"))?;
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
                open.push(ids.new_call(&item["call_id"], |_| true)?);
                let name = text(&item["name"], "a call's name")?;
                ensure(openai_name(name), format!("`{name}` is no tool's name"))?;
                arguments_in_text(&item["arguments"])?;
            }
            "function_call_output" => {
                let id = text(&item["call_id"], "a result's id")?;
                let found = open.iter().position(|it| it == id);
                open.remove(found.ok_or_else(|| format!("a result of `{id}`, which is not open"))?);
                results = true;
            }
            kind => return Err(format!("an item {kind}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn anthropic(body: &Value, paused: bool) -> Verdict {
    offered(list(&body["tools"]).iter().map(|it| &it["name"]), openai_name)?;
    let mut ids = Ids::default();
    let mut open: Vec<String> = Vec::new();
    let messages = list(&body["messages"]);
    ensure(!messages.is_empty(), "no messages")?;
    for (at, message) in messages.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == role, format!("message {at} is not of the {role}"))?;
        let blocks = list(&message["content"]);
        ensure(!blocks.is_empty(), format!("message {at} is empty"))?;
        let mut text_before = false;
        for block in blocks {
            let kind = text(&block["type"], "a type")?;
            match (role, kind) {
                (_, "text") => {
                    let said = text(&block["text"], "a text")?;
                    ensure(!said.trim().is_empty(), "a blank text")?;
                    text_before = true;
                }
                ("assistant", "thinking") => drop(text(&block["signature"], "a signature")?),
                ("assistant", "redacted_thinking") => drop(text(&block["data"], "a thought")?),
                ("assistant", "tool_use") => {
                    open.push(ids.new_call(&block["id"], |id| in_letters(id, usize::MAX))?);
                    let name = text(&block["name"], "a call's name")?;
                    ensure(openai_name(name), format!("`{name}` is no tool's name"))?;
                    ensure(block["input"].is_object(), "arguments that are no object")?;
                }
                ("user", "tool_result") => {
                    ensure(!text_before, "a result behind a text")?;
                    let id = text(&block["tool_use_id"], "a result's id")?;
                    let found = open.iter().position(|it| it == id);
                    let found = found.ok_or_else(|| format!("a result of `{id}`, not open"))?;
                    open.remove(found);
                }
                (role, kind) => return Err(format!("a block {kind} of the {role}")),
            }
        }
        let last = blocks.last().and_then(|it| it["type"].as_str()).unwrap_or_default();
        ensure(!last.ends_with("thinking"), "the final block is a thought")?;
        ensure(role == "assistant" || open.is_empty(), format!("{open:?} have no results"))?;
    }
    ensure(open.is_empty(), "calls are open at the end")?;
    ensure(paused || messages.len() % 2 == 1, "the last message is not of the user")
}

fn generate(body: &Value) -> Verdict {
    let declared = &body["tools"][0]["functionDeclarations"];
    offered(list(declared).iter().map(|it| &it["name"]), gemini_name)?;
    let signs = body["signs"] == true;
    let contents = list(&body["contents"]);
    ensure(!contents.is_empty(), "no contents")?;
    let mut open: Vec<(String, Value)> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parts = list(&content["parts"]);
        ensure(!parts.is_empty(), format!("content {at} has no parts"))?;
        let role = text(&content["role"], "a role")?;
        let calls: Vec<_> = parts.iter().filter(|it| it["functionCall"].is_object()).collect();
        let results: Vec<_> = parts.iter().map(|it| &it["functionResponse"]).collect();
        let results: Vec<_> = results.into_iter().filter(|it| it.is_object()).collect();
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
            ensure(before.is_some_and(|it| it == "user"), "a call not behind the user's turn")?;
            ensure(!signs || first["thoughtSignature"].is_string(), "the first call is unsigned")?;
        }
        for call in calls {
            let call = &call["functionCall"];
            let name = text(&call["name"], "a call's name")?;
            ensure(gemini_name(name), format!("`{name}` is no tool's name"))?;
            let args = &call["args"];
            ensure(args.is_object() || args.is_null(), "arguments that are no object")?;
            open.push((name.to_owned(), call["id"].clone()));
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn interactions(body: &Value) -> Verdict {
    offered(list(&body["tools"]).iter().map(|it| &it["name"]), gemini_name)?;
    let signs = body["signs"] == true;
    let (mut ids, mut open) = (Ids::default(), Vec::<(String, String)>::new());
    let (mut results, mut signed) = (false, false);
    for step in list(&body["input"]) {
        let kind = text(&step["type"], "a type")?;
        if kind != "function_result" {
            let own = kind != "user_input" && !results;
            ensure(own || open.is_empty(), format!("{open:?} have no results"))?;
            results = false;
        }
        match kind {
            "user_input" => signed = false,
            "model_output" => ensure(!list(&step["content"]).is_empty(), "an empty output")?,
            "thought" => {
                text(&step["signature"], "a signature")?;
                signed = true;
            }
            "function_call" => {
                ensure(signed || !signs, "a call without a thought before it")?;
                let name = text(&step["name"], "a call's name")?;
                ensure(gemini_name(name), format!("`{name}` is no tool's name"))?;
                ensure(step["arguments"].is_object(), "arguments that are no object")?;
                open.push((ids.new_call(&step["id"], |_| true)?, name.to_owned()));
            }
            "function_result" => {
                let id = text(&step["call_id"], "a result's id")?;
                let found = open.iter().position(|(it, _)| it == id);
                let found =
                    found.ok_or_else(|| format!("a result of `{id}`, which is not open"))?;
                let (_, name) = open.remove(found);
                ensure(step["name"] == *name, format!("a result of {name} says {step}"))?;
                (results, signed) = (true, false);
            }
            kind => return Err(format!("a step {kind}")),
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

fn ollama(body: &Value) -> Verdict {
    offered(list(&body["tools"]).iter().map(|it| &it["function"]["name"]), openai_name)?;
    let mut open: Vec<(Value, Value)> = Vec::new();
    for message in list(&body["messages"]) {
        let role = text(&message["role"], "a role")?;
        text(&message["content"], "content")?;
        if role == "tool" {
            ensure(!open.is_empty(), "a result of no call")?;
            let (id, name) = open.remove(0);
            ensure(message["tool_name"] == name, format!("a result of {name} says {message}"))?;
            let same = id.as_str().is_none_or(str::is_empty) || message["tool_call_id"] == id;
            ensure(same, format!("a result of the call {id} says {message}"))?;
            continue;
        }
        ensure(open.is_empty(), format!("{open:?} have no results"))?;
        for call in list(&message["tool_calls"]) {
            ensure(role == "assistant", "a call of another than the assistant")?;
            ensure(call["function"]["arguments"].is_object(), "arguments that are no object")?;
            open.push((call["id"].clone(), call["function"]["name"].clone()));
        }
    }
    ensure(open.is_empty(), "calls are open at the end")
}

//! Calls a tool and answers the forms (elicitation) and model requests (sampling) of its server.
//!
//! `cargo run --example answer_a_server -- mcp.json SERVER.TOOL '{"key": "value"}'`
//!
//! Each answer is one line on stdin. An application with a model calls its model instead.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use innkeeper::callback::{CallReference, CallbackError};
use innkeeper::text::display_safe;
use innkeeper::{CallbackCapabilities, Config, Host, ServerRequest};
use innkeeper_protocol::envelope::code;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

const USAGE: &str = "usage: answer_a_server CONFIG SERVER.TOOL ARGUMENTS";

/// A server may send several requests at a time; the terminal shows one request at a time.
static TERMINAL: Mutex<()> = Mutex::const_new(());

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [config, tool, arguments] = &words[..] else { return Err(USAGE.into()) };
    let arguments = RawValue::from_string(arguments.clone())?;
    let host = Host::builder(Config::from_file(config)?)
        .callback(&CallbackCapabilities::elicitation(), fill_in_form)
        .callback(&CallbackCapabilities::sampling(), generate_message)
        .start()
        .await?;
    let result = host.call_tool(tool, arguments).await?;
    println!("result: {}", display_safe(result.raw().get()));
    host.shutdown().await;
    Ok(())
}

async fn fill_in_form(request: ServerRequest) -> Result<Value, CallbackError> {
    let _shown = TERMINAL.lock().await;
    let params = show(&request);
    let fields = params["requestedSchema"]["properties"].as_object();
    let mut content = Map::new();
    for (field, schema) in fields.into_iter().flatten() {
        println!("{}?", display_safe(field));
        let line = read_line().await?;
        let is_text = schema["type"] == "string";
        let value = serde_json::from_str(&line).ok().filter(|_| !is_text);
        content.insert(field.clone(), value.unwrap_or(Value::String(line)));
    }
    Ok(json!({"action": "accept", "content": content}))
}

async fn generate_message(request: ServerRequest) -> Result<Value, CallbackError> {
    let _shown = TERMINAL.lock().await;
    show(&request);
    let content = json!({"type": "text", "text": read_line().await?});
    Ok(json!({"role": "assistant", "model": "a person", "content": content}))
}

/// Prints the server, the call that the request belongs to, and the message or the parameters.
fn show(request: &ServerRequest) -> Value {
    let text = request.params.as_deref().map_or("{}", RawValue::get);
    let params: Value = serde_json::from_str(text).unwrap_or_default();
    let call = match &request.call {
        CallReference::Call { method, item, .. } => format!("`{method}` of `{item}`"),
        CallReference::Unknown => "an unknown call".to_owned(),
    };
    let message = display_safe(params["message"].as_str().unwrap_or(text));
    println!("`{}` requests `{}` during {call}\n{message}", request.server, request.method);
    params
}

async fn read_line() -> Result<String, CallbackError> {
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await;
    let no_input = || CallbackError::new(code::INTERNAL_ERROR, "no input");
    line.ok().flatten().and_then(Result::ok).ok_or_else(no_input)
}

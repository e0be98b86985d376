//! Reads one request a line, gives one answer a line: what the interceptor finds in pieces of text.
//!
//! `{"model", "tools": [MCP tools], "prompt", "pieces": […], "finish": "stop"|"length"}` becomes
//! `{"content", "reasoning", "calls": [{"name", "arguments"}]}`. The conformance suite for tool
//! call parsers drives it.

use std::io::{BufRead, Write};
use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Format, Interceptor, Options, Tool, Tools};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&request))?;
        out.flush()?;
    }
    Ok(())
}

fn answer(request: &Value) -> Value {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let tools: Tools = request["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| {
            let part = |key: &str| tool[key].as_str().unwrap_or_default();
            Tool::new(part("name"), part("description"), tool["inputSchema"].clone())
        })
        .collect();
    let options = Options {
        format: Format::for_model(text("model")),
        prompt: request["prompt"].as_str().map(str::to_owned),
        ..Options::default()
    };
    let mut interceptor = Interceptor::new(Arc::new(tools), &options);
    let (mut content, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    let mut sink = |event: Event<'_>| match event {
        Event::Text(text) => content.push_str(text),
        Event::Reasoning(text) => reasoning.push_str(text),
        Event::Call { call, .. } => {
            calls.push(json!({"name": call.name, "arguments": call.arguments.to_string()}));
        }
        Event::Frame(_)
        | Event::CallStart { .. }
        | Event::Arguments { .. }
        | Event::Rejected { .. }
        | Event::Incomplete { .. } => {}
    };
    for piece in request["pieces"].as_array().into_iter().flatten() {
        interceptor.push(piece.as_str().unwrap_or_default(), &mut sink);
    }
    let finish = if text("finish") == "length" { Finish::Length } else { Finish::Stop };
    interceptor.finish(finish, &mut sink);
    let trimmed = |text: &str| match text.trim_matches('\n') {
        "" => Value::Null,
        text => text.into(),
    };
    json!({"content": trimmed(&content), "reasoning": trimmed(&reasoning), "calls": calls})
}

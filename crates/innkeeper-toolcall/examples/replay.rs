//! Replays parser requests: reads one JSON request per line and writes one JSON response per line.
//!
//! `{"model", "tools": [MCP tools], "prompt", "pieces": […], "finish": "stop"|"length"}` becomes
//! `{"content", "reasoning", "calls": [{"name", "arguments"}]}`. The conformance suite for tool
//! call parsers runs this program.

use std::io::{BufRead, Write};
use std::sync::Arc;

use innkeeper_toolcall::{Format, ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser, Tools};
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", respond(&request))?;
        out.flush()?;
    }
    Ok(())
}

fn respond(request: &Value) -> Value {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let tools: Tools = request["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| {
            let field = |key: &str| tool[key].as_str().unwrap_or_default();
            Tool::new(field("name"), field("description"), tool["inputSchema"].clone())
        })
        .collect();
    let options = ParserOptions {
        format: Format::for_model(text("model")),
        prompt: request["prompt"].as_str().map(str::to_owned),
        ..ParserOptions::default()
    };
    let mut parser = ToolCallParser::new(Arc::new(tools), &options);
    let (mut content, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    let mut sink = |event: ParseEvent<'_>| match event {
        ParseEvent::Text(text) => content.push_str(text),
        ParseEvent::Reasoning(text) => reasoning.push_str(text),
        ParseEvent::Call { call, .. } => {
            calls.push(json!({"name": call.name, "arguments": call.arguments.to_string()}));
        }
        ParseEvent::Markup(_)
        | ParseEvent::CallStart { .. }
        | ParseEvent::Arguments { .. }
        | ParseEvent::Rejected { .. }
        | ParseEvent::Incomplete { .. } => {}
    };
    for chunk in request["pieces"].as_array().into_iter().flatten() {
        parser.push(chunk.as_str().unwrap_or_default(), &mut sink);
    }
    let text_end = if text("finish") == "length" { TextEnd::Length } else { TextEnd::Stop };
    parser.finish(text_end, &mut sink);
    let trimmed = |text: &str| match text.trim_matches('\n') {
        "" => Value::Null,
        text => text.into(),
    };
    json!({"content": trimmed(&content), "reasoning": trimmed(&reasoning), "calls": calls})
}

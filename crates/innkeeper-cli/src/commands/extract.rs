//! `extract`: finds tool calls in the text of a model.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use innkeeper_toolcall::{
    Format, IncompleteReason, ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::ExtractArgs;
use crate::exit::CliError;
use crate::input_file;
use crate::output::Output;

/// Number of bytes read from stdin at once.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of bytes in the tools file; equals the limit of one server message.
const MAX_TOOLS_BYTES: u64 = 16 << 20;

/// Reads stdin to its end and prints each event as a line, or all events as one JSON value.
pub(crate) fn extract(args: &ExtractArgs, output: &mut Output) -> Result<(), CliError> {
    let format = match (&args.format, &args.model) {
        (Some(format), _) => *format,
        (None, Some(model)) => Format::for_model(model),
        (None, None) => Format::Detect,
    };
    let options = ParserOptions { format, ..ParserOptions::default() };
    let mut parser = ToolCallParser::new(Arc::new(load_tools(&args.tools)?), &options);
    let mut lines = EventBuffer::default();
    let mut buffer =
        vec![0; args.chunk.map_or(READ_BUFFER_BYTES, |size| READ_BUFFER_BYTES.min(size as usize))];
    let mut stdin = std::io::stdin().lock();
    loop {
        let read = match args.chunk {
            None => stdin.read(&mut buffer),
            Some(_) => fill_buffer(&mut stdin, &mut buffer),
        }
        .map_err(|error| CliError::failure("cannot read stdin").with_source(error))?;
        if read == 0 {
            break;
        }
        parser.push_bytes(&buffer[..read], &mut |event| lines.push(&event));
        lines.flush(output)?;
    }
    // The reason for the end of the text is unknown here, so the parser completes no open call.
    parser.finish(TextEnd::Interrupted, &mut |event| lines.push(&event));
    lines.flush(output)?;
    if output.is_json() {
        output.print_json(&lines.collected)?;
    }
    Ok(())
}

/// Reads until the buffer is full or the input ends.
fn fill_buffer(stdin: &mut impl std::io::Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut full = 0;
    while full < buffer.len() {
        match stdin.read(&mut buffer[full..])? {
            0 => break,
            read => full += read,
        }
    }
    Ok(full)
}

/// Loads the tools from a file with an array of tools or a `tools/list` result.
fn load_tools(path: &Path) -> Result<Tools, CliError> {
    let display_path = path.display();
    let usage_error = |reason: String| {
        CliError::usage(format!("`{display_path}`: {reason}"))
            .with_hint("write a JSON array of MCP tools: `[{\"name\": …, \"inputSchema\": {…}}]`")
    };
    let text = input_file::read(path, MAX_TOOLS_BYTES).map_err(|error| {
        CliError::usage(format!("cannot read `{display_path}`")).with_source(error)
    })?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| usage_error(error.to_string()))?;
    let list = value.as_array().or_else(|| value.get("tools")?.as_array());
    let list = list.ok_or_else(|| usage_error("no array of tools".to_owned()))?;
    list.iter()
        .enumerate()
        .map(|(at, tool)| {
            let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                usage_error(format!("tool {} of the array has no `name`", at + 1))
            })?;
            let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
            let schema =
                tool.get("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
            Ok(Tool::new(name, description, schema))
        })
        .collect()
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum ExtractedEvent {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    Call {
        name: String,
        arguments: Box<RawValue>,
        repairs: Vec<String>,
        /// Only in the output if other text stands before the call on its line.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        inline: bool,
    },
    Rejected {
        name: String,
        reason: String,
        suggestions: Vec<String>,
    },
    Incomplete {
        text: String,
        reason: &'static str,
    },
}

/// Events that are not printed yet.
#[derive(Debug, Default)]
struct EventBuffer {
    pending: Vec<ExtractedEvent>,
    collected: Vec<ExtractedEvent>,
}

impl EventBuffer {
    fn push(&mut self, event: &ParseEvent<'_>) {
        match event {
            ParseEvent::Text(text) => self.push_text(text),
            ParseEvent::Reasoning(more) => {
                if let Some(ExtractedEvent::Reasoning { text }) = self.pending.last_mut() {
                    text.push_str(more);
                } else {
                    self.pending.push(ExtractedEvent::Reasoning { text: (*more).to_owned() });
                }
            }
            ParseEvent::Call { call, inline, .. } => self.pending.push(ExtractedEvent::Call {
                name: call.name.clone(),
                // The arguments are serialized JSON; if they were not, the line would contain
                // `null`.
                arguments: RawValue::from_string(call.arguments.to_string()).unwrap_or_default(),
                repairs: call.repairs.iter().map(ToString::to_string).collect(),
                inline: *inline,
            }),
            // A rejected call is shown to the reader as text.
            ParseEvent::Rejected { rejected, text, .. } => {
                self.push_text(text);
                self.pending.push(ExtractedEvent::Rejected {
                    name: rejected.name.clone(),
                    reason: rejected.to_string(),
                    suggestions: rejected.suggestions.clone(),
                });
            }
            ParseEvent::Incomplete { reason, text, .. } => {
                let text = (*text).to_owned();
                self.pending.push(ExtractedEvent::Incomplete {
                    text,
                    reason: describe_incomplete(*reason),
                });
            }
            ParseEvent::Markup(_) | ParseEvent::CallStart { .. } | ParseEvent::Arguments { .. } => {
            }
        }
    }

    /// Appends text; all text of one chunk becomes one line.
    fn push_text(&mut self, more: &str) {
        if let Some(ExtractedEvent::Text { text }) = self.pending.last_mut() {
            text.push_str(more);
        } else if !more.is_empty() {
            self.pending.push(ExtractedEvent::Text { text: more.to_owned() });
        }
    }

    /// Prints the events so far; with `--json`, keeps them until the end.
    fn flush(&mut self, output: &mut Output) -> Result<(), CliError> {
        for line in self.pending.drain(..) {
            if output.is_json() {
                self.collected.push(line);
            } else {
                output.print_data(&serde_json::to_string(&line).map_err(std::io::Error::from)?)?;
            }
        }
        Ok(())
    }
}

/// Returns why a call is incomplete.
fn describe_incomplete(reason: IncompleteReason) -> &'static str {
    match reason {
        IncompleteReason::Stopped => "the model stopped inside the call",
        IncompleteReason::Length => "the response reached its maximum length inside the call",
        IncompleteReason::Interrupted => "the text ends inside the call",
        IncompleteReason::EndedEarly => {
            "the call ended too early, at text that looked like its end"
        }
    }
}

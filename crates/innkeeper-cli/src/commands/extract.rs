//! `extract`: the tool calls in a model's text, for people who want to know what was found in it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use innkeeper_toolcall::{Event, Finish, Format, Incomplete, Interceptor, Options, Tool, Tools};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::ExtractArgs;
use crate::exit::Failure;
use crate::named;
use crate::output::Output;

/// How much of stdin is taken at once.
const PIECE: usize = 64 << 10;

/// The longest file of tools: as long as the longest message of a server that lists them.
const MAX_TOOLS_BYTES: u64 = 16 << 20;

/// Reads stdin to its end and prints each event as a line, or all of them as one JSON value.
pub(crate) fn extract(args: &ExtractArgs, output: &mut Output) -> Result<(), Failure> {
    let format = match (&args.format, &args.model) {
        (Some(format), _) => *format,
        (None, Some(model)) => Format::for_model(model),
        (None, None) => Format::Detect,
    };
    let options = Options { format, ..Options::default() };
    let mut interceptor = Interceptor::new(Arc::new(tools(&args.tools)?), &options);
    let mut lines = Lines::default();
    let mut piece = vec![0; args.chunk.map_or(PIECE, |size| PIECE.min(size as usize))];
    let mut stdin = std::io::stdin().lock();
    loop {
        let read = match args.chunk {
            None => stdin.read(&mut piece),
            Some(_) => fill(&mut stdin, &mut piece),
        }
        .map_err(|error| Failure::failed("stdin cannot be read").because(error))?;
        if read == 0 {
            break;
        }
        interceptor.push_bytes(&piece[..read], &mut |event| lines.add(&event));
        lines.print(output)?;
    }
    // Nobody knows here why the text ends, so nothing is added to what ends too early.
    interceptor.finish(Finish::Interrupted, &mut |event| lines.add(&event));
    lines.print(output)?;
    if output.is_json() {
        output.value(&lines.all)?;
    }
    Ok(())
}

/// Reads until the piece is full or nothing follows.
fn fill(stdin: &mut impl std::io::Read, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut full = 0;
    while full < piece.len() {
        match stdin.read(&mut piece[full..])? {
            0 => break,
            read => full += read,
        }
    }
    Ok(full)
}

/// The tools of the file: an array of them, or the result of `tools/list`.
fn tools(path: &Path) -> Result<Tools, Failure> {
    let shown = path.display();
    let refused = |why: String| {
        Failure::usage(format!("`{shown}`: {why}")).hint(
            "`--tools` takes a JSON array of MCP tools: `[{\"name\": …, \"inputSchema\": {…}}]`",
        )
    };
    let text = named::read(path, MAX_TOOLS_BYTES)
        .map_err(|error| Failure::usage(format!("`{shown}` cannot be read")).because(error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let list = value.as_array().or_else(|| value.get("tools")?.as_array());
    let list = list.ok_or_else(|| refused("holds no array of tools".to_owned()))?;
    let tool = |(at, tool): (usize, &Value)| {
        let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| refused(format!("tool {} of the array has no `name`", at + 1)))?;
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
        let schema =
            tool.get("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
        Ok(Tool::new(name, description, schema))
    };
    list.iter().enumerate().map(tool).collect()
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Text { text: String },
    Reasoning { text: String },
    Call { name: String, arguments: Box<RawValue>, repairs: Vec<String> },
    Rejected { name: String, reason: String, suggestions: Vec<String> },
    Incomplete { text: String, reason: &'static str },
}

/// The events that are not printed yet.
#[derive(Debug, Default)]
struct Lines {
    waiting: Vec<Line>,
    all: Vec<Line>,
}

impl Lines {
    fn add(&mut self, event: &Event<'_>) {
        match event {
            Event::Text(text) => self.text(text),
            Event::Reasoning(more) => {
                if let Some(Line::Reasoning { text }) = self.waiting.last_mut() {
                    text.push_str(more);
                } else {
                    self.waiting.push(Line::Reasoning { text: (*more).to_owned() });
                }
            }
            Event::Call { call, .. } => self.waiting.push(Line::Call {
                name: call.name.clone(),
                // Text of JSON's own making; were it none, the line would say so.
                arguments: RawValue::from_string(call.arguments.to_string()).unwrap_or_default(),
                repairs: call.repairs.iter().map(ToString::to_string).collect(),
            }),
            // The reader of the model's answer is shown its text.
            Event::Rejected { rejected, text, .. } => {
                self.text(text);
                self.waiting.push(Line::Rejected {
                    name: rejected.name.clone(),
                    reason: rejected.to_string(),
                    suggestions: rejected.suggestions.clone(),
                });
            }
            Event::Incomplete { reason, text, .. } => {
                let text = (*text).to_owned();
                self.waiting.push(Line::Incomplete { text, reason: words(*reason) });
            }
            Event::Frame(_) | Event::CallStart { .. } | Event::Arguments { .. } => {}
        }
    }

    /// Text of one piece is one line.
    fn text(&mut self, more: &str) {
        if let Some(Line::Text { text }) = self.waiting.last_mut() {
            text.push_str(more);
        } else if !more.is_empty() {
            self.waiting.push(Line::Text { text: more.to_owned() });
        }
    }

    /// Prints what has come so far; with `--json` it is kept for the end.
    fn print(&mut self, output: &mut Output) -> Result<(), Failure> {
        for line in self.waiting.drain(..) {
            if output.is_json() {
                self.all.push(line);
            } else {
                output.data(&serde_json::to_string(&line).map_err(std::io::Error::from)?)?;
            }
        }
        Ok(())
    }
}

/// Why a call has no end.
fn words(reason: Incomplete) -> &'static str {
    match reason {
        Incomplete::Stopped => "the model stopped inside the call",
        Incomplete::Length => "the answer was cut at its greatest length inside the call",
        Incomplete::Interrupted => "the text ends inside the call",
    }
}

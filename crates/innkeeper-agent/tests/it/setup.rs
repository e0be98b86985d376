//! Fixtures of the tests: in-memory tools, scripted responses, collected output.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use innkeeper_agent::chat::{ResponseItem, StreamingResponse, TextSegment, ToolExecution};
use innkeeper_agent::tools::{ToolCallFuture, ToolCallOptions};
use innkeeper_agent::{
    AvailableTool, Chat, ChatSettings, ToolAnnotations, ToolError, ToolOutput, ToolRunner,
};
use innkeeper_toolcall::Tool;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// In-memory tools that record their calls.
#[derive(Debug, Default)]
pub(crate) struct InMemoryTools {
    started_calls: Mutex<Vec<(String, Value)>>,
    finished_calls: Mutex<Vec<String>>,
}

impl InMemoryTools {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the started calls with their arguments.
    pub(crate) fn started_calls(&self) -> Vec<(String, Value)> {
        self.started_calls.lock().unwrap().clone()
    }

    /// Returns the tools of the finished calls.
    pub(crate) fn finished_calls(&self) -> Vec<String> {
        self.finished_calls.lock().unwrap().clone()
    }

    /// Creates a chat over these tools.
    pub(crate) fn chat(self: &Arc<Self>, settings: ChatSettings) -> Chat {
        Chat::new(self.clone(), settings).unwrap()
    }
}

fn available_tool(
    name: &str,
    properties: &Value,
    required: &[&str],
    annotations: ToolAnnotations,
) -> AvailableTool {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    AvailableTool::new(Tool::new(name, format!("Does {name}."), schema), annotations)
}

impl ToolRunner for InMemoryTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let string = json!({"type": "string"});
        let none = ToolAnnotations::default();
        let reads = ToolAnnotations { read_only: true, ..ToolAnnotations::default() };
        let idempotent = ToolAnnotations { idempotent: true, ..ToolAnnotations::default() };
        vec![
            available_tool("echo", &json!({"message": string}), &["message"], none),
            available_tool("sleep", &json!({"ms": {"type": "integer"}}), &["ms"], none),
            available_tool("big", &json!({"bytes": {"type": "integer"}}), &["bytes"], none),
            available_tool(
                "read",
                &json!({"path": string, "line": {"type": "integer"}}),
                &[],
                reads,
            ),
            available_tool("set", &json!({"to": string}), &[], idempotent),
            available_tool("fail", &json!({}), &[], reads),
            available_tool("panic", &json!({}), &[], none),
            available_tool("broken", &json!({}), &[], none),
        ]
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        self.started_calls.lock().unwrap().push((name.to_owned(), arguments.clone()));
        Box::pin(async move {
            let text = match name {
                "sleep" => {
                    let ms = arguments["ms"].as_u64().unwrap();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    "slept".to_owned()
                }
                "big" => "x".repeat(arguments["bytes"].as_u64().unwrap() as usize),
                "read" => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    format!("read {}", self.started_calls.lock().unwrap().len())
                }
                "panic" => panic!("as asked"),
                "broken" => {
                    let source = std::io::Error::other("as asked").into();
                    return Err(ToolError::Runner { tool: name.to_owned(), source });
                }
                _ => arguments.to_string(),
            };
            self.finished_calls.lock().unwrap().push(name.to_owned());
            let is_error = name == "fail";
            let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
            Ok(ToolOutput::new(serde_json::value::to_raw_value(&result).unwrap(), is_error))
        })
    }
}

/// Returns a call in the generic JSON syntax.
pub(crate) fn call_json(tool: &str, params: &Value) -> String {
    json!({"tool": tool, "params": params}).to_string()
}

pub(crate) fn echo_call(message: &str) -> String {
    call_json("echo", &json!({"message": message}))
}

/// Returns a response as a stream of these chunks.
pub(crate) fn response_stream<P: Into<String>>(
    chunks: impl IntoIterator<Item = P>,
) -> impl Stream<Item = String> + Send + Unpin + 'static {
    let chunks: Vec<String> = chunks.into_iter().map(Into::into).collect();
    stream::iter(chunks)
}

/// Splits a text into chunks of `size` characters.
pub(crate) fn split_chunks(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size).map(|chunk| chunk.iter().collect()).collect()
}

/// All items of a response.
#[derive(Debug, Default)]
pub(crate) struct CollectedResponse {
    pub(crate) segments: Vec<TextSegment>,
    pub(crate) executions: Vec<ToolExecution>,
}

impl CollectedResponse {
    pub(crate) async fn collect(response: &mut StreamingResponse) -> Self {
        let mut all = Self::default();
        while let Some(item) = response.next().await {
            match item {
                ResponseItem::Segment(token) => all.segments.push(token),
                ResponseItem::Execution(execution) => all.executions.push(execution),
            }
        }
        all
    }

    /// Reads one response with default settings.
    pub(crate) async fn from_chunks<P: Into<String>>(chunks: impl IntoIterator<Item = P>) -> Self {
        let chat = InMemoryTools::new().chat(ChatSettings::default());
        Self::collect(&mut chat.start_run().read_response(response_stream(chunks)).unwrap()).await
    }

    /// Returns the displayed text.
    pub(crate) fn visible_text(&self) -> String {
        self.segments.iter().filter_map(TextSegment::visible_text).collect()
    }

    /// Returns the input, as concatenated segments.
    pub(crate) fn input_text(&self) -> String {
        self.segments.iter().map(TextSegment::text).collect()
    }
}

/// Returns the text of a tool's output.
pub(crate) fn output_text(execution: &ToolExecution) -> String {
    let raw = execution.outcome.as_ref().unwrap().raw().get();
    let result: Value = serde_json::from_str(raw).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn error_text(execution: &ToolExecution) -> String {
    execution.outcome.as_ref().unwrap_err().to_string()
}

/// The model's end of a response stream, which ends when the sender is dropped.
pub(crate) struct ChunkSender(tokio::sync::mpsc::Sender<String>);

impl ChunkSender {
    pub(crate) async fn send(&self, chunk: &str) {
        self.0.send(chunk.to_owned()).await.unwrap();
    }

    /// Sends a chunk; returns whether the receiver still exists.
    pub(crate) async fn try_send(&self, chunk: &str) -> bool {
        self.0.send(chunk.to_owned()).await.is_ok()
    }
}

/// Creates a response stream that a test writes chunk by chunk.
pub(crate) fn chunk_channel() -> (ChunkSender, impl Stream<Item = String> + Send + Unpin + 'static)
{
    let (to, from) = tokio::sync::mpsc::channel(1);
    let chunks = stream::unfold(from, |mut from| async { Some((from.recv().await?, from)) });
    (ChunkSender(to), Box::pin(chunks))
}

/// Returns the hash of a call's arguments in the audit log.
pub(crate) fn audit_hash(arguments: &str) -> String {
    format!("{:.16x}", Sha256::digest(arguments.as_bytes()))
}

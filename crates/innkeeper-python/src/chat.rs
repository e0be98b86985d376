//! Tools for a chat application that keeps its own model (document 001), and document 004's host.

use std::sync::Arc;

use futures_util::stream;
use innkeeper::chat::{
    Chat as LibraryChat, ChatRun, ChatSettings, ResponseItem, StreamingMode, StreamingResponse,
    TextSegment,
};
use innkeeper::compat::{McpHost, McpHostConfig, SafetyConfig};
use innkeeper::tool_output::to_text;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Mutex, mpsc};

use crate::failure::Failure;
use crate::ghost::error_chain;
use crate::host::Host;
use crate::json::Tape;
use crate::model::{LlmClient, PythonModel};
use crate::operation::{Operation, Output};

/// Chunks of a response that wait to be read; a faster model waits.
const CHUNK_QUEUE: usize = 64;

/// The tools of a host for one chat.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Chat {
    chat: LibraryChat,
    run: ChatRun,
}

#[pymethods]
impl Chat {
    #[new]
    #[pyo3(signature = (host, mode, max_buffer_chars, placeholder_text, max_tool_rounds))]
    fn new(
        py: Python<'_>,
        host: &Host,
        mode: &str,
        max_buffer_chars: usize,
        placeholder_text: String,
        max_tool_rounds: usize,
    ) -> PyResult<Self> {
        let mode = match mode {
            "buffer" => StreamingMode::SmartBuffering { max_buffer_chars },
            "passthrough" => StreamingMode::Passthrough,
            "placeholders" => StreamingMode::WithPlaceholders { placeholder_text },
            _ => {
                return Err(PyValueError::new_err(format!(
                    "unknown mode `{mode}`: use buffer, passthrough or placeholders"
                )));
            }
        };
        let settings =
            ChatSettings { mode, max_tool_iterations: max_tool_rounds, ..ChatSettings::default() };
        let chat = LibraryChat::new(Arc::new(host.host(py)?), settings);
        let chat = chat.map_err(|error| Failure::Model(error_chain(&error)).into_error(py))?;
        let run = chat.start_run();
        Ok(Self { chat, run })
    }

    /// Adds the tools to a system prompt.
    fn enhance_system_prompt(&self, system_prompt: &str) -> String {
        self.chat.enhance_system_prompt(system_prompt)
    }

    /// Starts a new user message: the count of rounds begins again.
    fn reset(&self) {
        self.run.reset();
    }

    /// Returns a response that is fed with text.
    fn read_response(&self) -> ChatResponse {
        let (sender, receiver) = mpsc::channel(CHUNK_QUEUE);
        let sender = std::sync::Mutex::new(Some(sender));
        let state = ResponseState { receiver: Some(receiver), response: None };
        ChatResponse { run: self.run.clone(), sender, state: Arc::new(Mutex::new(state)) }
    }
}

/// One response of the application's model.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct ChatResponse {
    run: ChatRun,
    sender: std::sync::Mutex<Option<mpsc::Sender<String>>>,
    state: Arc<Mutex<ResponseState>>,
}

struct ResponseState {
    /// Until the reading starts.
    receiver: Option<mpsc::Receiver<String>>,
    response: Option<StreamingResponse>,
}

impl ResponseState {
    /// Starts the reading at the first use, on the runtime.
    fn response(&mut self, run: &ChatRun) -> Result<&mut StreamingResponse, Failure> {
        if let Some(receiver) = self.receiver.take() {
            let chunks = stream::unfold(receiver, async |mut receiver| {
                receiver.recv().await.map(|chunk| (chunk, receiver))
            });
            let response = run.read_response(Box::pin(chunks));
            self.response = Some(response.map_err(|error| Failure::Model(error_chain(&error)))?);
        }
        self.response.as_mut().ok_or_else(|| Failure::Model("the response has ended".to_owned()))
    }
}

#[pymethods]
impl ChatResponse {
    /// Adds a chunk of the model's text; waits while the reader is behind.
    fn feed(&self, chunk: String) -> Operation {
        let sender = self.sender.lock().ok().and_then(|sender| sender.clone());
        Operation::new(async move {
            if let Some(sender) = sender {
                // The reader is gone when nobody wants the rest.
                sender.send(chunk).await.ok();
            }
            Ok(Output::None)
        })
    }

    /// Ends the text.
    fn finish(&self) {
        if let Ok(mut sender) = self.sender.lock() {
            *sender = None;
        }
    }

    /// Returns the next item, or `None` at the end.
    fn next(&self) -> Operation {
        let state = self.state.clone();
        let run = self.run.clone();
        Operation::new(async move {
            let mut state = state.lock().await;
            let Some(item) = state.response(&run)?.next_item().await else {
                return Ok(Output::None);
            };
            let json = to_raw_value(&ItemRecord::new(item));
            Ok(Output::Json(Tape::new(json.map_err(|error| Failure::Internal(error.to_string()))?)))
        })
    }

    /// Returns the results of the calls as the next message for the model, or `None` without calls.
    fn results_as_message(&self) -> Operation {
        let state = self.state.clone();
        let run = self.run.clone();
        Operation::new(async move {
            let message = state.lock().await.response(&run)?.results_as_message().await;
            Ok(Output::Object(Box::new(move |py| {
                Ok(message.into_pyobject(py)?.into_any().unbind())
            })))
        })
    }
}

/// An item as a JSON object.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ItemRecord {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    ToolCall {
        text: String,
    },
    Placeholder {
        text: String,
        original: String,
    },
    RejectedCall {
        text: String,
        reason: String,
    },
    Buffered {
        text: String,
    },
    ToolResult {
        tool: String,
        arguments: Box<RawValue>,
        success: bool,
        result: String,
        elapsed: f64,
    },
}

impl ItemRecord {
    fn new(item: ResponseItem) -> Self {
        match item {
            ResponseItem::Segment(TextSegment::Narrative(text)) => Self::Text { text },
            ResponseItem::Segment(TextSegment::Reasoning(text)) => Self::Reasoning { text },
            ResponseItem::Segment(TextSegment::ToolCall(text)) => Self::ToolCall { text },
            ResponseItem::Segment(TextSegment::Placeholder { replacement, original }) => {
                Self::Placeholder { text: replacement, original }
            }
            ResponseItem::Segment(TextSegment::RejectedCall { text, reason }) => {
                Self::RejectedCall { text, reason }
            }
            ResponseItem::Segment(TextSegment::Buffered(text)) => Self::Buffered { text },
            ResponseItem::Execution(execution) => {
                let (success, result) = match &execution.outcome {
                    Ok(output) => (!output.is_error(), to_text(output)),
                    Err(error) => (false, error_chain(&**error)),
                };
                Self::ToolResult {
                    tool: execution.tool,
                    arguments: RawValue::from_string(execution.arguments.to_string())
                        .unwrap_or_default(),
                    success,
                    result,
                    elapsed: execution.elapsed.as_secs_f64(),
                }
            }
        }
    }
}

/// Document 004's host: a model that is told of the tools in its prompt.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct PromptHost(Arc<Mutex<McpHost>>);

#[pymethods]
impl PromptHost {
    #[new]
    #[pyo3(signature = (host, model, *, max_retries, retry_delay_ms, temperature_reduction, max_tokens_per_request, max_tools_per_request, rate_limit_per_minute, blocked_tool_patterns))]
    #[expect(clippy::too_many_arguments, reason = "the settings of document 004, by name")]
    fn new(
        py: Python<'_>,
        host: &Host,
        model: &Bound<'_, PyAny>,
        max_retries: u32,
        retry_delay_ms: u64,
        temperature_reduction: f32,
        max_tokens_per_request: usize,
        max_tools_per_request: usize,
        rate_limit_per_minute: u32,
        blocked_tool_patterns: Vec<String>,
    ) -> PyResult<Self> {
        let provider = match model.cast::<LlmClient>() {
            Ok(client) => client.get().provider_handle(),
            Err(_) => model.cast::<PythonModel>()?.get().provider(),
        };
        let config = McpHostConfig {
            max_retries,
            retry_delay_ms,
            temperature_reduction,
            safety_constraints: SafetyConfig {
                max_tokens_per_request,
                max_tools_per_request,
                rate_limit_per_minute,
                blocked_tool_patterns,
            },
        };
        let builder = McpHost::builder()
            .with_llm_provider(Box::new(provider))
            .with_mcp_client(host.host(py)?);
        let host = builder.with_config(config).build();
        let host = host.map_err(|error| Failure::Model(error_chain(&error)).into_error(py))?;
        Ok(Self(Arc::new(Mutex::new(host))))
    }

    /// Lets the model answer one message.
    fn process_message(&self, message: String) -> Operation {
        let host = self.0.clone();
        Operation::new(async move {
            let answer = host.lock().await.process_message(&message).await;
            let answer = answer.map_err(|error| Failure::Model(error_chain(&error)))?;
            Ok(Output::Object(Box::new(move |py| {
                Ok(answer.into_pyobject(py)?.into_any().unbind())
            })))
        })
    }
}

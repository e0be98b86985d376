//! The events of a run while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper::agent::AgentEvent;
use innkeeper::ghost::{GhostConfig, mcp_ghost_streaming};
use pyo3::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::failure::Failure;
use crate::ghost::result_tape;
use crate::json::Tape;
use crate::operation::{Operation, Output};
use crate::runtime;

/// A run with its events. To drop the stream ends the run and its servers.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct RunStream {
    config: Mutex<Option<GhostConfig>>,
    events: Arc<EventQueue>,
    /// Dropped with the stream.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

/// The events that nobody has read yet. A run is finite, and so is its queue: the limits of the run
/// bound its texts and its calls.
#[derive(Default)]
struct EventQueue {
    waiting: Mutex<VecDeque<Tape>>,
    end: Mutex<RunEnd>,
    changed: Notify,
}

/// How far a run is.
#[derive(Default)]
enum RunEnd {
    #[default]
    Running,
    Ended(Result<Tape, Failure>),
    /// The application has the result.
    Taken,
}

impl EventQueue {
    fn push(&self, event: &AgentEvent) {
        if let Some(json) = event_json(event) {
            lock(&self.waiting).push_back(Tape::new(json));
            self.changed.notify_one();
        }
    }

    fn finish(&self, end: Result<Tape, Failure>) {
        *lock(&self.end) = RunEnd::Ended(end);
        self.changed.notify_one();
    }
}

impl RunStream {
    pub(crate) fn new(config: GhostConfig) -> Self {
        Self { config: Mutex::new(Some(config)), events: Arc::default(), stop: Mutex::default() }
    }

    /// Starts the run at the first use.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let Some(config) = lock(&self.config).take() else { return Ok(()) };
        let (stop, stopped) = oneshot::channel();
        *lock(&self.stop) = Some(stop);
        let events = self.events.clone();
        let sink_events = events.clone();
        let run = async move {
            let result = mcp_ghost_streaming(config, move |event| sink_events.push(&event)).await;
            events.finish(result_tape(&result));
        };
        runtime::handle(py)?.spawn(async move {
            tokio::select! {
                () = run => {}
                // The sender is dropped with the stream.
                _ = stopped => {}
            }
        });
        Ok(())
    }
}

#[pymethods]
impl RunStream {
    /// Returns the next event as a dict; after the last event the result as a tuple of one, then
    /// `None`.
    fn next(&self, py: Python<'_>) -> PyResult<Operation> {
        self.start(py)?;
        let events = self.events.clone();
        Ok(Operation::new(async move {
            loop {
                let changed = events.changed.notified();
                let event = lock(&events.waiting).pop_front();
                if let Some(event) = event {
                    return Ok(Output::Json(event));
                }
                let end = {
                    let mut end = lock(&events.end);
                    if matches!(*end, RunEnd::Running) {
                        RunEnd::Running
                    } else {
                        std::mem::replace(&mut *end, RunEnd::Taken)
                    }
                };
                match end {
                    RunEnd::Running => changed.await,
                    RunEnd::Taken => return Ok(Output::None),
                    RunEnd::Ended(result) => {
                        let result = result?;
                        return Ok(Output::Object(Box::new(|py| {
                            Ok((result.into_python(py)?,).into_pyobject(py)?.into_any().unbind())
                        })));
                    }
                }
            }
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an event as JSON; `None` for one that only a store of conversations needs.
fn event_json(event: &AgentEvent) -> Option<Box<RawValue>> {
    let value = match event {
        AgentEvent::Text(text) => json!({ "kind": "text", "text": text }),
        AgentEvent::Reasoning(text) => json!({ "kind": "reasoning", "text": text }),
        AgentEvent::ToolCallDetected { tool } => {
            json!({ "kind": "tool_call_detected", "tool": tool })
        }
        AgentEvent::ToolCallStarted { id, tool, arguments } => {
            let arguments: &RawValue = serde_json::from_str(arguments).ok()?;
            return to_raw_value(&StartedCall { kind: "tool_call_started", id, tool, arguments })
                .ok();
        }
        AgentEvent::ToolCallProgress { id, tool, progress } => json!({
            "kind": "tool_call_progress", "id": id, "tool": tool,
            "progress": progress.progress, "total": progress.total, "message": progress.message,
        }),
        AgentEvent::ToolCallFinished(call) => json!({
            "kind": "tool_call_finished", "id": call.id, "tool": call.tool,
            "success": call.outcome.success, "result": call.result_text,
            "elapsed": call.elapsed.as_secs_f64(),
        }),
        AgentEvent::Warned(warning) => json!({
            "kind": "warning", "id": warning.call_id, "tool": warning.tool, "text": warning.text,
        }),
        AgentEvent::ToolsOmitted(omitted) => json!({
            "kind": "tools_omitted", "tools": omitted.tools, "reason": omitted.reason,
        }),
        AgentEvent::ResponseFinished { usage } => json!({
            "kind": "response_finished",
            "prompt_tokens": usage.map(|usage| usage.prompt_tokens),
            "completion_tokens": usage.map(|usage| usage.completion_tokens),
        }),
        AgentEvent::Planned(steps) => json!({ "kind": "planned", "steps": steps.len() }),
        AgentEvent::HistorySummaryStarted { messages } => {
            json!({ "kind": "history_summary_started", "messages": messages })
        }
        AgentEvent::HistoryShortened { messages, is_summarized } => json!({
            "kind": "history_shortened", "messages": messages, "is_summarized": is_summarized,
        }),
        AgentEvent::Retrying { delay } => {
            json!({ "kind": "retrying", "delay": delay.as_secs_f64() })
        }
        AgentEvent::MessagesAdded(_) | AgentEvent::Finished(_) => Value::Null,
    };
    if value.is_null() { None } else { to_raw_value(&value).ok() }
}

/// A call that starts, with its arguments byte for byte.
#[derive(serde::Serialize)]
struct StartedCall<'c> {
    kind: &'static str,
    id: &'c str,
    tool: &'c str,
    arguments: &'c RawValue,
}

//! Tasks: work that continues after the response to its request.
//!
//! The view reads tasks of the revision 2025-11-25 and of the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28.

use serde_json::value::RawValue;

use super::{InputRequest, ObjectView, ViewError};

/// Maximum length of a task id in bytes: every request about the task contains the id, over HTTP in
/// a header.
pub const MAX_TASK_ID_BYTES: usize = 1024;

/// The state of a task, in either form.
#[derive(Clone, Debug)]
pub struct Task {
    /// The task id.
    pub id: String,
    /// The status of the task.
    pub status: TaskStatus,
    /// The server's description of the status; untrusted.
    pub status_message: Option<String>,
    /// The time to wait before the next poll, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// The lifetime of the task after its creation, in milliseconds; `None` if unlimited or
    /// unknown.
    pub ttl_ms: Option<u64>,
    /// The result of the request that created the task. Extension only: in 2025-11-25 the response
    /// to `tasks/result` has the result.
    pub result: Option<Box<RawValue>>,
    /// The JSON-RPC error of a failed task; extension only.
    pub error: Option<Box<RawValue>>,
    /// The input that the task requires before it continues; extension only.
    pub input_requests: Vec<InputRequest>,
}

/// The status of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task is running.
    Working,
    /// The task waits for input.
    InputRequired,
    /// The task has a result, which may be a tool error.
    Completed,
    /// The task has failed without a result.
    Failed,
    /// The task was cancelled.
    Cancelled,
    /// An unknown status. The task may still be running.
    Other(String),
}

impl Task {
    /// Reads a task from any of its locations: the response to the request that created the task,
    /// the response to `tasks/get` or `tasks/cancel`, a list item, or the parameters of a
    /// notification.
    ///
    /// # Errors
    ///
    /// Returns an error if `taskId` or `status` is not a string, if `taskId` is longer than
    /// [`MAX_TASK_ID_BYTES`], or if `inputRequests` is invalid for
    /// [`InputRequiredResult::from_raw`](super::InputRequiredResult::from_raw).
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let response = ObjectView::from_raw(raw, ["task", "taskId"])?;
        let wrapped = response.get("taskId").is_none().then(|| response.get("task")).flatten();
        let pointer = wrapped.map_or(String::new(), |_| response.pointer_to("task"));
        let members = [
            "taskId",
            "status",
            "statusMessage",
            "pollInterval",
            "pollIntervalMs",
            "ttl",
            "ttlMs",
            "result",
            "error",
            "inputRequests",
        ];
        let task = ObjectView::from_raw_at(pointer, wrapped.or(Some(raw.get())), members)?;
        let id = task.required_string("taskId")?;
        if id.len() > MAX_TASK_ID_BYTES {
            let pointer = task.pointer_to("taskId");
            return Err(ViewError { pointer, expected: "at most 1024 bytes", found: "more" });
        }
        Ok(Self {
            id,
            status: TaskStatus::from_name(task.required_string("status")?),
            status_message: task.string("statusMessage"),
            poll_interval_ms: task.unsigned("pollIntervalMs").or(task.unsigned("pollInterval")),
            ttl_ms: task.unsigned("ttlMs").or(task.unsigned("ttl")),
            result: task.raw_object("result"),
            error: task.raw_object("error"),
            input_requests: InputRequest::parse_all(&task)?.unwrap_or_default(),
        })
    }
}

impl TaskStatus {
    /// Whether the status is final.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Working | Self::InputRequired | Self::Other(_) => false,
        }
    }

    fn from_name(name: String) -> Self {
        match name.as_str() {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => Self::Other(name),
        }
    }
}

//! A task: work that outlives the request that began it, as 2025-11-25 has it and as the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28 does.

use serde_json::value::RawValue;

use super::{InputRequest, Object, ViewError};

/// The longest id of a task, in bytes: it goes into every question about the task, and over HTTP into
/// a header.
pub const TASK_ID_LIMIT: usize = 1024;

/// What a server says of a task, in either form.
#[derive(Clone, Debug)]
pub struct Task {
    /// What it is asked for by.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The server's words about that; nothing in them is to be trusted.
    pub status_message: Option<String>,
    /// How long to wait before asking again, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// How long after its beginning it is kept, in milliseconds; `None` if unlimited or unsaid.
    pub ttl_ms: Option<u64>,
    /// What it came to, as the result of the request that began it; the extension says so here,
    /// 2025-11-25 in the answer to `tasks/result`.
    pub result: Option<Box<RawValue>>,
    /// The JSON-RPC error it came to; the extension only.
    pub error: Option<Box<RawValue>>,
    /// What the server wants to know before it goes on; the extension only.
    pub requests: Vec<InputRequest>,
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// It waits for input.
    InputRequired,
    /// It has a result, which may be a tool's failure.
    Completed,
    /// It has no result.
    Failed,
    /// It was stopped.
    Cancelled,
    /// Something that no revision knows; the work may go on.
    Other(String),
}

impl Task {
    /// Reads a task wherever it stands: in the answer to the request that began it, in that to
    /// `tasks/get` or `tasks/cancel`, in a list, or in the parameters of a notification.
    ///
    /// # Errors
    ///
    /// If `taskId` or `status` is not a string, the former is longer than [`TASK_ID_LIMIT`], or
    /// `inputRequests` is not what [`InputRequired::read`](super::InputRequired::read) reads.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let answer = Object::read(raw, ["task", "taskId"])?;
        let wrapped = answer.get("taskId").is_none().then(|| answer.get("task")).flatten();
        let pointer = wrapped.map_or(String::new(), |_| answer.pointer_to("task"));
        let wanted = [
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
        let task = Object::at(pointer, wrapped.or(Some(raw.get())), wanted)?;
        let id = task.required_string("taskId")?;
        if id.len() > TASK_ID_LIMIT {
            let pointer = task.pointer_to("taskId");
            return Err(ViewError { pointer, expected: "at most 1024 bytes", found: "more" });
        }
        Ok(Self {
            id,
            status: TaskStatus::of(task.required_string("status")?),
            status_message: task.string("statusMessage"),
            poll_interval_ms: task.unsigned("pollIntervalMs").or(task.unsigned("pollInterval")),
            ttl_ms: task.unsigned("ttlMs").or(task.unsigned("ttl")),
            result: task.raw_object("result"),
            error: task.raw_object("error"),
            requests: InputRequest::read_all(&task)?.unwrap_or_default(),
        })
    }
}

impl TaskStatus {
    /// Whether nothing about the task will change any more.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Working | Self::InputRequired | Self::Other(_) => false,
        }
    }

    fn of(name: String) -> Self {
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

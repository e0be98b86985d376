//! The modes of calls that create a task.

use serde_json::value::RawValue;

/// How a call of a tool handles a task that the server creates.
#[derive(Clone, Debug, Default)]
pub enum TaskMode {
    /// The host polls the task and returns the result of the task.
    #[default]
    Await,
    /// The host does not poll and returns the created task as the server sent it. The application
    /// polls and cancels the task with [`Host::request`](crate::Host::request).
    PassThrough {
        /// The member `task` of the request, byte for byte, for a server of the legacy era. Without
        /// the member, a server of the legacy era creates no task.
        params: Option<Box<RawValue>>,
    },
}

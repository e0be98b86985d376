//! Progress notifications for callers.

use std::sync::Arc;

use serde_json::value::RawValue;

/// A progress notification of a running request, in the order of the server.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Progress so far; increases.
    pub progress: f64,
    /// Total progress, if known.
    pub total: Option<f64>,
    /// Description of the current step.
    pub message: Option<String>,
    /// `_meta` as the server sent it.
    pub meta: Option<Arc<RawValue>>,
    /// All parameters as the server sent them, with the progress token of the host.
    pub params: Arc<RawValue>,
}

impl PartialEq for Progress {
    fn eq(&self, other: &Self) -> bool {
        let Self { progress, total, message, meta: _, params } = self;
        // `meta` is a part of `params`.
        *progress == other.progress
            && *total == other.total
            && *message == other.message
            && params.get() == other.params.get()
    }
}

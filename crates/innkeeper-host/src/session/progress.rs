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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_equal_if_all_members_are_and_meta_is_a_part_of_the_parameters() {
        let raw = |text: &str| Arc::from(RawValue::from_string(text.to_owned()).unwrap());
        let first = Progress {
            progress: 1.0,
            total: Some(2.0),
            message: Some("half".to_owned()),
            meta: None,
            params: raw(r#"{"progress":1}"#),
        };
        assert_eq!(first, Progress { meta: Some(raw("{}")), ..first.clone() });
        for other in [
            Progress { progress: 1.5, ..first.clone() },
            Progress { total: None, ..first.clone() },
            Progress { message: None, ..first.clone() },
            Progress { params: raw(r#"{"progress": 1}"#), ..first.clone() },
        ] {
            assert_ne!(first, other);
        }
    }
}

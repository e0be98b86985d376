//! Why a run has no golden.

use innkeeper_golden::{Difference, KnownSecret, ReadError, RedactError};

use super::replay::ReplayError;
use crate::ghost::GhostResult;
use crate::run::RunOutcome;

/// Why a run has no golden.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run was interrupted, or nothing was sent.
    #[error("the run did not end by itself: {reason}")]
    NotFinished {
        /// What happened.
        reason: String,
    },
    /// The model is not reached over HTTP.
    #[error("the model has no HTTP API, so there are no bytes to record")]
    NoHttp,
    /// A golden cannot hold the value of a setting.
    #[error("a recording cannot hold the setting `{setting}`")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A secret stays in the recording.
    #[error("the recording may contain a secret")]
    Redact(#[from] RedactError),
    /// The recording is too large.
    #[error(transparent)]
    Write(#[from] ReadError),
    /// The replay of the recording failed.
    #[error("the recording does not replay")]
    Replay(#[from] ReplayError),
    /// The replay of the recording has another result.
    #[error("the recording replays with another result: {}", join(.differences))]
    Differs {
        /// The differences, at most ten.
        differences: Vec<Difference>,
    },
    /// The recording does not replay after ordinary words were replaced, because a variable or header
    /// has such a value.
    #[error(
        "the recording does not replay after {} was replaced, whose value is an ordinary word",
        .names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
    )]
    OrdinaryWord {
        /// The names of the values, such as `env:MODE`.
        names: Vec<String>,
        /// What went wrong.
        source: Box<Self>,
    },
    /// A value has no JSON form.
    #[error("cannot write the recording")]
    Json(#[from] serde_json::Error),
}

impl RecordError {
    /// Returns the error of a run that was not sent.
    pub(crate) fn not_finished(result: &GhostResult) -> Self {
        let reason = unfinished(&result.result.outcome);
        Self::NotFinished { reason: reason.unwrap_or_else(|| "it has no recording".to_owned()) }
    }

    /// Names the secrets whose values are ordinary words, if there are some.
    pub(super) fn with_ordinary_words(self, secrets: &[KnownSecret]) -> Self {
        let ordinary = secrets.iter().filter(|secret| {
            secret.value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"._- ".contains(&byte))
        });
        let names: Vec<_> = ordinary.map(|secret| secret.name.clone()).collect();
        if names.is_empty() { self } else { Self::OrdinaryWord { names, source: Box::new(self) } }
    }
}

fn join(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns why a run did not come to an end that a replay could reach.
pub(super) fn unfinished(outcome: &RunOutcome) -> Option<String> {
    match outcome {
        RunOutcome::Interrupted => Some("it was interrupted".to_owned()),
        RunOutcome::NotSent { reason } => Some(reason.clone()),
        RunOutcome::Completed
        | RunOutcome::Truncated
        | RunOutcome::Refused
        | RunOutcome::IterationLimit
        | RunOutcome::CallFailed
        | RunOutcome::LoopDetected
        | RunOutcome::NoValidCall { .. }
        | RunOutcome::Failed(_) => None,
    }
}

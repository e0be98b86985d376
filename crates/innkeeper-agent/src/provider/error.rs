//! Errors of language models, classified by the possible reaction.

mod stored;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ToolRejection;

/// A failed request to a language model.
#[derive(Debug)]
pub struct LlmError {
    /// The name of the provider.
    pub provider: String,
    /// The requested model; empty if unknown.
    pub model: Box<str>,
    /// The kind of the error, by the possible reaction.
    pub kind: LlmErrorKind,
    /// The HTTP status, if there was an HTTP response.
    pub status: Option<u16>,
    /// The error message, the provider's if there is one; at most 2,000 characters.
    pub message: Box<str>,
    /// The model's output before the error, if the provider reports it. The output may contain a
    /// tool call.
    pub partial_output: Option<Box<str>>,
    /// The underlying error.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of an error, by the possible reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmErrorKind {
    /// Temporary; retry later.
    RetryLater {
        /// The minimum delay, if the provider reports one.
        after: Option<Duration>,
    },
    /// The connection failed or was lost; a retry may succeed.
    Connection,
    /// No response within the timeout.
    TimedOut,
    /// The API key is missing, invalid or lacks a permission.
    Authentication,
    /// The account has no credit or quota left.
    Billing,
    /// The model or the endpoint does not exist.
    NotFound,
    /// The request exceeds the context window; shorten it.
    ContextLength,
    /// The model does not support native tool calling; use prompted tool calling.
    ToolsUnsupported,
    /// The provider could not parse the model's tool call; retry.
    MalformedToolCall,
    /// The provider refused the request.
    Refusal,
    /// The request is invalid for another reason; a retry does not help.
    InvalidRequest,
    /// The response is invalid.
    InvalidResponse,
    /// The local rate limit is reached; nothing was sent.
    LocalRateLimit {
        /// The delay until the next request is allowed.
        after: Duration,
    },
}

impl LlmErrorKind {
    /// Whether a retry of the same request may succeed, after [`Self::retry_after`].
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RetryLater { .. }
            | Self::Connection
            | Self::TimedOut
            | Self::MalformedToolCall
            | Self::InvalidResponse
            | Self::LocalRateLimit { .. } => true,
            Self::Authentication
            | Self::Billing
            | Self::NotFound
            | Self::ContextLength
            | Self::ToolsUnsupported
            | Self::Refusal
            | Self::InvalidRequest => false,
        }
    }

    /// Returns the delay that the provider or the local rate limit requires, if there is one.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RetryLater { after } => after,
            Self::LocalRateLimit { after } => Some(after),
            Self::Connection
            | Self::TimedOut
            | Self::Authentication
            | Self::Billing
            | Self::NotFound
            | Self::ContextLength
            | Self::ToolsUnsupported
            | Self::MalformedToolCall
            | Self::Refusal
            | Self::InvalidRequest
            | Self::InvalidResponse => None,
        }
    }

    /// Returns the name of the kind in metrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RetryLater { .. } => "later",
            Self::Connection => "connection",
            Self::TimedOut => "timed_out",
            Self::Authentication => "key",
            Self::Billing => "billing",
            Self::NotFound => "not_found",
            Self::ContextLength => "too_long",
            Self::ToolsUnsupported => "no_tools",
            Self::MalformedToolCall => "malformed",
            Self::Refusal => "refused",
            Self::InvalidRequest => "request",
            Self::InvalidResponse => "unreadable",
            Self::LocalRateLimit { .. } => "rate_limited",
        }
    }

    /// Returns the hint at the end of the error message.
    fn hint(self) -> &'static str {
        match self {
            Self::RetryLater { .. } => "try again later",
            Self::Connection => "check the base URL and the network",
            Self::TimedOut => "retry or raise the timeout",
            Self::Authentication => "check the API key",
            Self::Billing => "check the account's quota and billing",
            Self::NotFound => "check the model name and the base URL",
            Self::ContextLength => "shorten the conversation or offer fewer tools",
            Self::ToolsUnsupported => "use prompted tool calling with this model",
            Self::MalformedToolCall => "retry the request",
            Self::Refusal => "change the request",
            Self::InvalidRequest => "correct the request",
            Self::InvalidResponse => "check that the base URL belongs to this provider's API",
            Self::LocalRateLimit { .. } => {
                "raise the limit of requests per minute or try again later"
            }
        }
    }
}

impl LlmError {
    /// Returns the tools that the error is about, if it is about the tools of the request: a
    /// [`ToolRejection`] as source.
    pub fn tool_rejection(&self) -> Option<&ToolRejection> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Creates an error, for providers of an application. The model, status, partial output and
    /// source are empty.
    pub fn new(
        provider: impl Into<String>,
        kind: LlmErrorKind,
        message: impl Into<Box<str>>,
    ) -> Self {
        Self {
            provider: provider.into(),
            model: Box::default(),
            kind,
            status: None,
            message: message.into(),
            partial_output: None,
            source: None,
        }
    }
}

/// Errors are equal if their fields and the texts of their sources are equal.
impl PartialEq for LlmError {
    fn eq(&self, other: &Self) -> bool {
        let Self { provider, model, kind, status, message, partial_output, source: _ } = self;
        *provider == other.provider
            && *model == other.model
            && *kind == other.kind
            && *status == other.status
            && *message == other.message
            && *partial_output == other.partial_output
            && self.source_texts() == other.source_texts()
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.provider)?;
        if !self.model.is_empty() {
            write!(f, " (model `{}`)", self.model)?;
        }
        if let Some(status) = self.status {
            write!(f, " returned status {status}")?;
        }
        write!(f, ": {}; {}", self.message, self.kind.hint())?;
        match self.kind.retry_after() {
            Some(after) => write!(f, " (in {:.0} s)", after.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [LlmErrorKind; 13] = [
        LlmErrorKind::RetryLater { after: None },
        LlmErrorKind::Connection,
        LlmErrorKind::TimedOut,
        LlmErrorKind::Authentication,
        LlmErrorKind::Billing,
        LlmErrorKind::NotFound,
        LlmErrorKind::ContextLength,
        LlmErrorKind::ToolsUnsupported,
        LlmErrorKind::MalformedToolCall,
        LlmErrorKind::Refusal,
        LlmErrorKind::InvalidRequest,
        LlmErrorKind::InvalidResponse,
        LlmErrorKind::LocalRateLimit { after: Duration::ZERO },
    ];

    #[test]
    fn every_kind_whose_hint_tells_to_retry_is_retryable() {
        let kinds: Vec<_> = KINDS
            .into_iter()
            .filter(|kind| ["retry", "try again"].iter().any(|it| kind.hint().contains(it)))
            .collect();
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, ["later", "timed_out", "malformed", "rate_limited"]);
        assert!(kinds.iter().all(|kind| kind.is_retryable()));
    }

    #[test]
    fn errors_are_equal_if_the_texts_of_their_sources_are_equal() {
        let error = |source: Option<&str>| LlmError {
            source: source.map(Into::into),
            ..LlmError::new("p", LlmErrorKind::Connection, "no")
        };
        assert_eq!(error(Some("cut")), error(Some("cut")));
        assert_ne!(error(Some("cut")), error(Some("busy")));
        assert_ne!(error(Some("cut")), error(None));
        assert_ne!(error(None), LlmError { status: Some(500), ..error(None) });
    }

    #[test]
    fn every_kind_with_a_delay_is_retryable() {
        let after = Duration::from_secs(1);
        for kind in [
            LlmErrorKind::RetryLater { after: Some(after) },
            LlmErrorKind::LocalRateLimit { after },
        ] {
            assert_eq!((kind.retry_after(), kind.is_retryable()), (Some(after), true));
        }
    }
}

//! Errors of one endpoint as [`LlmError`]s, without its API key.

use super::Endpoint;
use super::client::{HttpError, HttpErrorSource};
use crate::provider::codec::ApiError;
use crate::provider::{LlmError, LlmErrorKind};

impl Endpoint {
    pub(super) fn error(&self, kind: LlmErrorKind, message: impl Into<Box<str>>) -> LlmError {
        let model = self.model.as_str().into();
        LlmError { model, ..LlmError::new(&self.provider, kind, message) }
    }

    pub(super) fn timeout_error(&self) -> LlmError {
        let seconds = self.timeout.as_secs();
        self.error(LlmErrorKind::TimedOut, format!("no complete response within {seconds} s"))
    }

    /// Converts the provider's error and masks the key.
    pub(super) fn convert_api_error(&self, api_error: ApiError) -> LlmError {
        let ApiError { kind, message, partial_output } = api_error;
        let partial_output = partial_output.map(|output| self.redact(output).into());
        LlmError { partial_output, ..self.error(kind, self.redact(message)) }
    }

    /// Converts a client's error and masks the key. The message has host and port only, because the
    /// URL may contain a key.
    pub(super) fn convert_http_error(&self, error: HttpError) -> LlmError {
        let host = self.host_and_port();
        let (kind, message, source) = match error {
            HttpError::ClientSetup { source } => {
                (LlmErrorKind::Connection, "cannot create the HTTP client".to_owned(), source)
            }
            HttpError::InvalidRequest { source } => {
                (LlmErrorKind::Connection, "invalid base URL".to_owned(), source)
            }
            HttpError::Connect { source } => {
                (LlmErrorKind::Connection, format!("cannot connect to {host}"), source)
            }
            HttpError::ConnectTimedOut { source } => {
                (LlmErrorKind::TimedOut, format!("cannot connect to {host}"), source)
            }
            HttpError::TimedOut { source } => {
                (LlmErrorKind::TimedOut, format!("the connection to {host} was lost"), source)
            }
            HttpError::Disconnected { source } => {
                (LlmErrorKind::Connection, format!("the connection to {host} was lost"), source)
            }
            HttpError::TooLarge { .. } => {
                return self.error(LlmErrorKind::InvalidResponse, error.to_string());
            }
        };
        let source = Some(self.redact_source(source) as _);
        LlmError { source, ..self.error(kind, message) }
    }

    /// Replaces a source whose text contains the key by its masked text.
    fn redact_source(&self, source: HttpErrorSource) -> HttpErrorSource {
        let mut message = source.to_string();
        let mut cause = source.source();
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        let text = format!("{message} {source:?}");
        if self.redact(text.clone()) == text { source } else { self.redact(message).into() }
    }
}

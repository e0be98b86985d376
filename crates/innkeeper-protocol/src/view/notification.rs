//! Parameters of notifications.

use serde_json::value::RawValue;

use super::{ObjectView, ViewError};
use crate::id::RequestId;

/// The progress of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressNotification {
    /// The progress token of the request.
    pub progress_token: RequestId,
    /// The current progress; finite.
    pub progress: f64,
    /// The expected final progress; finite.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<String>,
}

/// The cancellation of a request by its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelledNotification {
    /// The id of the cancelled request.
    pub request_id: RequestId,
    /// The reason of the cancellation.
    pub reason: Option<String>,
}

/// A log message.
#[derive(Clone, Debug)]
pub struct LoggingMessageNotification {
    /// The severity, as a syslog level name.
    pub level: String,
    /// The name of the logger.
    pub logger: Option<String>,
    /// The logged data: any JSON value.
    pub data: Option<Box<RawValue>>,
}

impl ProgressNotification {
    /// Reads the parameters of `notifications/progress`.
    ///
    /// # Errors
    ///
    /// Returns an error if `progressToken` is neither a string nor an integer, or if `progress` is
    /// not a finite number.
    pub fn from_raw(params: &RawValue) -> Result<Self, ViewError> {
        let params =
            ObjectView::from_raw(params, ["progressToken", "progress", "total", "message"])?;
        Ok(Self {
            progress_token: params.required_id("progressToken")?,
            progress: params.required_float("progress")?,
            total: params.float("total"),
            message: params.string("message"),
        })
    }
}

impl CancelledNotification {
    /// Reads the parameters of `notifications/cancelled`.
    ///
    /// # Errors
    ///
    /// Returns an error if `requestId` is neither a string nor an integer.
    pub fn from_raw(params: &RawValue) -> Result<Self, ViewError> {
        let params = ObjectView::from_raw(params, ["requestId", "reason"])?;
        Ok(Self { request_id: params.required_id("requestId")?, reason: params.string("reason") })
    }
}

impl LoggingMessageNotification {
    /// Reads the parameters of `notifications/message`.
    ///
    /// # Errors
    ///
    /// Returns an error if `level` is not a string.
    pub fn from_raw(params: &RawValue) -> Result<Self, ViewError> {
        let params = ObjectView::from_raw(params, ["level", "logger", "data"])?;
        Ok(Self {
            level: params.required_string("level")?,
            logger: params.string("logger"),
            data: params.raw("data"),
        })
    }
}

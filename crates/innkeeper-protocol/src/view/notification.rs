//! What comes with notifications.

use serde_json::value::RawValue;

use super::{Object, ViewError};
use crate::id::RequestId;

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressNotification {
    /// What the request was sent with.
    pub progress_token: RequestId,
    /// How far it is; finite.
    pub progress: f64,
    /// How far it will be in the end; finite.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// A request that its sender no longer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelledNotification {
    /// Which request.
    pub request_id: RequestId,
    /// Why.
    pub reason: Option<String>,
}

/// A log message.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// How bad it is, in the words of syslog.
    pub level: String,
    /// Which part of the server says it.
    pub logger: Option<String>,
    /// What it says: any JSON.
    pub data: Option<Box<RawValue>>,
}

impl ProgressNotification {
    /// Reads the parameters of `notifications/progress`.
    ///
    /// # Errors
    ///
    /// If `progressToken` is neither a string nor an integer, or `progress` is not a finite number.
    pub fn read(params: &RawValue) -> Result<Self, ViewError> {
        let params = Object::read(params, ["progressToken", "progress", "total", "message"])?;
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
    /// If `requestId` is neither a string nor an integer.
    pub fn read(params: &RawValue) -> Result<Self, ViewError> {
        let params = Object::read(params, ["requestId", "reason"])?;
        Ok(Self { request_id: params.required_id("requestId")?, reason: params.string("reason") })
    }
}

impl LogMessage {
    /// Reads the parameters of `notifications/message`.
    ///
    /// # Errors
    ///
    /// If `level` is not a string.
    pub fn read(params: &RawValue) -> Result<Self, ViewError> {
        let params = Object::read(params, ["level", "logger", "data"])?;
        Ok(Self {
            level: params.required_string("level")?,
            logger: params.string("logger"),
            data: params.raw("data"),
        })
    }
}

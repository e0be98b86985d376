//! The errors of the connection service, with their JSON-RPC codes and HTTP statuses.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

/// The code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The message is not JSON.
    ParseError,
    /// The message is not a request of JSON-RPC 2.0.
    InvalidRequest,
    /// No method has the name.
    MethodNotFound,
    /// The parameters of the method are wrong.
    InvalidParams,
    /// The service failed.
    InternalError,
    /// The protocol version of the client does not fit.
    ProtocolVersionMismatch,
    /// The capabilities of the client do not fit.
    IncompatibleCapabilities,
    /// The connection has expired or has ended.
    ConnectionExpired,
    /// No connection has the id.
    ConnectionNotFound,
    /// The connection is open.
    ConnectionAlreadyExists,
    /// The state of the connection does not permit the message.
    InvalidConnectionState,
    /// The connection does not have the feature.
    FeatureNotEnabled,
    /// The events of a connection cannot be sent or read.
    TransportError,
    /// The structure of a message is wrong.
    ValidationError,
    /// No resource has the name.
    ResourceNotFound,
    /// A resource has the name.
    ResourceAlreadyExists,
    /// The user may not use the resource.
    ResourceAccessDenied,
    /// No tool has the name.
    ToolNotFound,
    /// A tool failed.
    ToolExecutionError,
    /// No job has the id.
    JobNotFound,
    /// A job has the id.
    JobAlreadyExists,
    /// A job failed.
    JobExecutionError,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [Self; 22] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::InternalError,
        Self::ProtocolVersionMismatch,
        Self::IncompatibleCapabilities,
        Self::ConnectionExpired,
        Self::ConnectionNotFound,
        Self::ConnectionAlreadyExists,
        Self::InvalidConnectionState,
        Self::FeatureNotEnabled,
        Self::TransportError,
        Self::ValidationError,
        Self::ResourceNotFound,
        Self::ResourceAlreadyExists,
        Self::ResourceAccessDenied,
        Self::ToolNotFound,
        Self::ToolExecutionError,
        Self::JobNotFound,
        Self::JobAlreadyExists,
        Self::JobExecutionError,
    ];

    /// Returns the number of the code in JSON-RPC.
    pub fn number(self) -> i64 {
        match self {
            Self::ParseError => -32_700,
            Self::InvalidRequest => -32_600,
            Self::MethodNotFound => -32_601,
            Self::InvalidParams => -32_602,
            Self::InternalError => -32_603,
            Self::ProtocolVersionMismatch => -32_000,
            Self::IncompatibleCapabilities => -32_001,
            Self::ConnectionExpired => -32_002,
            Self::ConnectionNotFound => -32_003,
            Self::ConnectionAlreadyExists => -32_004,
            Self::InvalidConnectionState => -32_005,
            Self::FeatureNotEnabled => -32_006,
            Self::TransportError => -32_100,
            Self::ValidationError => -32_200,
            Self::ResourceNotFound => -32_300,
            Self::ResourceAlreadyExists => -32_301,
            Self::ResourceAccessDenied => -32_302,
            Self::ToolNotFound => -32_400,
            Self::ToolExecutionError => -32_401,
            Self::JobNotFound => -32_500,
            Self::JobAlreadyExists => -32_501,
            Self::JobExecutionError => -32_502,
        }
    }

    /// Returns the status of an HTTP response with this error. In a JSON-RPC response the status
    /// is 200.
    pub fn status(self) -> StatusCode {
        match self {
            Self::ParseError
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::ProtocolVersionMismatch
            | Self::IncompatibleCapabilities
            | Self::InvalidConnectionState
            | Self::ValidationError => StatusCode::BAD_REQUEST,
            Self::ConnectionExpired | Self::ConnectionNotFound => StatusCode::UNAUTHORIZED,
            Self::MethodNotFound
            | Self::ResourceNotFound
            | Self::ToolNotFound
            | Self::JobNotFound => StatusCode::NOT_FOUND,
            Self::ConnectionAlreadyExists
            | Self::ResourceAlreadyExists
            | Self::JobAlreadyExists => StatusCode::CONFLICT,
            Self::ResourceAccessDenied => StatusCode::FORBIDDEN,
            Self::FeatureNotEnabled => StatusCode::NOT_IMPLEMENTED,
            Self::TransportError => StatusCode::SERVICE_UNAVAILABLE,
            Self::InternalError | Self::ToolExecutionError | Self::JobExecutionError => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.number())
    }
}

impl<'de> serde::Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        Self::ALL.into_iter().find(|code| code.number() == number).ok_or_else(|| {
            serde::de::Error::custom(format!("{number} is no error code of the service"))
        })
    }
}

/// An error of the connection service.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ConnectionError {
    /// The code.
    pub code: ErrorCode,
    /// The message, for the developer of the client.
    pub message: String,
    /// More about the error. Errors of the service itself have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ConnectionError {
    /// Creates an error without data.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// A request without the id of a connection.
    pub(crate) fn missing_id() -> Self {
        Self::new(ErrorCode::ConnectionNotFound, "Missing connection ID")
    }

    pub(crate) fn several_ids() -> Self {
        let message = "The request has several connection IDs: send one header or one cookie";
        Self::new(ErrorCode::ValidationError, message)
    }

    /// A connection that expired or ended.
    pub(crate) fn expired() -> Self {
        Self::new(ErrorCode::ConnectionExpired, INVALID_OR_EXPIRED)
    }

    /// An id that belongs to no connection of this user.
    pub(crate) fn unknown() -> Self {
        Self::new(ErrorCode::ConnectionNotFound, INVALID_OR_EXPIRED)
    }

    /// A feature that the connection does not have.
    pub(crate) fn unknown_path() -> Self {
        Self::new(ErrorCode::MethodNotFound, "the connection service has no such path")
    }

    pub(crate) fn feature_not_enabled(feature: &str) -> Self {
        let message = format!("feature `{feature}` is not enabled for this connection");
        Self::new(ErrorCode::FeatureNotEnabled, message)
    }
}

/// The message for a connection that cannot be used.
const INVALID_OR_EXPIRED: &str = "Invalid or expired connection";

impl IntoResponse for ConnectionError {
    /// Returns the error as JSON, with the status of its code.
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.code.status(), kind, json!(self).to_string()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Proves: B36, B42
    #[test]
    fn each_error_has_a_number_of_its_own_and_a_status() {
        let numbers: HashSet<i64> = ErrorCode::ALL.into_iter().map(ErrorCode::number).collect();
        assert_eq!(numbers.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error());
            let error = ConnectionError::new(code, "why").with_data(json!(["because"]));
            let value = serde_json::to_value(&error).unwrap();
            assert_eq!(
                value,
                json!({ "code": code.number(), "message": "why", "data": ["because"] })
            );
            assert_eq!(serde_json::from_value::<ConnectionError>(value).unwrap(), error);
        }
        let plain = json!(ConnectionError::new(ErrorCode::ParseError, "why"));
        assert_eq!(plain, json!({ "code": -32_700, "message": "why" }));
    }
}

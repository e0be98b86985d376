//! The connection of a request to the Python application, or the response to that request.

use axum::body::to_bytes;
use axum::extract::FromRequestParts as _;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use innkeeper_gateway::connections::{Connection, ConnectionError, ErrorCode};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::Connections;
use crate::failure::Failure;
use crate::json::Tape;
use crate::operation::{Outcome, Output};

/// Maximum size in bytes of a response of the connection service.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

pub(super) async fn find(
    connections: Option<&Connections>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    feature: Option<&str>,
) -> Outcome {
    let found = match connections {
        Some(connections) => connections.find(headers, feature).await,
        None => {
            let message = "the server has no connections";
            Err(ConnectionError::new(ErrorCode::TransportError, message).into_response())
        }
    };
    let answer = match found {
        Ok(Connection(connection)) => json!({ "connection": connection }),
        Err(response) => {
            let status = response.status().as_u16();
            let headers: Vec<_> = response
                .headers()
                .iter()
                .filter_map(|(name, value)| text_of(name, value))
                .collect();
            let body = to_bytes(response.into_body(), MAX_RESPONSE_BYTES).await;
            let body = body.map_err(|error| Failure::Internal(error.to_string()))?;
            let body = String::from_utf8_lossy(&body);
            json!({ "status": status, "headers": headers, "body": body })
        }
    };
    let json = to_raw_value(&answer).map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(Output::Json(Tape::new(json)))
}

impl Connections {
    async fn find(
        &self,
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        feature: Option<&str>,
    ) -> Result<Connection, Response> {
        let headers = header_map(headers).ok_or_else(|| StatusCode::BAD_REQUEST.into_response())?;
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers = headers;
        parts.extensions.insert(self.access.clone());
        let found = Connection::from_request_parts(&mut parts, &()).await;
        let connection = found.map_err(IntoResponse::into_response)?;
        match feature {
            Some(name) if !self.service.is_feature_enabled(name, &connection.0) => {
                let message = format!("feature `{name}` is not enabled for this connection");
                let error = ConnectionError::new(ErrorCode::FeatureNotEnabled, message);
                Err(error.into_response())
            }
            Some(_) | None => Ok(connection),
        }
    }
}

/// Returns the headers; `None` if one of them is none.
fn header_map(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(&name).ok()?;
        headers.append(name, HeaderValue::from_bytes(&value).ok()?);
    }
    Some(headers)
}

fn text_of(name: &HeaderName, value: &HeaderValue) -> Option<(String, String)> {
    Some((name.to_string(), value.to_str().ok()?.to_owned()))
}

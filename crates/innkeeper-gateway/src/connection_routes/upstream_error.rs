//! Converts the errors of the gateway's requests to those of the connection service.

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{method, skim};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connections::{ConnectionError, ErrorCode};
use crate::error::{ErrorKind, RpcError};

/// The code of MCP for a resource that does not exist.
const MCP_RESOURCE_NOT_FOUND: i64 = -32_002;

/// Maximum number of characters of a failed tool's text in the message.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// Converts an error. The data of the gateway and of a server stay in the data.
pub(super) fn convert(method: &str, error: RpcError) -> ConnectionError {
    let RpcError { kind, code: number, message, data } = error;
    let is_tool = method == method::TOOLS_CALL;
    let is_resource = method == method::RESOURCES_READ;
    let code = match kind {
        ErrorKind::UnknownItem if is_tool => ErrorCode::ToolNotFound,
        ErrorKind::UnknownItem if is_resource => ErrorCode::ResourceNotFound,
        ErrorKind::Request | ErrorKind::Server
            if is_resource && number == MCP_RESOURCE_NOT_FOUND =>
        {
            ErrorCode::ResourceNotFound
        }
        ErrorKind::Server if is_resource && is_unknown_uri(number, data.as_deref()) => {
            ErrorCode::ResourceNotFound
        }
        ErrorKind::Request | ErrorKind::UnknownItem | ErrorKind::Server
            if number == code::INVALID_PARAMS =>
        {
            ErrorCode::InvalidParams
        }
        ErrorKind::Request if number == code::METHOD_NOT_FOUND => ErrorCode::MethodNotFound,
        ErrorKind::Request => ErrorCode::InvalidRequest,
        ErrorKind::Rate { .. } => ErrorCode::TransportError,
        ErrorKind::Server
        | ErrorKind::Unavailable
        | ErrorKind::ProcessLimit
        | ErrorKind::Timeout
        | ErrorKind::Protocol
        | ErrorKind::Withheld
        | ErrorKind::NotApproved
        | ErrorKind::Cancelled
            if is_tool =>
        {
            ErrorCode::ToolExecutionError
        }
        ErrorKind::Server
        | ErrorKind::Unavailable
        | ErrorKind::ProcessLimit
        | ErrorKind::Timeout
        | ErrorKind::Protocol
        | ErrorKind::Withheld
        | ErrorKind::NotApproved
        | ErrorKind::UnknownItem
        | ErrorKind::Cancelled
        | ErrorKind::Internal => ErrorCode::InternalError,
    };
    let data = data.and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
    let data = match kind {
        ErrorKind::Server => Some(json!({ "code": number, "data": data })),
        _ => data,
    };
    ConnectionError { code, message, data }
}

/// Returns whether a server of 2026-07-28 says that it has no resource with a URI.
fn is_unknown_uri(number: i64, data: Option<&RawValue>) -> bool {
    number == code::INVALID_PARAMS
        && data.is_some_and(|data| skim::member(data.get(), "uri").is_some())
}

/// Returns the error for a result of a tool that failed (`isError`), with the result as its data.
pub(super) fn failed_tool(method: &str, result: &RawValue) -> Option<ConnectionError> {
    if method != method::TOOLS_CALL || skim::member(result.get(), "isError") != Some("true") {
        return None;
    }
    let data: Value = serde_json::from_str(result.get()).ok()?;
    let texts = data["content"].as_array().into_iter().flatten();
    let text = texts.filter_map(|block| block["text"].as_str()).next().unwrap_or("the tool failed");
    let message: String = text.chars().take(MAX_MESSAGE_CHARS).collect();
    Some(ConnectionError::new(ErrorCode::ToolExecutionError, message).with_data(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: B40
    #[test]
    fn an_unknown_resource_has_its_code_with_servers_of_both_eras() {
        let converted = |method, number, data: Value| {
            let data = serde_json::value::to_raw_value(&data).ok();
            let message = "unknown resource".to_owned();
            convert(method, RpcError { kind: ErrorKind::Server, code: number, message, data })
        };
        let uri = json!({ "uri": "test://none" });
        for number in [MCP_RESOURCE_NOT_FOUND, code::INVALID_PARAMS] {
            let error = converted(method::RESOURCES_READ, number, uri.clone());
            assert_eq!(error.code, ErrorCode::ResourceNotFound, "{number}");
            assert_eq!(error.data, Some(json!({ "code": number, "data": uri })));
        }
        for (method, data) in [(method::RESOURCES_READ, json!({})), (method::PROMPTS_GET, uri)] {
            let error = converted(method, code::INVALID_PARAMS, data);
            assert_eq!(error.code, ErrorCode::InvalidParams, "{method}");
        }
    }
}

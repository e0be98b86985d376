//! Error codes of JSON-RPC and MCP.

/// The bytes are not valid JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid for the method. Since 2026-07-28 also: the resource does not exist.
pub const INVALID_PARAMS: i64 = -32602;
/// An internal error of the peer.
pub const INTERNAL_ERROR: i64 = -32603;
/// The resource does not exist (before 2026-07-28).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// An HTTP header contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that its sender did not declare (2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not support the revision of the request. `data.supported` lists the supported
/// revisions (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The user must first open a URL (2025-11-25 only).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

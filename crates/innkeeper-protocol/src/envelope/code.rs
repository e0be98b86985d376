//! The error codes of JSON-RPC and of the Model Context Protocol.

/// The bytes were not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON was no request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method; since 2026-07-28 also a resource that does not exist.
pub const INVALID_PARAMS: i64 = -32602;
/// The peer failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such resource (before 2026-07-28).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// An HTTP header contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that its sender did not declare (2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not speak the request's revision; `data.supported` says which it does
/// (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The user must visit a page first (2025-11-25 only).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

//! The Model Context Protocol without I/O: framing, messages and typed views.
//!
//! This crate does not read, write, wait, log or access the clock. Raw JSON is the source of truth:
//! every typed view is read from raw JSON and does not replace the raw JSON, so callers can forward
//! a server's data unchanged.
//!
//! In reading order: [`framing`] splits bytes into lines and [`sse`] splits bytes into events.
//! [`envelope`] parses and serializes messages. [`skim`] reads JSON text without a tree. [`http`]
//! has the HTTP headers. [`view`] and [`request_meta`] read typed parts of messages. [`handshake`] is
//! the server's side of the handshake.

pub mod framing;
pub mod sse;

mod base64_text;
pub mod envelope;
mod id;
mod json_string;
mod json_text;
mod raw_text;
pub mod skim;
mod text;

pub mod http;
pub mod method;
mod page_cursor;
mod params_error;
mod revision;

pub mod handshake;
pub mod request_meta;
mod request_params;
pub mod view;

pub use base64_text::decode_base64;
pub use envelope::{ErrorObject, Incoming, MalformedKind, MalformedMessage, Message};
pub use framing::{Frame, LineFramer};
pub use id::RequestId;
pub use json_text::{JsonText, write_member, write_object, write_value};
pub use page_cursor::{PageCursor, PageCursorError};
pub use params_error::ParamsError;
pub use request_params::RequestParams;
pub use revision::{Era, ParseRevisionError, Revision};
pub use sse::{SseDecoder, SseEvent};
pub use view::ViewError;

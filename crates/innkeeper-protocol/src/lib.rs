//! The Model Context Protocol without I/O: bytes ↔ lines or events ↔ messages ↔ lenient views.
//!
//! Nothing here reads, writes, waits, logs or looks at a clock. Raw JSON is the truth: every typed
//! view is read from it and none replaces it, so what a server sends can be handed on unchanged.
//!
//! In reading order: [`framing`] cuts bytes into lines and [`sse`] into events, [`envelope`] makes a message of a line and a
//! line of a message, [`skim`] walks JSON text without building a tree, [`http`] knows the headers,
//! [`view`] and [`modern`] read typed parts out of results.

pub mod framing;
pub mod sse;

pub mod envelope;
mod id;
pub mod skim;
mod text;

pub mod http;
pub mod method;
mod revision;

pub mod modern;
pub mod view;

pub use envelope::{ErrorObject, Incoming, Malformed, MalformedKind, Message};
pub use framing::{Frame, LineFramer};
pub use id::RequestId;
pub use revision::{Era, ParseRevisionError, Revision};
pub use sse::{SseDecoder, SseEvent};
pub use view::ViewError;

//! Shared parts of OpenAI's two codecs.

mod brace_tracker;
mod error;
mod object_builder;
mod schema;
mod stream;

pub(super) use brace_tracker::BraceTracker;
pub(super) use error::{decode_error, decode_error_object};
pub(super) use object_builder::{ObjectBuilder, to_raw};
pub(super) use schema::is_strict;
pub(super) use stream::{EventAccumulator, StreamDecoder};

/// The name of a document; the APIs require one.
pub(super) const DOCUMENT_NAME: &str = "document.pdf";

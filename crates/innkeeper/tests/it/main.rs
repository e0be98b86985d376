//! The names of other documents, used as those documents use them, and the examples.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod compat;
mod document;
mod examples;
mod prompted;

//! Runs the quick start of document 001 with a server, and the modes of the document.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod quick_start;
mod tokens;

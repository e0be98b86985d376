//! Integration tests of the compatibility API and of the examples.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod compat;
mod examples;
mod interceptor;
mod prompt_host;
mod streaming_page;

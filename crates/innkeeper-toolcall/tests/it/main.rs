//! What holds for every input, and what real programs make of our output.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]
#![expect(clippy::print_stderr, reason = "what is skipped, and what a long run found, is said")]

mod any_schema;
mod bfcl;
mod formats;
mod forms;
mod gbnf;
mod given;
mod grammars;
mod ladder;
#[cfg(target_os = "linux")]
mod local;
mod meaning;
mod sloppy;
mod states;
mod stream;
mod subset;

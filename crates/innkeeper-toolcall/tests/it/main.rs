//! Integration tests: properties of any input, and output checked by real programs.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]
#![expect(clippy::print_stderr, reason = "prints skipped tests and results of long runs")]

mod any_schema;
mod bfcl;
mod call_forms;
mod call_grid;
mod call_resolution;
mod equivalence;
mod formats;
mod gbnf;
mod grammar_grid;
mod grammars;
#[cfg(target_os = "linux")]
mod linear_time;
#[cfg(target_os = "linux")]
mod local;
mod model_formats;
mod provider_limits;
mod pythonic;
mod raw_values;
mod schema_checker;
mod sections;
mod sloppy_json;
mod states;
mod strategies;
mod stream;

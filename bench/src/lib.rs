//! Shared code of the benchmark programs: echo server, workload, clients, figures.

pub mod client;
pub mod echo;
pub mod figures;
pub mod http_echo;
pub mod json_scan;
pub mod program;
pub mod raw_pipe;
pub mod workload;

#[cfg(feature = "rmcp")]
pub mod rmcp_client;

#[cfg(all(feature = "innkeeper", not(test)))]
pub mod innkeeper_client;

// The log modules of the command-line program, as symbolic links, so that the benchmark measures
// the shipped code.
#[cfg(all(feature = "innkeeper", not(test)))]
mod error_chain;
#[cfg(all(feature = "innkeeper", not(test)))]
#[expect(
    dead_code,
    unused_imports,
    reason = "benchmark programs exit without a flush, print nothing on stderr and open no log file"
)]
mod log;
#[cfg(all(feature = "innkeeper", not(test)))]
#[expect(dead_code, reason = "the benchmark has no secrets to mask")]
mod secret_mask;
#[cfg(all(feature = "innkeeper", not(test)))]
mod text;
#[cfg(all(feature = "innkeeper", not(test)))]
#[expect(dead_code, reason = "the log appends formatted times")]
mod timestamp;

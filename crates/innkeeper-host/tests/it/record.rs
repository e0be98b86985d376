//! Diagnostics: log, events, metrics, status and error classes.

mod audit;
mod class;
mod log;
mod metrics;
mod spans;

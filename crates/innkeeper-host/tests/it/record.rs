//! What is kept of it all: log, events, metrics, status, and the classes of errors.

mod audit;
mod class;
mod log;
mod spans;
mod told;

//! Runs the quick start of document 001 with a server, and the modes of the document.

mod quick_start;
mod tokens;

//! Tests of the Chat Completions codec.

mod limits;
mod quirks;
mod request;
mod response;

//! Tests of the Responses codec.

mod request;
mod response;
mod stream;

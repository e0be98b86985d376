//! The integration tests of this crate, one binary.

mod any_schema;
mod bfcl;
mod meaning;
mod subset;

//! What holds for every input, through the public interface.

mod any_schema;
mod bfcl;
mod formats;
mod given;
mod ladder;
mod meaning;
mod sloppy;
mod stream;
mod subset;

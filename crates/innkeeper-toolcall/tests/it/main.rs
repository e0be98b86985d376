//! What holds for every input, through the public interface.

mod given;
mod ladder;
mod sloppy;
mod stream;

//! Chat Completions, as requests are written and answers are read.

mod encode;
mod limits;
mod quirks;
mod read;

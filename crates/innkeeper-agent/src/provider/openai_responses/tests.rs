//! Responses, as requests are written and answers are read.

mod encode;
mod read;
mod stream;

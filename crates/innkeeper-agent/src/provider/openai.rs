//! What OpenAI's two wires share.

mod balance;
mod fault;
mod members;
mod schema;
mod stream;

pub(super) use balance::Balance;
pub(super) use fault::{fault, told};
pub(super) use members::{Members, raw};
pub(super) use schema::is_strict;
pub(super) use stream::{Gather, Stream};

//! The part of the command's output room that its log needs.

#[expect(dead_code, reason = "the log needs less than the whole room")]
mod safe;

pub(crate) use safe::{deceives, inline};

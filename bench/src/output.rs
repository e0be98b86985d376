//! The part of the command's output room that its log needs.

mod safe;

pub(crate) use safe::{deceives, inline};

//! JSON between Python and the library, without a detour through other values.

mod from_python;
mod tape;
mod to_python;

pub(crate) use from_python::{parameter_json, to_arguments, to_json};
pub(crate) use tape::Tape;
pub(crate) use to_python::{Progress, ToPython};

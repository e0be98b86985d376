//! The form of a file: the spellings of other hosts, the keys as types, and the JSON Schema.

pub(crate) mod alias;
pub(crate) mod dialect;
pub(crate) mod document;
pub(crate) mod raw;
pub(crate) mod raw_value;
pub(crate) mod schema;
pub(crate) mod schema_match;
pub(crate) mod unknown_keys;
pub(crate) mod validate;
pub(crate) mod written;

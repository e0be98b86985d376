//! The settings after the expansion of variables.

pub(crate) mod argument_rule;
pub(crate) mod extra_keys;
pub(crate) mod filter;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod inherited_environment;
pub(crate) mod pattern;
pub(crate) mod seconds;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod shared;

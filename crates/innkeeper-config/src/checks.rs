//! Checks the tree of a file and converts it to settings.

pub(crate) mod cycles;
pub(crate) mod dependencies;
pub(crate) mod entry_checker;
pub(crate) mod host;
pub(crate) mod launch;
pub(crate) mod names;
pub(crate) mod oauth;
pub(crate) mod parsed_source;
pub(crate) mod remote;
pub(crate) mod secret_scan;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod shared_settings;

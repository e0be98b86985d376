//! The file with variables of one server.

use std::path::PathBuf;

/// The file with variables of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFile {
    /// Name of the server.
    pub server: String,
    /// `envFile` as written in the file.
    pub written: String,
    /// Path after the expansion of variables; relative to the working directory if the environment of
    /// the configuration has none. The file may not exist.
    pub path: PathBuf,
}

//! The variables of the host that a server inherits.

use serde::{Serialize, Serializer};

/// The variables of the host that a server inherits: the key `inheritEnv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InheritedEnvironment {
    /// `"strict"`: the variables that a program needs to find its home directory, its language and
    /// other programs.
    Strict,
    /// `false`: also certificate authorities, proxies and the directories of the user, and for a
    /// package runner its own settings without secrets.
    #[default]
    Standard,
    /// `true`: all variables.
    Complete,
}

impl Serialize for InheritedEnvironment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Strict => serializer.serialize_str("strict"),
            Self::Standard => serializer.serialize_bool(false),
            Self::Complete => serializer.serialize_bool(true),
        }
    }
}

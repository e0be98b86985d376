//! Whether what passes is looked at for attacks, and what becomes of what looks like one.

use serde::Serialize;

/// What is done about what looks like an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardMode {
    /// Nothing is looked at.
    #[default]
    Off,
    /// It is told and passes.
    Flag,
    /// It is told and held back.
    Refuse,
}

/// What is looked at, each with what is done about it. Default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardModes {
    /// Tools and instructions, whenever they are read.
    pub definitions: GuardMode,
    /// Arguments of tools, before they are sent.
    pub arguments: GuardMode,
    /// Results and errors of tools, before they are given to the application.
    pub results: GuardMode,
}

impl GuardModes {
    /// The same for everything.
    pub(super) fn all(mode: GuardMode) -> Self {
        Self { definitions: mode, arguments: mode, results: mode }
    }
}

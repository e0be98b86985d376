//! The directory of what the program keeps between commands.

use std::path::PathBuf;

use innkeeper_host::Environment;

/// Returns the directory for the process ledger, tokens and trust decisions, after the XDG base
/// directory specification.
pub(crate) fn state_dir(environment: &Environment) -> Option<PathBuf> {
    let state = match environment.get("XDG_STATE_HOME").filter(|path| path.starts_with('/')) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment.home()?).join(".local/state"),
    };
    Some(state.join("innkeeper"))
}

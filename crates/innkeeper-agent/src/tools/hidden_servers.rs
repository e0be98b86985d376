//! The servers that a conversation does not use.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The servers whose tools, prompts and resources the model of a conversation does not get, by name.
/// The servers keep running. Clones share the names.
#[derive(Clone, Debug, Default)]
pub struct HiddenServers(Arc<RwLock<BTreeSet<String>>>);

impl HiddenServers {
    /// Hides a server. Returns whether the server was not hidden.
    pub fn hide(&self, server: &str) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned())
    }

    /// Shows a server again. Returns whether the server was hidden.
    pub fn show(&self, server: &str) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(server)
    }

    /// Shows all servers again.
    pub fn show_all(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns whether a server is hidden.
    pub fn contains(&self, server: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(server)
    }

    /// Returns the names of the hidden servers.
    pub fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns why an item of a server cannot be used; `None` if the server is not hidden.
    pub fn refusal(&self, server: &str) -> Option<String> {
        let is_hidden = self.contains(server);
        is_hidden.then(|| format!("the user disabled the server `{server}` in this conversation"))
    }
}

//! Options for the sign-in at remote servers.

use std::path::PathBuf;
use std::sync::Arc;

use super::HostBuilder;
use crate::transport::auth::{TokenProvider, TokenStore, UserAgent};

impl HostBuilder {
    /// Sets the user agent, which opens the sign-in pages of remote servers for a person.
    ///
    /// A sign-in may take longer than a call: the call ends, the sign-in continues, and the next
    /// call uses the token. A start waits at most six minutes for a sign-in; this time does not
    /// count against the start limits. Default: no user agent; a server that requires a sign-in is
    /// unavailable.
    #[must_use]
    pub fn user_agent(mut self, agent: impl UserAgent) -> Self {
        self.sign_in.user_agent = Some(Arc::new(agent));
        self
    }

    /// Sets the directory for the tokens of remote servers. Only the owner can read the files.
    /// Several hosts may share the directory. Default: tokens exist only in memory.
    #[must_use]
    pub fn token_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.sign_in.token_directory = Some(directory.into());
        self
    }

    /// Sets a token store in place of files, for example the system's keyring.
    ///
    /// With a [`token_directory`](Self::token_directory), several hosts use the directory only for
    /// locks. Without one, two hosts that renew the same token at the same time may lose the token.
    /// Default: files.
    #[must_use]
    pub fn token_store(mut self, store: impl TokenStore) -> Self {
        self.sign_in.token_store = Some(Arc::new(store));
        self
    }

    /// Sets the provider of tokens for remote servers, in place of the OAuth client, the user agent
    /// and the token store.
    #[must_use]
    pub fn token_provider(mut self, provider: impl TokenProvider) -> Self {
        self.sign_in.token_provider = Some(Arc::new(provider));
        self
    }
}

//! The authorization settings of the application and the bearer authentication of each server.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use innkeeper_config::OauthConfig;
use reqwest::header::AUTHORIZATION;
use tokio::time::timeout;

use super::auth_store::AuthStore;
use super::bearer_auth::BearerAuth;
use super::client::AuthHttpClient;
use super::oauth::{self, OauthContext};
use super::{AuthError, AuthErrorKind, ProtectedResource, TokenProvider, TokenStore, UserAgent};
use crate::tasks::BackgroundTasks;
use crate::transport::RemoteEndpoint;

/// Timeout for a sign-in during a start: five minutes for the person and one minute for the
/// requests before and after.
const SIGN_IN_TIMEOUT: Duration = Duration::from_mins(6);

/// The authorization of all servers of a host. Tokens outlive connections.
#[derive(Default)]
pub(crate) struct AuthManager {
    /// The application's token provider in place of the OAuth client.
    pub(crate) token_provider: Option<Arc<dyn TokenProvider>>,
    /// The user agent. Without a user agent no person can sign in.
    pub(crate) user_agent: Option<Arc<dyn UserAgent>>,
    /// The directory for tokens. Without a directory, tokens stay in memory.
    pub(crate) token_directory: Option<PathBuf>,
    /// The application's token store in place of files.
    pub(crate) token_store: Option<Arc<dyn TokenStore>>,
    servers: Mutex<HashMap<Arc<str>, ServerAuth>>,
}

/// The bearer authentication of a server, with the settings that it was created for.
struct ServerAuth {
    url: String,
    oauth: Option<OauthConfig>,
    bearer_auth: Arc<BearerAuth>,
}

impl fmt::Debug for AuthManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthManager")
            .field("user_agent", &self.user_agent.is_some())
            .field("token_directory", &self.token_directory)
            .finish_non_exhaustive()
    }
}

impl AuthManager {
    fn find(&self, server: &str) -> Option<Arc<BearerAuth>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(server).map(|server_auth| server_auth.bearer_auth.clone())
    }

    /// Removes the tokens of a removed server from memory. Stored tokens stay.
    pub(crate) fn forget(&self, server: &str) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = servers.remove(server);
    }

    pub(crate) fn is_signing_in(&self, server: &str) -> bool {
        self.find(server).is_some_and(|access| access.is_signing_in())
    }

    /// Signs in at a server that did not ask for a token. Returns whether there is a token.
    pub(crate) async fn sign_in(&self, server: &str) -> Result<bool, AuthError> {
        match self.find(server) {
            Some(access) => access.sign_in().await,
            None => Ok(false),
        }
    }

    /// Returns the number of successful sign-ins of a server, at all its URLs.
    pub(crate) fn sign_in_count(&self, server: &str) -> u32 {
        self.find(server).map_or(0, |access| access.sign_in_count())
    }

    /// Waits for a sign-in after a start timed out. Returns the result of the running sign-in,
    /// success if the number of sign-ins differs from `before`, or `None` without a sign-in.
    pub(crate) async fn wait_sign_in_since(
        &self,
        server: &str,
        before: u32,
    ) -> Option<Result<(), AuthErrorKind>> {
        let access = self.find(server)?;
        match timeout(SIGN_IN_TIMEOUT, access.wait_sign_in()).await.ok()? {
            None if access.sign_in_count() != before => Some(Ok(())),
            result => result,
        }
    }

    /// Returns the bearer authentication of a server. Returns `None` for a server with
    /// `Authorization` in the configuration, with a headers helper, or on a Unix socket.
    pub(in crate::transport) fn bearer_auth(
        &self,
        server: &Arc<str>,
        remote: &RemoteEndpoint,
        oauth: Option<&OauthConfig>,
        tasks: &BackgroundTasks,
    ) -> Option<Arc<BearerAuth>> {
        let has_credentials = remote.headers.contains_key(AUTHORIZATION) || remote.helper.is_some();
        if has_credentials || remote.socket.is_some() {
            return None;
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let url = remote.url.as_str();
        if let Some(server_auth) = servers.get(server)
            && server_auth.url == url
            && server_auth.oauth.as_ref() == oauth
        {
            return Some(server_auth.bearer_auth.clone());
        }
        let authorize = match &self.token_provider {
            Some(authorize) => authorize.clone(),
            None => {
                let context = OauthContext {
                    server: server.clone(),
                    url: remote.url.clone(),
                    config: oauth.cloned().unwrap_or_default(),
                    http: Arc::new(AuthHttpClient::new(remote)),
                    user_agent: self.user_agent.clone(),
                    store: AuthStore::new(
                        self.token_directory.as_deref(),
                        self.token_store.as_ref(),
                        server,
                        url,
                    ),
                };
                Arc::new(oauth::OauthProvider::new(context)) as Arc<dyn TokenProvider>
            }
        };
        let protected = ProtectedResource { server: server.clone(), url: url.into() };
        let sign_ins = servers.get(server).map_or(0, |before| before.bearer_auth.sign_in_count());
        let access = Arc::new(BearerAuth::new(protected, authorize, tasks.clone(), sign_ins));
        let server_auth =
            ServerAuth { url: url.to_owned(), oauth: oauth.cloned(), bearer_auth: access.clone() };
        servers.insert(server.clone(), server_auth);
        Some(access)
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::*;
    use innkeeper_config::{Environment, ExpandedValue, TransportConfig};

    fn bearer_auth(sign_in: &AuthManager, url: &str) -> Arc<BearerAuth> {
        let url = ExpandedValue::new(url.to_owned(), url);
        let transport = TransportConfig::Http { url, headers: IndexMap::new() };
        let remote =
            RemoteEndpoint::from_config(&transport, &Environment::default()).unwrap().unwrap();
        sign_in.bearer_auth(&"inn".into(), &remote, None, &BackgroundTasks::default()).unwrap()
    }

    #[tokio::test]
    async fn a_new_address_does_not_make_an_earlier_sign_in_look_like_a_new_one_or_be_forgotten() {
        let sign_in = AuthManager::default();
        let first = bearer_auth(&sign_in, "http://a/mcp");
        first.add_sign_ins(2);
        assert_eq!(sign_in.sign_in_count("inn"), 2);
        let second = bearer_auth(&sign_in, "http://b/mcp");
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(sign_in.wait_sign_in_since("inn", 2).await, None);
        second.add_sign_ins(1);
        assert_eq!(sign_in.wait_sign_in_since("inn", 2).await, Some(Ok(())));
        sign_in.forget("inn");
        assert_eq!(sign_in.sign_in_count("inn"), 0);
    }
}

//! What an application says about signing in, and from it the access to each server.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::AUTHORIZATION;
use tokio::time::timeout;

use super::access::Access;
use super::client::Outgoing;
use super::oauth::{self, Terms};
use super::store::Store;
use super::{AuthFault, Authorize, Protected, TokenStore, UserAgent};
use crate::config::Oauth;
use crate::tasks::Tasks;
use crate::transport::Remote;

/// How long a start waits for a sign-in: the five minutes of a person, and a minute for the requests
/// before and after.
const SIGNING_IN: Duration = Duration::from_mins(6);

/// How the servers of a host are signed in at. Tokens outlive the connections they are for.
#[derive(Default)]
pub(crate) struct SignIn {
    /// In place of the OAuth client of our own.
    pub(crate) authorize: Option<Arc<dyn Authorize>>,
    /// Who opens browsers; without one nobody can sign in.
    pub(crate) agent: Option<Arc<dyn UserAgent>>,
    /// Where tokens are kept; without it in memory only.
    pub(crate) directory: Option<PathBuf>,
    /// Where they are kept in place of files there.
    pub(crate) store: Option<Arc<dyn TokenStore>>,
    servers: Mutex<HashMap<Arc<str>, Known>>,
}

/// The access to a server at the address it was made for.
struct Known {
    url: String,
    oauth: Option<Oauth>,
    access: Arc<Access>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("agent", &self.agent.is_some())
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl SignIn {
    fn known(&self, server: &str) -> Option<Arc<Access>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(server).map(|known| known.access.clone())
    }

    /// Forgets the tokens of a server that is there no longer; those that are kept stay so.
    pub(crate) fn forget(&self, server: &str) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        drop(servers.remove(server));
    }

    /// Whether somebody is signing in at a server.
    pub(crate) fn is_under_way(&self, server: &str) -> bool {
        self.known(server).is_some_and(|access| access.is_under_way())
    }

    /// How often somebody has signed in at a server, whatever its addresses were.
    pub(crate) fn landed(&self, server: &str) -> u32 {
        self.known(server).map_or(0, |access| access.landed())
    }

    /// What a start that ran out of time has to know: whether somebody has signed in since there
    /// were `before`, for which a sign-in that is under way is waited for; `None` if nobody has.
    pub(crate) async fn landed_since(
        &self,
        server: &str,
        before: u32,
    ) -> Option<Result<(), AuthFault>> {
        let access = self.known(server)?;
        match timeout(SIGNING_IN, access.landing()).await.ok()? {
            None if access.landed() != before => Some(Ok(())),
            landed => landed,
        }
    }

    /// The access to a server; `None` for one that has its `Authorization` in the configuration or
    /// its headers from a program, and for one on a Unix socket.
    pub(in crate::transport) fn access(
        &self,
        server: &Arc<str>,
        remote: &Remote,
        oauth: Option<&Oauth>,
        tasks: &Tasks,
    ) -> Option<Arc<Access>> {
        let given = remote.headers.contains_key(AUTHORIZATION) || remote.helper.is_some();
        if given || remote.socket.is_some() {
            return None;
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let url = remote.url.as_str();
        if let Some(known) = servers.get(server)
            && known.url == url
            && known.oauth.as_ref() == oauth
        {
            return Some(known.access.clone());
        }
        let authorize = match &self.authorize {
            Some(authorize) => authorize.clone(),
            None => {
                let terms = Terms {
                    server: server.clone(),
                    url: remote.url.clone(),
                    config: oauth.cloned().unwrap_or_default(),
                    http: Arc::new(Outgoing::new(remote)),
                    agent: self.agent.clone(),
                    store: Store::new(self.directory.as_deref(), self.store.as_ref(), server, url),
                };
                Arc::new(oauth::Oauth::new(terms)) as Arc<dyn Authorize>
            }
        };
        let protected = Protected { server: server.clone(), url: url.into() };
        let landed = servers.get(server).map_or(0, |before| before.access.landed());
        let access = Arc::new(Access::new(protected, authorize, tasks.clone(), landed));
        let known = Known { url: url.to_owned(), oauth: oauth.cloned(), access: access.clone() };
        servers.insert(server.clone(), known);
        Some(access)
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::*;
    use crate::config::{Environment, Expanded, TransportConfig};

    fn access(sign_in: &SignIn, url: &str) -> Arc<Access> {
        let url = Expanded::new(url.to_owned(), url);
        let transport = TransportConfig::Http { url, headers: IndexMap::new() };
        let remote = Remote::of(&transport, &Environment::default()).unwrap().unwrap();
        sign_in.access(&"inn".into(), &remote, None, &Tasks::default()).unwrap()
    }

    #[tokio::test]
    async fn a_new_address_does_not_make_an_earlier_sign_in_look_like_a_new_one_or_be_forgotten() {
        let sign_in = SignIn::default();
        let first = access(&sign_in, "http://a/mcp");
        first.count(2);
        assert_eq!(sign_in.landed("inn"), 2);
        let second = access(&sign_in, "http://b/mcp");
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(sign_in.landed_since("inn", 2).await, None);
        second.count(1);
        assert_eq!(sign_in.landed_since("inn", 2).await, Some(Ok(())));
        sign_in.forget("inn");
        assert_eq!(sign_in.landed("inn"), 0);
    }
}

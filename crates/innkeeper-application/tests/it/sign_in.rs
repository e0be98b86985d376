//! Sign-in: the token provider, the user agent and the token store of an application.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use innkeeper::auth::{
    AuthorizationRequest, Challenge, ProtectedResource, RedirectFuture, TokenFuture, TokenProvider,
    TokenStore, UserAgent,
};
use innkeeper::config::Secret;
use innkeeper::{Config, Environment, Host, HostBuilder};
use serde_json::json;

use crate::protected_server::{ProtectedServer, http_request};

/// Returns a host builder with the protected server `vault`.
fn builder_for(server: &ProtectedServer) -> HostBuilder {
    let json = json!({"servers": {"vault": {"type": "http", "url": server.url()}}});
    let environment = Environment::from_process();
    Host::builder(Config::from_value(&json, "mcp.json", Path::new("/"), &environment).unwrap())
}

/// Returns the text of a call of the tool `vault.open`.
async fn open(host: &Host) -> String {
    host.call_tool("vault.open", ()).await.unwrap().raw().get().to_owned()
}

/// Signs in without a person, at the authorization server that the challenge leads to.
#[derive(Default)]
struct ApplicationTokens {
    token: Arc<Mutex<Option<Secret>>>,
}

impl TokenProvider for ApplicationTokens {
    fn token(&self, _: &ProtectedResource) -> TokenFuture<Option<Secret>> {
        let token = self.token.lock().unwrap().clone();
        Box::pin(async { Ok(token) })
    }

    fn on_challenge(
        &self,
        server: &ProtectedResource,
        challenge: Challenge,
    ) -> TokenFuture<Secret> {
        assert_eq!((&*server.server, challenge.status), ("vault", 401));
        let header = challenge.header.unwrap();
        let (_, rest) = header.split_once("resource_metadata=\"").unwrap();
        let metadata_url = rest.split('"').next().unwrap().to_owned();
        let (resource, stored) = (server.url.clone(), self.token.clone());
        Box::pin(async move {
            let metadata = http_request("GET", &metadata_url, "").await;
            assert_eq!(metadata["resource"], *resource);
            let issuer = metadata["authorization_servers"][0].as_str().unwrap();
            let url = format!("{issuer}/token");
            let response = http_request("POST", &url, "grant_type=client_credentials").await;
            let token = Secret::new(response["access_token"].as_str().unwrap());
            *stored.lock().unwrap() = Some(token.clone());
            Ok(token)
        })
    }
}

#[tokio::test]
async fn the_token_provider_of_an_application_signs_in_once_at_the_challenge() {
    let server = ProtectedServer::start().await;
    let host = builder_for(&server).token_provider(ApplicationTokens::default()).start();
    let host = host.await.unwrap();
    for _ in 0..2 {
        let text = open(&host).await;
        assert!(text.contains("It is open."), "{text}");
    }
    assert_eq!((server.count("rejected"), server.count("tools/call")), (1, 2));
    assert_eq!((server.count("/metadata"), server.count("/token")), (1, 1));
    assert!(host.shutdown().await.is_clean());
}

#[tokio::test]
async fn a_protected_server_does_not_start_without_a_sign_in() {
    let server = ProtectedServer::start().await;
    let error = builder_for(&server).start().await.unwrap_err();
    assert!(error.to_string().contains("requires a sign-in (401)"), "{error}");
    assert_eq!((server.count("server/discover"), server.count("/token")), (0, 0));
}

/// A person who opens the page, and whose browser returns the code.
#[derive(Clone, Default)]
struct Browser(Arc<AtomicU32>);

impl UserAgent for Browser {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn authorize(&self, request: AuthorizationRequest) -> RedirectFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let page = http_request("GET", &request.url, "").await;
            let fields = request.url.split(['?', '&']);
            let state = fields.filter_map(|field| field.strip_prefix("state=")).next().unwrap();
            let code = page["code"].as_str().unwrap();
            Ok(format!("{}?code={code}&state={state}", request.redirect_uri))
        })
    }
}

/// Stores tokens in the memory of the application.
#[derive(Clone, Default)]
struct Keyring(Arc<Mutex<HashMap<String, Secret>>>);

impl TokenStore for Keyring {
    fn load(&self, name: &str) -> io::Result<Option<Secret>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn save(&self, name: &str, value: &Secret) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), value.clone());
        Ok(())
    }
}

#[tokio::test]
async fn a_person_signs_in_once_and_the_token_store_has_the_token_for_the_next_host() {
    let server = ProtectedServer::start().await;
    let (browser, keyring) = (Browser::default(), Keyring::default());
    for number in 1..=2 {
        let builder = builder_for(&server).user_agent(browser.clone());
        let host = builder.token_store(keyring.clone()).start().await.unwrap();
        let text = open(&host).await;
        assert!(text.contains("It is open."), "host {number}: {text}");
        assert!(host.shutdown().await.is_clean());
    }
    assert_eq!((browser.0.load(Ordering::SeqCst), server.count("/page")), (1, 1));
    assert_eq!(server.count("tools/call"), 2);
    assert_eq!(keyring.0.lock().unwrap().len(), 1);
}

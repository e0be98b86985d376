//! Each cause of a failed sign-in has its own message.

use std::sync::atomic::Ordering;

use innkeeper_host::{
    AuthError, AuthErrorKind, Challenge, ProtectedResource, TokenFuture, TokenProvider,
};
use innkeeper_host::{AuthorizationRequest, RedirectFuture, UserAgent};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::oauth_server::{OauthServerOptions, OauthTestServer};
use super::{ScriptedBrowser, builder_for, call, start, start_error};
use crate::setup::TestEnv;

#[tokio::test]
async fn a_server_that_names_no_authorization_server_is_reported() {
    let test_env = TestEnv::new();
    let refusing = RemoteServer::for_fixture(test_env.fixture("inn"))
        .fault(Fault::status(401).on_http_method("POST"));
    let remote = refusing.start().await;
    let started = builder_for(&test_env, &remote.url(), &json!({}))
        .user_agent(ScriptedBrowser::default())
        .start()
        .await;
    let error = start_error(started);
    assert!(error.contains("requires a token (401) and names no authorization server"), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_a_password_denies_access_and_no_sign_in_is_suggested() {
    let test_env = TestEnv::new();
    let basic = Fault::status(401).header("www-authenticate", "Basic realm=\"inn\"");
    let refusing = RemoteServer::for_fixture(test_env.fixture("inn"));
    let remote = refusing.fault(basic.on_http_method("POST")).start().await;
    let builder = || builder_for(&test_env, &remote.url(), &json!({}));
    for builder in [builder().user_agent(ScriptedBrowser::default()), builder()] {
        let error = start_error(builder.start().await);
        assert!(error.contains("denies access (401)"), "{error}");
        assert!(error.contains("check `headers.Authorization`"), "{error}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_knows_no_clients_or_gives_no_token_is_reported() {
    let rejection = json!({"error": "invalid_request", "error_description": "not today"});
    let response = Some((400, rejection.to_string()));
    for (options, expected) in [
        (
            OauthServerOptions { registration_disabled: true, ..OauthServerOptions::default() },
            "client registration failed",
        ),
        (
            OauthServerOptions { token_response: response, ..OauthServerOptions::default() },
            "no token from the authorization server: ",
        ),
    ] {
        let oauth_server = OauthTestServer::start(options).await;
        let error = start_error(start(&oauth_server, &ScriptedBrowser::default()).await);
        assert!(error.contains(expected), "{error}");
    }
}

/// Attack: remote | a server rejects each token | the sign-in ends after at most three attempts |
/// No unbounded wait
#[tokio::test]
async fn a_server_that_takes_no_token_is_asked_a_few_times_and_reported() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        rejects_all_tokens: true,
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let error = start_error(start(&oauth_server, &browser).await);
    assert!(error.contains("new token rejected (HTTP 401)"), "{error}");
    assert!((1..=3).contains(&browser.visit_count()), "{}", browser.visit_count());
}

struct FailingBrowser;

impl UserAgent for FailingBrowser {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn authorize(&self, _: AuthorizationRequest) -> RedirectFuture {
        Box::pin(async { Err("no display".to_owned()) })
    }
}

#[tokio::test]
async fn a_failing_user_agent_is_reported_with_the_reason() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let error = start_error(
        builder_for(&test_env, &oauth_server.url(), &json!({}))
            .user_agent(FailingBrowser)
            .start()
            .await,
    );
    assert!(error.ends_with("user agent failed: no display"), "{error}");
}

/// A token provider of the application that has no token.
struct TokenlessProvider;

impl TokenProvider for TokenlessProvider {
    fn token(&self, _: &ProtectedResource) -> TokenFuture<Option<innkeeper_host::config::Secret>> {
        Box::pin(async { Ok(None) })
    }

    fn on_challenge(
        &self,
        server: &ProtectedResource,
        _: Challenge,
    ) -> TokenFuture<innkeeper_host::config::Secret> {
        let error_kind = AuthErrorKind::Other("the vault is closed".into());
        let error = AuthError { server: server.server.clone(), kind: error_kind };
        Box::pin(async { Err(error) })
    }
}

#[tokio::test]
async fn a_custom_token_provider_says_why_it_has_no_token() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let error = start_error(
        builder_for(&test_env, &oauth_server.url(), &json!({}))
            .token_provider(TokenlessProvider)
            .start()
            .await,
    );
    assert!(error.ends_with("the vault is closed"), "{error}");
}

/// A browser whose user signs in once and ignores every later request.
struct OneTimeBrowser(ScriptedBrowser);

impl UserAgent for OneTimeBrowser {
    fn redirect_uri(&self) -> String {
        self.0.redirect_uri()
    }

    fn authorize(&self, request: AuthorizationRequest) -> RedirectFuture {
        if self.0.visit_count() == 0 {
            return self.0.authorize(request);
        }
        self.0.visit_count.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_shutdown_ends_the_wait_for_a_person() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        required_scope: Some("write"),
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let test_env = TestEnv::new();
    let builder = builder_for(&test_env, &oauth_server.url(), &json!({}))
        .user_agent(OneTimeBrowser(browser.clone()));
    let host = builder.start().await.unwrap();
    let leaving = async {
        while browser.visit_count() < 2 {
            tokio::task::yield_now().await;
        }
        host.shutdown().await
    };
    let (result, _) = tokio::join!(call(&host), leaving);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("the host stopped the server"), "{error}");
}

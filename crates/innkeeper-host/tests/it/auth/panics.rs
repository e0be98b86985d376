//! Panics in the application's authorization code.

use innkeeper_host::config::Secret;
use innkeeper_host::{
    AuthorizationRequest, Challenge, ProtectedResource, RedirectFuture, TokenFuture, TokenProvider,
    UserAgent,
};
use serde_json::json;

use super::builder_for;
use super::oauth_server::{OauthServerOptions, OauthTestServer};
use super::start_error;
use crate::setup::TestEnv;

struct PanickingAuth {
    /// Whether `token` panics before it returns a future.
    panics_at_once: bool,
}

impl TokenProvider for PanickingAuth {
    fn token(&self, _: &ProtectedResource) -> TokenFuture<Option<Secret>> {
        assert!(!self.panics_at_once, "broken");
        Box::pin(async { Ok(None) })
    }

    fn on_challenge(&self, _: &ProtectedResource, _: Challenge) -> TokenFuture<Secret> {
        Box::pin(async { panic!("broken") })
    }
}

impl UserAgent for PanickingAuth {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn authorize(&self, _: AuthorizationRequest) -> RedirectFuture {
        panic!("broken")
    }
}

#[tokio::test]
async fn a_panic_of_a_token_provider_is_reported_and_ends_nothing_else() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let new_builder = || builder_for(&test_env, &oauth_server.url(), &json!({"initTimeout": 20}));
    for builder in [
        new_builder().token_provider(PanickingAuth { panics_at_once: true }),
        new_builder().token_provider(PanickingAuth { panics_at_once: false }),
        new_builder().user_agent(PanickingAuth { panics_at_once: false }),
    ] {
        let error = start_error(builder.start().await);
        assert!(
            error.ends_with("failed during the handshake: the token provider panicked"),
            "{error}"
        );
    }
}

//! Each way in which a sign-in fails, told in words of its own.

use std::sync::atomic::Ordering;

use innkeeper_host::{AuthError, AuthFault, Authorize, Authorizing, Challenge, Protected};
use innkeeper_host::{UserAgent, Visit, Visiting};
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;

use super::inn::{Inn, Rules};
use super::{Browser, at, call, start, why};
use crate::setup::Scene;

#[tokio::test]
async fn a_server_that_names_nobody_who_gives_tokens_is_told_so() {
    let scene = Scene::new();
    let refusing = Remote::of(scene.fx("inn")).fault(Fault::status(401).on_http("POST"));
    let remote = refusing.start().await;
    let started =
        at(&scene, &remote.url(), &json!({})).user_agent(Browser::default()).start().await;
    let error = why(started);
    assert!(error.contains("it asks for a token and does not say where to get one"), "{error}");
}

#[tokio::test]
async fn an_authorization_server_that_knows_no_clients_or_gives_no_token_is_told_so() {
    let refusal = json!({"error": "invalid_request", "error_description": "not today"});
    let given = Some((400, refusal.to_string()));
    for (rules, words) in [
        (Rules { no_clients: true, ..Rules::default() }, "no client could be registered"),
        (Rules { token_answer: given, ..Rules::default() }, "gave no token: "),
    ] {
        let inn = Inn::open(rules).await;
        let error = why(start(&inn, &Browser::default()).await);
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_takes_no_token_is_asked_a_few_times_and_told_so() {
    let inn = Inn::open(Rules { never_content: true, ..Rules::default() }).await;
    let browser = Browser::default();
    let error = why(start(&inn, &browser).await);
    assert!(error.contains("it refuses the token that it was just given (HTTP 401)"), "{error}");
    assert!((1..=3).contains(&browser.visits()), "{}", browser.visits());
}

struct NoBrowser;

impl UserAgent for NoBrowser {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn visit(&self, _: Visit) -> Visiting {
        Box::pin(async { Err("no display".to_owned()) })
    }
}

#[tokio::test]
async fn a_person_who_cannot_be_asked_is_told_with_the_reason() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let error = why(at(&scene, &inn.url(), &json!({})).user_agent(NoBrowser).start().await);
    assert!(error.ends_with("nobody could be asked to sign in: no display"), "{error}");
}

/// An application that has its own way, and no token.
struct Empty;

impl Authorize for Empty {
    fn token(&self, _: &Protected) -> Authorizing<Option<innkeeper_host::config::Secret>> {
        Box::pin(async { Ok(None) })
    }

    fn challenged(
        &self,
        server: &Protected,
        _: Challenge,
    ) -> Authorizing<innkeeper_host::config::Secret> {
        let fault = AuthFault::Other("the vault is closed".into());
        let error = AuthError { server: server.server.clone(), fault };
        Box::pin(async { Err(error) })
    }
}

#[tokio::test]
async fn an_applications_own_way_says_why_it_has_no_token() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let error = why(at(&scene, &inn.url(), &json!({})).authorize(Empty).start().await);
    assert!(error.ends_with("the vault is closed"), "{error}");
}

/// A person who signs in once and never again.
struct Once(Browser);

impl UserAgent for Once {
    fn redirect_uri(&self) -> String {
        self.0.redirect_uri()
    }

    fn visit(&self, visit: Visit) -> Visiting {
        if self.0.visits() == 0 {
            return self.0.visit(visit);
        }
        self.0.visits.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_shutdown_ends_the_wait_for_a_person() {
    let inn = Inn::open(Rules { calls_want: Some("write"), ..Rules::default() }).await;
    let browser = Browser::default();
    let scene = Scene::new();
    let builder = at(&scene, &inn.url(), &json!({})).user_agent(Once(browser.clone()));
    let host = builder.start().await.unwrap();
    let leaving = async {
        while browser.visits() < 2 {
            tokio::task::yield_now().await;
        }
        host.shutdown().await
    };
    let (called, _) = tokio::join!(call(&host), leaving);
    let error = called.unwrap_err().to_string();
    assert!(error.contains("the host is shutting down"), "{error}");
}

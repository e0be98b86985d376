//! Sign-in at remote servers, against a test authorization server.

mod client;
mod enterprise;
mod faults;
#[cfg(unix)]
mod helper;
mod oauth_server;
mod panics;
mod secrets;
mod start;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_host::config::Secret;
use innkeeper_host::{
    AuthErrorKind, AuthorizationRequest, CallError, CallOptions, Host, HostBuilder, RedirectFuture,
    StartError, TokenStore, UserAgent,
};
use innkeeper_testkit::{Fault, RemoteServer, fixture};
use serde_json::{Value, json};

use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, builder};
use oauth_server::{CANARY, OauthServerOptions, OauthTestServer};

/// A browser without a user: it follows every redirect.
#[derive(Clone, Default)]
struct ScriptedBrowser {
    visit_count: Arc<AtomicU32>,
    /// The time the user spends on the page.
    delay: Duration,
    /// Whether the user declines afterwards.
    declines: bool,
}

impl ScriptedBrowser {
    fn visit_count(&self) -> u32 {
        self.visit_count.load(Ordering::SeqCst)
    }
}

impl UserAgent for ScriptedBrowser {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn authorize(&self, request: AuthorizationRequest) -> RedirectFuture {
        self.visit_count.fetch_add(1, Ordering::SeqCst);
        let (takes, declines) = (self.delay, self.declines);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            if declines {
                return Ok(format!("{}?error=access_denied", request.redirect_uri));
            }
            let client = reqwest::Client::builder()
                .tls_backend_preconfigured(no_tls())
                .redirect(reqwest::redirect::Policy::none());
            let page = client.build().unwrap().get(&request.url).send().await.unwrap();
            Ok(page.headers()["location"].to_str().unwrap().to_owned())
        })
    }
}

fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

fn builder_for(test_env: &TestEnv, url: &str, keys: &Value) -> HostBuilder {
    let mut entry = json!({"type": "http", "url": url});
    for (key, value) in keys.as_object().unwrap() {
        entry[key] = value.clone();
    }
    builder(test_env.config_from(&json!({"servers": {"inn": entry}})))
}

async fn start(
    oauth_server: &OauthTestServer,
    browser: &ScriptedBrowser,
) -> Result<Host, StartError> {
    let test_env = TestEnv::new();
    builder_for(&test_env, &oauth_server.url(), &json!({}))
        .user_agent(browser.clone())
        .start()
        .await
}

async fn call(host: &Host) -> Result<(), CallError> {
    let options = CallOptions { timeout: Some(TEST_TIMEOUT), ..CallOptions::default() };
    host.call_tool_with("inn.sleep", json!({}), options).await.map(drop)
}

/// Returns the message of a failed start.
fn start_error(started: Result<Host, StartError>) -> String {
    started.unwrap_err().to_string()
}

#[tokio::test]
async fn calls_that_are_refused_together_have_one_person_sign_in_and_each_runs_once() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let browser =
        ScriptedBrowser { delay: Duration::from_millis(200), ..ScriptedBrowser::default() };
    let host = start(&oauth_server, &browser).await.unwrap();
    assert_eq!(browser.visit_count(), 1);
    oauth_server.revoke();
    let calls: Vec<_> = (0..10).map(|_| call(&host)).collect();
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(browser.visit_count(), 2);
    assert_eq!(oauth_server.requests("tools/call").len(), 10);
    assert_eq!(oauth_server.requests("/register").len(), 1, "a client is registered once");
    host.shutdown().await;
}

#[tokio::test]
async fn a_token_that_is_about_to_end_is_renewed_before_it_is_refused() {
    let options = OauthServerOptions {
        expires_in: Some(0),
        renewable: true,
        ..OauthServerOptions::default()
    };
    let oauth_server = OauthTestServer::start(options).await;
    let browser = ScriptedBrowser::default();
    let host = start(&oauth_server, &browser).await.unwrap();
    let rejected_before = oauth_server.requests("refused").len();
    let calls: Vec<_> = (0..10).map(|_| call(&host)).collect();
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(oauth_server.requests("refused").len(), rejected_before, "nothing was refused");
    assert_eq!(browser.visit_count(), 1);
    let tokens = oauth_server.requests("/token");
    let renewals = tokens.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1, "{tokens:?}");
    assert!(tokens.iter().all(|form| form.contains("resource=")), "{tokens:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_refused_token_is_renewed_without_a_person_where_it_can_be() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        renewable: true,
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let host = start(&oauth_server, &browser).await.unwrap();
    oauth_server.revoke();
    call(&host).await.unwrap();
    assert_eq!(browser.visit_count(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_requires_another_scope_has_it_requested_once() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        required_scope: Some("write"),
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let test_env = TestEnv::new();
    let keys = json!({"oauth": {"scopes": ["read"]}});
    let host = builder_for(&test_env, &oauth_server.url(), &keys)
        .user_agent(browser.clone())
        .start()
        .await
        .unwrap();
    call(&host).await.unwrap();
    assert_eq!(browser.visit_count(), 2);
    let page_requests = oauth_server.requests("/page");
    assert!(page_requests[0].contains("scope=read&"), "{page_requests:?}");
    assert!(page_requests[1].contains("scope=read+write"), "{page_requests:?}");
    oauth_server.configure(|options| options.grants_no_scope = true);
    oauth_server.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    assert!(error.contains("insufficient scope: `write`"), "{error}");
    assert_eq!(browser.visit_count(), 3);
    host.shutdown().await;
}

#[tokio::test]
async fn without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let error = start_error(builder_for(&test_env, &oauth_server.url(), &json!({})).start().await);
    let expected = "server `inn` failed during the handshake: the server requires a sign-in (401); \
                 set a token in `headers.Authorization`, or a client in `oauth` with \
                 `\"grant\": \"client_credentials\"`";
    assert_eq!(error, expected);
    assert!(oauth_server.requests("/metadata").is_empty());
}

#[tokio::test]
async fn a_person_who_says_no_is_not_asked_again() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let browser = ScriptedBrowser { declines: true, ..ScriptedBrowser::default() };
    let error = start_error(start(&oauth_server, &browser).await);
    assert!(error.ends_with("sign-in declined: access_denied"), "{error}");
    assert_eq!(browser.visit_count(), 1);
}

#[tokio::test]
async fn a_client_may_have_access_of_its_own() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let test_env = TestEnv::new();
    let secret = format!("{CANARY}-own");
    let keys = json!({"oauth": {"clientId": "us", "clientSecret": secret,
        "grant": "client_credentials"}});
    let host = builder_for(&test_env, &oauth_server.url(), &keys).start().await.unwrap();
    call(&host).await.unwrap();
    let tokens = oauth_server.requests("/token");
    assert!(tokens[0].contains("grant_type=client_credentials"), "{tokens:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_header_of_the_configuration_is_what_is_sent_and_nobody_signs_in() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let browser = ScriptedBrowser::default();
    let test_env = TestEnv::new();
    let keys = json!({"headers": {"authorization": "Bearer mine"}});
    let started = builder_for(&test_env, &oauth_server.url(), &keys)
        .user_agent(browser.clone())
        .start()
        .await;
    let error = start_error(started);
    assert!(error.contains("denies access (401); check `headers.Authorization`"), "{error}");
    assert_eq!(browser.visit_count(), 0);
}

/// The URLs that a server or its authorization server names are untrusted.
/// Attack: remote | the metadata of a sign-in name a metadata service, a file, another resource or
/// a script | the sign-in ends without a browser and without a token request | Foreign text stays
/// text
#[tokio::test]
async fn a_hostile_pointer_or_page_ends_the_sign_in_before_anything_is_asked_there() {
    let metadata = "http://169.254.169.254/latest/meta-data";
    let hostile: [(OauthServerOptions, &str); 6] = [
        (
            OauthServerOptions {
                metadata_url: Some(metadata.to_owned()),
                ..OauthServerOptions::default()
            },
            "`resource_metadata`",
        ),
        (
            OauthServerOptions {
                metadata_url: Some("file:///etc/passwd".to_owned()),
                ..OauthServerOptions::default()
            },
            "`resource_metadata`",
        ),
        (
            OauthServerOptions {
                issuer: Some("http://169.254.169.254/".to_owned()),
                ..OauthServerOptions::default()
            },
            "invalid authorization metadata",
        ),
        (
            OauthServerOptions {
                resource: Some("https://other.example/mcp".to_owned()),
                ..OauthServerOptions::default()
            },
            "invalid authorization metadata",
        ),
        (
            OauthServerOptions {
                authorization_endpoint: Some("javascript:alert(1)".to_owned()),
                ..OauthServerOptions::default()
            },
            "authorization endpoint",
        ),
        (
            OauthServerOptions {
                authorization_endpoint: Some("http://sso.example/page".to_owned()),
                ..OauthServerOptions::default()
            },
            "authorization endpoint",
        ),
    ];
    for (options, expected) in hostile {
        let oauth_server = OauthTestServer::start(options).await;
        let browser = ScriptedBrowser::default();
        let error = start_error(start(&oauth_server, &browser).await);
        assert!(error.contains(expected), "{error}");
        assert_eq!(browser.visit_count(), 0, "{error}");
        assert!(oauth_server.requests("/token").is_empty(), "{error}");
    }
}

/// Attack: secrets | a token response is malformed and contains secrets | no log, error or status
/// contains a secret | Secrets do not print
#[tokio::test]
async fn no_secret_of_a_sign_in_is_in_a_log_an_error_or_a_status() {
    let log = LogCapture::capture();
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        expires_in: Some(0),
        renewable: true,
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let host = start(&oauth_server, &browser).await.unwrap();
    call(&host).await.unwrap();
    let odd = format!(
        "{{\"access_token\": \"{CANARY}\", \"token_type\": \"bearer\", \
                      \"expires_in\": \"{CANARY}\"}}"
    );
    let rejection = json!({"error": "invalid_request", "error_description": "no"}).to_string();
    let mut shown = format!("{host:?} {:?}", host.status());
    for token_response in [(200, odd), (400, rejection)] {
        oauth_server.configure(|options| options.token_response = Some(token_response));
        oauth_server.revoke();
        let error = call(&host).await.unwrap_err();
        shown += &format!("{error} {error:?}");
    }
    host.shutdown().await;
    shown += &json!(log.lines()).to_string();
    assert!(shown.contains("signed in"), "{shown}");
    assert!(shown.contains("invalid_request: no"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
}

/// Attack: secrets | other users read the stored tokens | only the owner has access to directory
/// and file | Secrets stay with their owner
#[tokio::test]
async fn a_kept_token_is_for_its_owner_alone_and_the_next_host_has_it() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        renewable: true,
        ..OauthServerOptions::default()
    })
    .await;
    let browser = ScriptedBrowser::default();
    let test_env = TestEnv::new();
    let token_dir = test_env.path("state/tokens");
    let new_builder =
        || builder_for(&test_env, &oauth_server.url(), &json!({})).token_directory(&token_dir);
    let host = new_builder().user_agent(browser.clone()).start().await.unwrap();
    host.shutdown().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(token_dir.clone()), 0o700);
        for file in std::fs::read_dir(&token_dir).unwrap() {
            assert_eq!(mode(file.unwrap().path()), 0o600);
        }
    }
    let host = new_builder().start().await.unwrap();
    call(&host).await.unwrap();
    // One host renews the token, both hosts use it.
    oauth_server.revoke();
    let other = new_builder().start().await.unwrap();
    call(&host).await.unwrap();
    call(&other).await.unwrap();
    let renewals = oauth_server.requests("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1);
    assert_eq!(browser.visit_count(), 1);
    host.shutdown().await;
    other.shutdown().await;
}

/// A token store of the application.
#[derive(Clone, Default)]
struct Keyring(Arc<Mutex<BTreeMap<String, Secret>>>);

impl TokenStore for Keyring {
    fn load(&self, name: &str) -> std::io::Result<Option<Secret>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn save(&self, name: &str, secret: &Secret) -> std::io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), secret.clone());
        Ok(())
    }
}

#[tokio::test]
async fn a_custom_token_store_is_locked_between_hosts_too() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        expires_in: Some(0),
        renewable: true,
        ..OauthServerOptions::default()
    })
    .await;
    let (test_env, keyring, browser) =
        (TestEnv::new(), Keyring::default(), ScriptedBrowser::default());
    let lock_dir = test_env.path("turns");
    let new_builder = || {
        builder_for(&test_env, &oauth_server.url(), &json!({}))
            .token_store(keyring.clone())
            .token_directory(&lock_dir)
    };
    let host = new_builder().user_agent(browser.clone()).start().await.unwrap();
    let started: Vec<_> = (0..3).map(|_| new_builder().start()).collect();
    for other in futures_util::future::join_all(started).await {
        let other = other.unwrap();
        call(&other).await.unwrap();
        other.shutdown().await;
    }
    let renewals = oauth_server.requests("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!((renewals.count(), browser.visit_count()), (1, 1));
    host.shutdown().await;
    for file in std::fs::read_dir(&lock_dir).unwrap() {
        assert_eq!(std::fs::read(file.unwrap().path()).unwrap(), b"", "no token is in a file");
    }
    let secrets = keyring.0.lock().unwrap();
    assert!(secrets.len() == 1 && secrets.values().all(|kept| kept.expose().contains(CANARY)));
}

#[tokio::test]
async fn hosts_that_share_a_store_renew_a_token_one_at_a_time() {
    let oauth_server = OauthTestServer::start(OauthServerOptions {
        expires_in: Some(0),
        renewable: true,
        ..OauthServerOptions::default()
    })
    .await;
    let test_env = TestEnv::new();
    let token_dir = test_env.path("tokens");
    let new_builder =
        || builder_for(&test_env, &oauth_server.url(), &json!({})).token_directory(&token_dir);
    let host = new_builder().user_agent(ScriptedBrowser::default()).start().await.unwrap();
    // The first renewal consumes the refresh token; a second renewal with the same token would end
    // the sign-in.
    let started: Vec<_> = (0..4).map(|_| new_builder().start()).collect();
    let others = futures_util::future::join_all(started).await;
    for other in others {
        let other = other.unwrap();
        call(&other).await.unwrap();
        other.shutdown().await;
    }
    call(&host).await.unwrap();
    let renewals = oauth_server.requests("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_sign_in_outlives_the_call_that_began_it() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let browser = ScriptedBrowser { delay: Duration::from_secs(1), ..ScriptedBrowser::default() };
    let test_env = TestEnv::new();
    let keys = json!({"unavailableAfterTimeouts": 9});
    let host = builder_for(&test_env, &oauth_server.url(), &keys)
        .user_agent(browser.clone())
        .start()
        .await
        .unwrap();
    oauth_server.revoke();
    let short = || CallOptions { timeout: Some(Duration::from_millis(300)), ..<_>::default() };
    assert!(host.call_tool_with("inn.sleep", json!({}), short()).await.is_err());
    call(&host).await.unwrap();
    assert_eq!(browser.visit_count(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn the_time_a_person_takes_to_sign_in_does_not_count_against_a_start() {
    let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
    let mut browser =
        ScriptedBrowser { delay: Duration::from_secs(2), ..ScriptedBrowser::default() };
    let test_env = TestEnv::new();
    let keys = json!({"initTimeout": 1});
    let new_builder = |browser: &ScriptedBrowser| {
        let mut config = test_env.config_from(
            &json!({"servers": {"inn": {"url": oauth_server.url(), "initTimeout": 1}}}),
        );
        config.host.start_timeout = Duration::from_secs(1);
        builder(config).user_agent(browser.clone()).start()
    };
    let host = new_builder(&browser).await.unwrap();
    call(&host).await.unwrap();
    assert_eq!(browser.visit_count(), 1);
    host.shutdown().await;
    browser.declines = true;
    let error = start_error(new_builder(&browser).await);
    assert!(error.ends_with("sign-in declined: access_denied"), "{error}");
    assert_eq!(browser.visit_count(), 2, "who said no is not asked again");
    // A server that does not respond causes no sign-in.
    let silent = RemoteServer::for_fixture(fixture("web").with("--era", "legacy"));
    let silent =
        silent.fault(Fault::never_responds().on_http_method("POST").first_n(99)).start().await;
    let started =
        builder_for(&test_env, &silent.url(), &keys).user_agent(browser.clone()).start().await;
    assert!(start_error(started).contains("not ready within 1 s"));
}

/// Covers every request that a server may reject: the requests that open a connection and the
/// requests on it.
#[tokio::test]
async fn every_transport_signs_in_where_it_is_refused() {
    let transports: [(&str, &[&str]); 3] =
        [("http", &["POST", "GET"]), ("sse", &["GET", "POST"]), ("websocket", &["GET"])];
    for (transport, status_fault) in transports {
        for method in status_fault {
            let oauth_server = OauthTestServer::start(OauthServerOptions::default()).await;
            let server_builder = RemoteServer::for_fixture(fixture("web").with("--era", "legacy"));
            let server_builder = match transport {
                "sse" => server_builder.sse(),
                "websocket" => server_builder.websocket(),
                _ => server_builder,
            };
            let no =
                Fault::status(401).header("www-authenticate", &oauth_server.challenge_header());
            let remote = server_builder.fault(no.on_http_method(method).only_nth(1)).start().await;
            let resource = remote.url().replacen("ws://", "http://", 1);
            oauth_server.configure(|options| options.resource = Some(resource));
            let browser = ScriptedBrowser::default();
            let test_env = TestEnv::new();
            let config = test_env.config_from(&json!({"servers": {"web": remote.config_entry()}}));
            let host = builder(config).user_agent(browser.clone()).start().await.unwrap();
            let signed = |request: &innkeeper_testkit::RecordedRequest| {
                request.method == *method
                    && request.header("authorization").is_some_and(|value| value.contains(CANARY))
            };
            remote.wait_for(TEST_TIMEOUT, |requests| requests.iter().any(signed)).await;
            assert_eq!(browser.visit_count(), 1, "{transport} {method}");
            host.shutdown().await;
            for request in remote.requests().iter().filter(|request| request.method == "DELETE") {
                assert!(request.header("authorization").is_some(), "{transport} {method}");
            }
        }
    }
}

#[test]
fn an_error_is_reported_with_the_server() {
    let error = innkeeper_host::AuthError {
        server: "inn".into(),
        kind: AuthErrorKind::Timeout(Duration::from_secs(300)),
    };
    let expected = "cannot sign in to server `inn`: no sign-in within 300 s; try again";
    assert_eq!(error.to_string(), expected);
}

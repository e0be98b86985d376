//! Signing in at remote servers, against a server that wants tokens and one that gives them.

mod enterprise;
mod faults;
#[cfg(unix)]
mod helper;
mod inn;
mod panics;
mod secrets;
mod start;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_host::config::Secret;
use innkeeper_host::{
    AuthFault, CallError, CallOptions, Host, HostBuilder, StartError, TokenStore, UserAgent, Visit,
    Visiting,
};
use innkeeper_testkit::{Fault, Remote, fx};
use serde_json::{Value, json};

use crate::setup::{Log, PATIENCE, Scene, builder};
use inn::{CANARY, Inn, Rules};

/// A browser with nobody before it: it goes where it is sent.
#[derive(Clone, Default)]
struct Browser {
    visits: Arc<AtomicU32>,
    /// How long the person looks at the page.
    takes: Duration,
    /// Whether they say no then.
    declines: bool,
}

impl Browser {
    fn visits(&self) -> u32 {
        self.visits.load(Ordering::SeqCst)
    }
}

impl UserAgent for Browser {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    fn visit(&self, visit: Visit) -> Visiting {
        self.visits.fetch_add(1, Ordering::SeqCst);
        let (takes, declines) = (self.takes, self.declines);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            if declines {
                return Ok(format!("{}?error=access_denied", visit.redirect_uri));
            }
            let client = reqwest::Client::builder()
                .tls_backend_preconfigured(no_tls())
                .redirect(reqwest::redirect::Policy::none());
            let page = client.build().unwrap().get(&visit.url).send().await.unwrap();
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

fn at(scene: &Scene, url: &str, keys: &Value) -> HostBuilder {
    let mut entry = json!({"type": "http", "url": url});
    for (key, value) in keys.as_object().unwrap() {
        entry[key] = value.clone();
    }
    builder(scene.config_of(&json!({"servers": {"inn": entry}})))
}

async fn start(inn: &Inn, browser: &Browser) -> Result<Host, StartError> {
    let scene = Scene::new();
    at(&scene, &inn.url(), &json!({})).user_agent(browser.clone()).start().await
}

async fn call(host: &Host) -> Result<(), CallError> {
    let options = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    host.call_tool_with("inn.sleep", json!({}), options).await.map(drop)
}

/// Why a start failed, in words.
fn why(started: Result<Host, StartError>) -> String {
    started.unwrap_err().to_string()
}

#[tokio::test]
async fn calls_that_are_refused_together_have_one_person_sign_in_and_each_runs_once() {
    let inn = Inn::open(Rules::default()).await;
    let browser = Browser { takes: Duration::from_millis(200), ..Browser::default() };
    let host = start(&inn, &browser).await.unwrap();
    assert_eq!(browser.visits(), 1);
    inn.revoke();
    let calls: Vec<_> = (0..10).map(|_| call(&host)).collect();
    for called in futures_util::future::join_all(calls).await {
        called.unwrap();
    }
    assert_eq!(browser.visits(), 2);
    assert_eq!(inn.seen("tools/call").len(), 10);
    assert_eq!(inn.seen("/register").len(), 1, "a client is registered once");
    host.shutdown().await;
}

#[tokio::test]
async fn a_token_that_is_about_to_end_is_renewed_before_it_is_refused() {
    let rules = Rules { lasts: Some(0), renewable: true, ..Rules::default() };
    let inn = Inn::open(rules).await;
    let browser = Browser::default();
    let host = start(&inn, &browser).await.unwrap();
    let refused = inn.seen("refused").len();
    let calls: Vec<_> = (0..10).map(|_| call(&host)).collect();
    for called in futures_util::future::join_all(calls).await {
        called.unwrap();
    }
    assert_eq!(inn.seen("refused").len(), refused, "nothing was refused");
    assert_eq!(browser.visits(), 1);
    let tokens = inn.seen("/token");
    let renewals = tokens.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1, "{tokens:?}");
    assert!(tokens.iter().all(|form| form.contains("resource=")), "{tokens:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_refused_token_is_renewed_without_a_person_where_it_can_be() {
    let inn = Inn::open(Rules { renewable: true, ..Rules::default() }).await;
    let browser = Browser::default();
    let host = start(&inn, &browser).await.unwrap();
    inn.revoke();
    call(&host).await.unwrap();
    assert_eq!(browser.visits(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_wants_a_scope_more_has_it_asked_for_once() {
    let inn = Inn::open(Rules { calls_want: Some("write"), ..Rules::default() }).await;
    let browser = Browser::default();
    let scene = Scene::new();
    let keys = json!({"oauth": {"scopes": ["read"]}});
    let host = at(&scene, &inn.url(), &keys).user_agent(browser.clone()).start().await.unwrap();
    call(&host).await.unwrap();
    assert_eq!(browser.visits(), 2);
    let asked = inn.seen("/page");
    assert!(asked[0].contains("scope=read&"), "{asked:?}");
    assert!(asked[1].contains("scope=read+write"), "{asked:?}");
    inn.rule(|rules| rules.stingy = true);
    inn.revoke();
    let error = call(&host).await.unwrap_err().to_string();
    assert!(error.contains("it wants the scope `write`"), "{error}");
    assert_eq!(browser.visits(), 3);
    host.shutdown().await;
}

#[tokio::test]
async fn without_a_way_to_reach_a_person_the_error_says_what_to_do_and_nothing_is_asked() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let error = why(at(&scene, &inn.url(), &json!({})).start().await);
    let words = "server `inn` failed during the handshake: server `inn` is unavailable: it asks \
                 for signing in and nobody is there to do it; give a token in \
                 `headers.Authorization`, or a client in `oauth` with \
                 `\"grant\": \"client_credentials\"`";
    assert_eq!(error, words);
    assert!(inn.seen("/metadata").is_empty());
}

#[tokio::test]
async fn a_person_who_says_no_is_not_asked_again() {
    let inn = Inn::open(Rules::default()).await;
    let browser = Browser { declines: true, ..Browser::default() };
    let error = why(start(&inn, &browser).await);
    assert!(error.ends_with("signing in was declined: access_denied"), "{error}");
    assert_eq!(browser.visits(), 1);
}

#[tokio::test]
async fn a_client_may_have_access_of_its_own() {
    let inn = Inn::open(Rules::default()).await;
    let scene = Scene::new();
    let secret = format!("{CANARY}-own");
    let keys = json!({"oauth": {"clientId": "us", "clientSecret": secret,
        "grant": "client_credentials"}});
    let host = at(&scene, &inn.url(), &keys).start().await.unwrap();
    call(&host).await.unwrap();
    let tokens = inn.seen("/token");
    assert!(tokens[0].contains("grant_type=client_credentials"), "{tokens:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_header_of_the_configuration_is_what_is_sent_and_nobody_signs_in() {
    let inn = Inn::open(Rules::default()).await;
    let browser = Browser::default();
    let scene = Scene::new();
    let keys = json!({"headers": {"authorization": "Bearer mine"}});
    let started = at(&scene, &inn.url(), &keys).user_agent(browser.clone()).start().await;
    let error = why(started);
    assert!(error.contains("HTTP 401"), "{error}");
    assert_eq!(browser.visits(), 0);
}

/// What a server or its authorization server names is a stranger's word.
#[tokio::test]
async fn a_hostile_pointer_or_page_ends_the_sign_in_before_anything_is_asked_there() {
    let metadata = "http://169.254.169.254/latest/meta-data";
    let hostile: [(Rules, &str); 6] = [
        (Rules { pointer: Some(metadata.to_owned()), ..Rules::default() }, "`resource_metadata`"),
        (
            Rules { pointer: Some("file:///etc/passwd".to_owned()), ..Rules::default() },
            "`resource_metadata`",
        ),
        (
            Rules { issuer: Some("http://169.254.169.254/".to_owned()), ..Rules::default() },
            "no use",
        ),
        (
            Rules { resource: Some("https://other.example/mcp".to_owned()), ..Rules::default() },
            "no use",
        ),
        (
            Rules { page: Some("javascript:alert(1)".to_owned()), ..Rules::default() },
            "authorization endpoint",
        ),
        (
            Rules { page: Some("http://sso.example/page".to_owned()), ..Rules::default() },
            "authorization endpoint",
        ),
    ];
    for (rules, words) in hostile {
        let inn = Inn::open(rules).await;
        let browser = Browser::default();
        let error = why(start(&inn, &browser).await);
        assert!(error.contains(words), "{error}");
        assert_eq!(browser.visits(), 0, "{error}");
        assert!(inn.seen("/token").is_empty(), "{error}");
    }
}

#[tokio::test]
async fn no_secret_of_a_sign_in_is_in_a_log_an_error_or_a_status() {
    let log = Log::capture();
    let inn = Inn::open(Rules { lasts: Some(0), renewable: true, ..Rules::default() }).await;
    let browser = Browser::default();
    let host = start(&inn, &browser).await.unwrap();
    call(&host).await.unwrap();
    let odd = format!(
        "{{\"access_token\": \"{CANARY}\", \"token_type\": \"bearer\", \
                      \"expires_in\": \"{CANARY}\"}}"
    );
    let refusal = json!({"error": "invalid_request", "error_description": "no"}).to_string();
    let mut told = format!("{host:?} {:?}", host.status());
    for answered in [(200, odd), (400, refusal)] {
        inn.rule(|rules| rules.token_answer = Some(answered));
        inn.revoke();
        let error = call(&host).await.unwrap_err();
        told += &format!("{error} {error:?}");
    }
    host.shutdown().await;
    told += &json!(log.lines()).to_string();
    assert!(told.contains("signed in"), "{told}");
    assert!(told.contains("invalid_request: no"), "{told}");
    assert!(!told.contains(CANARY), "{told}");
}

#[tokio::test]
async fn a_kept_token_is_for_its_owner_alone_and_the_next_host_has_it() {
    let inn = Inn::open(Rules { renewable: true, ..Rules::default() }).await;
    let browser = Browser::default();
    let scene = Scene::new();
    let kept = scene.path("state/tokens");
    let begin = || at(&scene, &inn.url(), &json!({})).token_store(&kept);
    let host = begin().user_agent(browser.clone()).start().await.unwrap();
    host.shutdown().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(kept.clone()), 0o700);
        for file in std::fs::read_dir(&kept).unwrap() {
            assert_eq!(mode(file.unwrap().path()), 0o600);
        }
    }
    let host = begin().start().await.unwrap();
    call(&host).await.unwrap();
    // Renewed by one, used by both.
    inn.revoke();
    let other = begin().start().await.unwrap();
    call(&host).await.unwrap();
    call(&other).await.unwrap();
    let renewals = inn.seen("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1);
    assert_eq!(browser.visits(), 1);
    host.shutdown().await;
    other.shutdown().await;
}

/// A keyring of the application's.
#[derive(Clone, Default)]
struct Keyring(Arc<Mutex<BTreeMap<String, Secret>>>);

impl TokenStore for Keyring {
    fn load(&self, name: &str) -> std::io::Result<Option<Secret>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn save(&self, name: &str, kept: &Secret) -> std::io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), kept.clone());
        Ok(())
    }
}

#[tokio::test]
async fn tokens_may_be_kept_elsewhere_and_hosts_take_turns_all_the_same() {
    let inn = Inn::open(Rules { lasts: Some(0), renewable: true, ..Rules::default() }).await;
    let (scene, keyring, browser) = (Scene::new(), Keyring::default(), Browser::default());
    let turns = scene.path("turns");
    let begin =
        || at(&scene, &inn.url(), &json!({})).keep_tokens(keyring.clone()).token_store(&turns);
    let host = begin().user_agent(browser.clone()).start().await.unwrap();
    let started: Vec<_> = (0..3).map(|_| begin().start()).collect();
    for other in futures_util::future::join_all(started).await {
        let other = other.unwrap();
        call(&other).await.unwrap();
        other.shutdown().await;
    }
    let renewals = inn.seen("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!((renewals.count(), browser.visits()), (1, 1));
    host.shutdown().await;
    for file in std::fs::read_dir(&turns).unwrap() {
        assert_eq!(std::fs::read(file.unwrap().path()).unwrap(), b"", "no token is in a file");
    }
    let kept = keyring.0.lock().unwrap();
    assert!(kept.len() == 1 && kept.values().all(|kept| kept.expose().contains(CANARY)));
}

#[tokio::test]
async fn hosts_that_share_a_store_renew_a_token_one_at_a_time() {
    let inn = Inn::open(Rules { lasts: Some(0), renewable: true, ..Rules::default() }).await;
    let scene = Scene::new();
    let kept = scene.path("tokens");
    let begin = || at(&scene, &inn.url(), &json!({})).token_store(&kept);
    let host = begin().user_agent(Browser::default()).start().await.unwrap();
    // It goes with the first renewal; whoever came second with it would lose the sign-in.
    let started: Vec<_> = (0..4).map(|_| begin().start()).collect();
    let others = futures_util::future::join_all(started).await;
    for other in others {
        let other = other.unwrap();
        call(&other).await.unwrap();
        other.shutdown().await;
    }
    call(&host).await.unwrap();
    let renewals = inn.seen("/token");
    let renewals = renewals.iter().filter(|form| form.contains("grant_type=refresh_token"));
    assert_eq!(renewals.count(), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_sign_in_outlives_the_call_that_began_it() {
    let inn = Inn::open(Rules::default()).await;
    let browser = Browser { takes: Duration::from_secs(1), ..Browser::default() };
    let scene = Scene::new();
    let keys = json!({"unavailableAfterTimeouts": 9});
    let host = at(&scene, &inn.url(), &keys).user_agent(browser.clone()).start().await.unwrap();
    inn.revoke();
    let short = || CallOptions { timeout: Some(Duration::from_millis(300)), ..<_>::default() };
    assert!(host.call_tool_with("inn.sleep", json!({}), short()).await.is_err());
    call(&host).await.unwrap();
    assert_eq!(browser.visits(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn the_time_a_person_takes_to_sign_in_does_not_count_against_a_start() {
    let inn = Inn::open(Rules::default()).await;
    let mut browser = Browser { takes: Duration::from_secs(2), ..Browser::default() };
    let scene = Scene::new();
    let keys = json!({"initTimeout": 1});
    let begin = |browser: &Browser| {
        let mut config =
            scene.config_of(&json!({"servers": {"inn": {"url": inn.url(), "initTimeout": 1}}}));
        config.host.start_timeout = Duration::from_secs(1);
        builder(config).user_agent(browser.clone()).start()
    };
    let host = begin(&browser).await.unwrap();
    call(&host).await.unwrap();
    assert_eq!(browser.visits(), 1);
    host.shutdown().await;
    browser.declines = true;
    let error = why(begin(&browser).await);
    assert!(error.ends_with("signing in was declined: access_denied"), "{error}");
    assert_eq!(browser.visits(), 2, "who said no is not asked again");
    // Nobody signs in at one that only says nothing.
    let silent = Remote::of(fx("web").with("--era", "legacy"));
    let silent = silent.fault(Fault::silence().on_http("POST").times(99)).start().await;
    let started = at(&scene, &silent.url(), &keys).user_agent(browser.clone()).start().await;
    assert!(why(started).contains("not ready within 1 s"));
}

/// Every request that a server may refuse: what begins a connection, and what goes over it.
#[tokio::test]
async fn every_transport_signs_in_where_it_is_refused() {
    let wires: [(&str, &[&str]); 3] =
        [("http", &["POST", "GET"]), ("sse", &["GET", "POST"]), ("websocket", &["GET"])];
    for (wire, refused) in wires {
        for method in refused {
            let inn = Inn::open(Rules::default()).await;
            let plan = Remote::of(fx("web").with("--era", "legacy"));
            let plan = match wire {
                "sse" => plan.sse(),
                "websocket" => plan.websocket(),
                _ => plan,
            };
            let no = Fault::status(401).header("www-authenticate", &inn.pointer());
            let remote = plan.fault(no.on_http(method).nth(1)).start().await;
            let resource = remote.url().replacen("ws://", "http://", 1);
            inn.rule(|rules| rules.resource = Some(resource));
            let browser = Browser::default();
            let scene = Scene::new();
            let config = scene.config_of(&json!({"servers": {"web": remote.entry()}}));
            let host = builder(config).user_agent(browser.clone()).start().await.unwrap();
            let signed = |seen: &innkeeper_testkit::Seen| {
                seen.method == *method
                    && seen.header("authorization").is_some_and(|value| value.contains(CANARY))
            };
            remote.until(PATIENCE, |seen| seen.iter().any(signed)).await;
            assert_eq!(browser.visits(), 1, "{wire} {method}");
            host.shutdown().await;
            for seen in remote.requests().iter().filter(|seen| seen.method == "DELETE") {
                assert!(seen.header("authorization").is_some(), "{wire} {method}");
            }
        }
    }
}

#[test]
fn a_fault_is_told_with_the_server() {
    let error = innkeeper_host::AuthError {
        server: "inn".into(),
        fault: AuthFault::Late(Duration::from_secs(300)),
    };
    let words = "server `inn` cannot be signed in at: nobody signed in within 300 s; try again";
    assert_eq!(error.to_string(), words);
}

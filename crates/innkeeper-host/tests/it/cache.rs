//! Caching of resources and prompts.

use innkeeper_host::{CallOptions, ErrorClass, Host, HostEvent, RemoteClient, ServerState};
use innkeeper_testkit::Fixture;
use serde_json::{Map, Value, json};

use crate::setup::{TestEnv, wait_for_event};

fn fresh_options() -> CallOptions {
    CallOptions { fresh: true, ..CallOptions::default() }
}

async fn read_with(host: &Host, uri: &str, options: CallOptions) -> Value {
    let raw = host.read_resource(uri, None, options).await.unwrap();
    serde_json::from_str(raw.get()).unwrap()
}

/// Returns the text of a resource; the text contains the number of reads at its server.
async fn read(host: &Host, uri: &str) -> String {
    let result = read_with(host, uri, CallOptions::default()).await;
    result["contents"][0]["text"].as_str().unwrap().to_owned()
}

async fn get_greet_prompt(host: &Host, name: &str, arguments: Value) -> String {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let raw = host.get_prompt(name, &arguments, CallOptions::default()).await.unwrap();
    raw.get().to_owned()
}

/// Makes the server change a list and waits until the host reports the change.
async fn change_list(host: &Host, server: &str, kind: &str) {
    let mut events = host.events();
    host.call_tool(&format!("{server}.grow"), json!({"what": kind})).await.unwrap();
    wait_for_event(&mut events, |event| matches!(event, HostEvent::CatalogChanged { .. })).await;
}

/// Proves: FR8.1, FR8.4, N29
#[tokio::test]
async fn a_resource_read_twice_is_asked_for_once_and_a_fresh_one_again() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for _ in 0..3 {
        assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 1");
    }
    assert_eq!(test_env.journal().count("resources/read"), 1);
    let metrics = host.metrics()["one"].clone();
    assert_eq!((metrics.request_count, metrics.cache.hits, metrics.cache.misses), (1, 2, 1));
    assert_eq!(metrics.cache.entries, 1);
    assert!(metrics.cache.bytes > 50, "{metrics:?}");
    assert_eq!(host.metrics()["two"].cache.entries, 0);
    let second = read_with(&host, "fx://one/static", fresh_options()).await;
    assert_eq!(second["contents"][0]["text"], "one: fx://one/static, reading 2");
    assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 2");
    assert_eq!(test_env.journal().count("resources/read"), 2);
    host.shutdown().await;
}

/// Attack: data | another principal reads a resource and a prompt that the server gave to one
/// principal, also after the server is lost | the other principal gets a result of its own or an
/// error | Secrets stay with their owner
#[tokio::test]
async fn a_result_is_kept_for_its_principal_unless_its_server_says_that_it_is_public() {
    let options = |principal: Option<&str>| CallOptions {
        client: RemoteClient { principal: principal.map(Into::into), ..RemoteClient::default() },
        ..CallOptions::default()
    };
    let name = Map::from_iter([("name".to_owned(), json!("Ada"))]);
    for (scope, expected) in [(None, 3), (Some("private"), 3), (Some("public"), 1)] {
        let test_env = TestEnv::new();
        let (mut resource, mut prompt) = (json!({"contents": []}), json!({"messages": []}));
        if let Some(scope) = scope {
            (resource["cacheScope"], prompt["cacheScope"]) = (json!(scope), json!(scope));
        }
        let fixture = test_env.fixture("one").with("--crash-after", 1);
        let fixture = fixture.with("--read-result", &resource).with("--prompt-result", &prompt);
        let host = test_env.start([fixture]).await.unwrap();
        let principals = [Some("ada"), Some("bob"), None];
        for principal in principals.into_iter().chain(principals) {
            read_with(&host, "fx://one/static", options(principal)).await;
            host.get_prompt("one.greet", &name, options(principal)).await.unwrap();
        }
        let journal = test_env.journal();
        let counts = (journal.count("resources/read"), journal.count("prompts/get"));
        assert_eq!(counts, (expected, expected), "{scope:?}");
        host.call_tool("one.pid", ()).await.unwrap_err();
        let copy = read_with(&host, "fx://one/static", options(Some("ada"))).await;
        assert_eq!(copy["_meta"]["stale"], true);
        let other = host.read_resource("fx://one/static", None, options(Some("eve"))).await;
        assert_eq!(other.is_ok(), scope == Some("public"), "{scope:?}");
        let other = host.get_prompt("one.greet", &name, options(Some("eve"))).await;
        assert_eq!(other.is_ok(), scope == Some("public"), "{scope:?}");
        host.shutdown().await;
    }
}

/// Proves: FR8.2, FR8.4, N29
#[tokio::test]
async fn a_prompt_got_twice_is_asked_for_once_for_each_set_of_arguments() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let first =
        get_greet_prompt(&host, "one.greet", json!({"name": "Ada", "style": "warmly"})).await;
    let second =
        get_greet_prompt(&host, "one.greet", json!({"style": "warmly", "name": "Ada"})).await;
    assert_eq!(first, second);
    assert_eq!(test_env.journal().count("prompts/get"), 1);
    get_greet_prompt(&host, "one.greet", json!({"name": "Bob"})).await;
    assert!(
        get_greet_prompt(&host, "two.greet", json!({"name": "Bob"}))
            .await
            .contains("two: greet Bob")
    );
    assert_eq!(test_env.journal().count("prompts/get"), 3);
    let arguments = json!({"name": "Bob"}).as_object().unwrap().clone();
    host.get_prompt("one.greet", &arguments, fresh_options()).await.unwrap();
    assert_eq!(test_env.journal().count("prompts/get"), 4);
    host.shutdown().await;
}

/// Proves: FR8.1
#[tokio::test]
async fn readers_at_the_same_time_share_a_request() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let mut readers: tokio::task::JoinSet<_> = (0..50)
        .map(|_| {
            let host = host.clone();
            async move { read(&host, "fx://one/static").await }
        })
        .collect();
    while let Some(text) = readers.join_next().await {
        assert_eq!(text.unwrap(), "one: fx://one/static, reading 1");
    }
    assert_eq!(test_env.journal().count("resources/read"), 1);
    host.shutdown().await;
}

/// Proves: FR8.3
#[tokio::test]
async fn a_change_drops_what_is_kept_of_that_kind_and_that_server() {
    let test_env = TestEnv::new();
    let fixture = |name| -> Fixture { test_env.fixture(name).switch("--list-changed") };
    let host = test_env.start([fixture("one"), fixture("two")]).await.unwrap();
    let arguments = || json!({"name": "Ada"});
    let request_counts = |server: &str| {
        let journal = test_env.journal().for_server(server);
        (journal.count("resources/read"), journal.count("prompts/get"))
    };
    let all = async || {
        for server in ["one", "two"] {
            read(&host, &format!("fx://{server}/static")).await;
            get_greet_prompt(&host, &format!("{server}.greet"), arguments()).await;
        }
        (request_counts("one"), request_counts("two"))
    };
    assert_eq!(all().await, ((1, 1), (1, 1)));
    change_list(&host, "one", "tools").await;
    assert_eq!(all().await, ((1, 1), (1, 1)), "tools have nothing to do with it");
    change_list(&host, "one", "resources").await;
    assert_eq!(all().await, ((2, 1), (1, 1)));
    change_list(&host, "one", "prompts").await;
    assert_eq!(all().await, ((2, 2), (1, 1)));
    host.shutdown().await;
}

/// Proves: FR8.3
#[tokio::test]
async fn a_reading_that_follows_a_change_is_new_also_while_lists_are_left_alone_for_a_moment() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--list-changed")]).await.unwrap();
    // After a change, the host waits at least 250 ms before it reads a list again.
    change_list(&host, "one", "tools").await;
    assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 1");
    host.call_tool("one.grow", json!({"what": "resources"})).await.unwrap();
    assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 2");
    host.shutdown().await;
}

#[tokio::test]
async fn errors_and_results_of_tools_are_never_kept() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for _ in 0..2 {
        let by_server = host.read_resource("fx://one/static", Some("two"), CallOptions::default());
        by_server.await.unwrap_err();
        host.call_tool("one.read", json!({"path": "/"})).await.unwrap();
    }
    assert_eq!(test_env.journal().count("resources/read"), 2);
    assert_eq!(test_env.journal().count("tools/call"), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_of_the_newer_era_says_for_how_long_and_zero_seconds_keep_nothing() {
    let test_env = TestEnv::new();
    let never = test_env.fixture("never").config_key("cache", json!({"ttl": 0}));
    let host =
        test_env.start([test_env.fixture("new").with("--era", "modern"), never]).await.unwrap();
    for server in ["new", "never"] {
        for reading in [1, 2] {
            let uri = format!("fx://{server}/static");
            assert_eq!(read(&host, &uri).await, format!("{server}: {uri}, reading {reading}"));
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn what_was_kept_is_gone_after_a_restart() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    read(&host, "fx://one/static").await;
    host.restart_server("one").await.unwrap();
    assert_eq!(host.metrics()["one"].cache.entries, 0);
    read(&host, "fx://one/static").await;
    assert_eq!(test_env.journal().count("resources/read"), 2);
    host.shutdown().await;
}

/// Proves: FR7.3, N28
#[tokio::test]
async fn what_a_lost_server_said_is_given_with_a_mark_and_what_it_never_said_is_an_error() {
    let test_env = TestEnv::new();
    let crashing = |name| test_env.fixture(name).with("--crash-after", 1);
    // The modern server sends `ttlMs` 0 and a `_meta` object in its results.
    let host = test_env.start([crashing("old"), crashing("new").with("--era", "modern")]).await;
    let host = host.unwrap();
    for server in ["old", "new"] {
        let (uri, prompt) = (format!("fx://{server}/static"), format!("{server}.greet"));
        let first = read_with(&host, &uri, CallOptions::default()).await;
        assert!(first["_meta"].get("stale").is_none(), "{first}");
        let greeting = get_greet_prompt(&host, &prompt, json!({"name": "Ada"})).await;
        host.call_tool(&format!("{server}.pid"), ()).await.unwrap_err();
        assert_eq!(host.status()[server].state, ServerState::Unavailable);

        let mut copy = read_with(&host, &uri, CallOptions::default()).await;
        let meta = copy["_meta"].as_object_mut().unwrap();
        assert_eq!(meta.remove("stale"), Some(json!(true)));
        assert!(meta.remove("ageSeconds").unwrap().is_u64());
        if meta.is_empty() {
            copy.as_object_mut().unwrap().remove("_meta");
        }
        assert_eq!(copy, first, "all else is as it was");
        let options = CallOptions::default();
        let by_server = host.read_resource(&uri, Some(server), options.clone()).await.unwrap();
        assert!(by_server.get().contains(r#""stale":true"#));
        let copy = get_greet_prompt(&host, &prompt, json!({"name": "Ada"})).await;
        assert!(copy.contains(r#""stale":true"#) && copy != greeting, "{copy}");

        let other = format!("fx://{server}/item/1");
        let never = host.read_resource(&other, None, options.clone()).await.unwrap_err();
        assert_eq!(never.class(), ErrorClass::ServerUnavailable);
        let bob = json!({"name": "Bob"}).as_object().unwrap().clone();
        let never = host.get_prompt(&prompt, &bob, options).await.unwrap_err();
        assert_eq!(never.class(), ErrorClass::ServerUnavailable);
        let insisted = host.read_resource(&uri, None, fresh_options()).await.unwrap_err();
        assert_eq!(insisted.class(), ErrorClass::ServerUnavailable);
        let tool = host.call_tool(&format!("{server}.pid"), ()).await.unwrap_err();
        assert_eq!(tool.class(), ErrorClass::ServerUnavailable);
    }
    assert_eq!(test_env.journal().count("resources/read"), 2);
    host.shutdown().await;
    let result = host.read_resource("fx://old/static", None, CallOptions::default()).await;
    assert_eq!(result.unwrap_err().class(), ErrorClass::ServerUnavailable, "it was stopped");
}

/// Proves: FR7.3
#[cfg(unix)]
#[tokio::test]
async fn a_reading_that_its_server_dies_of_gives_the_copy_too() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--era", "modern")]).await.unwrap();
    let first = read(&host, "fx://one/static").await;
    let pid = rustix::process::Pid::from_raw(test_env.journal().pids()[0].cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(host.catalog().server("one").is_some(), "the host does not know yet");
    let copy = read_with(&host, "fx://one/static", CallOptions::default()).await;
    assert_eq!(
        (&copy["_meta"]["stale"], &copy["contents"][0]["text"]),
        (&json!(true), &json!(first))
    );
    assert_eq!(host.metrics()["one"].error_count, 1, "it was asked");
    host.shutdown().await;
}

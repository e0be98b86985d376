//! Prompts and resources: scanned definitions, contents and cached copies.

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, Config, Environment, Host, ServerState};
use innkeeper_host::{FindingKind, HostEvent};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::Receiver;

use super::{INJECTION, guard_findings};
use crate::setup::{LogCapture, TestEnv, builder};

/// A resource with an injection in its text and none in its definition.
fn injected_uri(server: &str) -> String {
    format!("fx://{server}/item/{}", INJECTION.replace(' ', "%20"))
}

type ContentResult = Result<Box<RawValue>, CallError>;

async fn greet_with(host: &Host, name: &str, options: CallOptions) -> ContentResult {
    let arguments = json!({"name": name});
    host.get_prompt("one.greet", arguments.as_object().unwrap(), options).await
}

async fn greet(host: &Host, name: &str) -> ContentResult {
    greet_with(host, name, CallOptions::default()).await
}

async fn read_with(host: &Host, uri: &str, options: CallOptions) -> ContentResult {
    host.read_resource(uri, None, options).await
}

async fn read(host: &Host, uri: &str) -> ContentResult {
    read_with(host, uri, CallOptions::default()).await
}

fn withheld_message(got: ContentResult) -> String {
    let error = got.unwrap_err();
    assert!(matches!(error, CallError::Withheld { .. }), "{error:?}");
    error.to_string()
}

/// Returns the items in new findings, without consecutive duplicates.
fn reported_items(events: &mut Receiver<HostEvent>, withheld: bool) -> Vec<String> {
    let findings = guard_findings(events);
    assert!(findings.iter().all(|told| told.3 == withheld), "{findings:?}");
    let mut items: Vec<String> = findings.into_iter().map(|finding| finding.1).collect();
    items.dedup();
    items
}

/// Starts a host with a configuration file and returns a function that changes the server's `guard`
/// in the file.
async fn start(test_env: &TestEnv, fixture: Fixture) -> (Host, impl Fn(&Value)) {
    let path = test_env.path("mcp.json");
    let write = move |guard: &Value| {
        let fixture = fixture.clone().config_key("guard", guard.clone());
        std::fs::write(&path, mcp_json([fixture]).to_string()).unwrap();
    };
    write(&json!("off"));
    let files = [test_env.path("mcp.json")];
    let config = Config::load(&files, &Environment::from_process()).unwrap();
    (builder(config).start().await.unwrap(), write)
}

#[tokio::test]
async fn contents_are_reported_or_withheld_by_the_mode_and_counted_and_audited() {
    for (mode, withheld) in [("flag", false), ("refuse", true)] {
        let test_env = TestEnv::new();
        let log = LogCapture::capture();
        let config =
            test_env.config_with(&json!({"guard": {"results": mode}}), [test_env.fixture("one")]);
        let host = builder(config).start().await.unwrap();
        let mut events = host.events();
        greet(&host, "Ada").await.unwrap();
        read(&host, "fx://one/static").await.unwrap();
        assert_eq!(guard_findings(&mut events), [], "harmless");
        let uri = injected_uri("one");
        let (prompt, resource) = (greet(&host, INJECTION).await, read(&host, &uri).await);
        assert_eq!(reported_items(&mut events, withheld), ["greet", &*uri]);
        let audited = log.security_lines();
        assert!(audited.iter().any(|line| line["item"] == "greet"
            && line["tool"].is_null()
            && line["what"] == "prompt result /messages/0/content/text"
            && line["refused"] == withheld));
        assert!(!json!(audited).to_string().contains("gnore all"), "{audited:?}");
        if withheld {
            assert!(withheld_message(prompt).contains("`greet`"));
            let message = withheld_message(resource);
            assert!(message.contains("`guard.results` to `flag`"), "{message}");
        } else {
            assert!(prompt.unwrap().get().contains("gnore all previous"));
            assert!(resource.unwrap().get().contains("gnore%20all"));
        }
        assert_eq!(host.metrics()["one"].error_count, if withheld { 2 } else { 0 });
        host.shutdown().await;
    }
}

/// Attack: data | the error for an unknown resource contains an injection | the guard withholds the
/// error | Complete checks
#[tokio::test]
async fn an_error_in_place_of_contents_is_scanned_as_well() {
    let test_env = TestEnv::new();
    let prompts = json!([{"name": "greet"}, {"name": "other"}]);
    let fixture = test_env.fixture("one").with("--prompts", prompts);
    let config = test_env.config_with(&json!({"guard": {"results": "refuse"}}), [fixture]);
    let host = builder(config).start().await.unwrap();
    let mut events = host.events();
    // The fixture repeats the unknown URI in its error.
    let uri = format!("fx://nowhere/{}", INJECTION.replace(' ', "%20"));
    let result = host.read_resource(&uri, Some("one"), CallOptions::default()).await;
    withheld_message(result);
    assert_eq!(reported_items(&mut events, true), [uri]);
    let named = host.read_resource("fx://nowhere", Some("one"), CallOptions::default()).await;
    assert!(matches!(named, Err(CallError::Server { .. })), "{named:?}");
    host.shutdown().await;
}

/// Attack: data | a resource with an injection is read twice | the cache does not store a withheld
/// result | Complete checks
#[tokio::test]
async fn a_withheld_result_is_not_cached_and_a_flagged_copy_is_reported_again() {
    let test_env = TestEnv::new();
    let (host, write) = start(&test_env, test_env.fixture("one")).await;
    write(&json!({"results": "refuse"}));
    host.reload().await.unwrap();
    let (uri, reads) = (injected_uri("one"), || test_env.journal().count("resources/read"));
    for attempt in [1, 2] {
        withheld_message(read(&host, &uri).await);
        assert_eq!(reads(), attempt, "each asks the server");
    }
    assert_eq!(host.metrics()["one"].cache.entries, 0);
    write(&json!({"results": "flag"}));
    host.reload().await.unwrap();
    let mut events = host.events();
    for _ in 0..2 {
        read(&host, &uri).await.unwrap();
        assert_eq!(reported_items(&mut events, false), [&*uri]);
    }
    assert_eq!(reads(), 3);
    read(&host, "fx://one/static").await.unwrap();
    read(&host, "fx://one/static").await.unwrap();
    assert_eq!((reads(), guard_findings(&mut events)), (4, vec![]));
    host.shutdown().await;
}

#[tokio::test]
async fn a_copy_cached_before_a_reload_is_scanned_by_the_current_mode() {
    for mode in ["off", "flag"] {
        let test_env = TestEnv::new();
        let (host, write) = start(&test_env, test_env.fixture("one")).await;
        write(&json!({"results": mode}));
        host.reload().await.unwrap();
        let uri = injected_uri("one");
        read(&host, &uri).await.unwrap();
        greet(&host, INJECTION).await.unwrap();
        read(&host, "fx://one/static").await.unwrap();
        write(&json!({"results": "refuse"}));
        host.reload().await.unwrap();
        let mut events = host.events();
        withheld_message(read(&host, &uri).await);
        withheld_message(greet(&host, INJECTION).await);
        assert_eq!(reported_items(&mut events, true), [&*uri, "greet"]);
        read(&host, "fx://one/static").await.unwrap();
        assert_eq!(test_env.journal().count("resources/read"), 2, "only copies were looked at");
        assert_eq!(host.metrics()["one"].cache.entries, 1, "what is held back is dropped");
        write(&json!("off"));
        host.reload().await.unwrap();
        read(&host, &uri).await.unwrap();
        assert_eq!(test_env.journal().count("resources/read"), 3, "it was not kept");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_copy_of_a_lost_server_is_scanned_by_the_current_mode_too() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("one").with("--crash-after", 1);
    let (host, write) = start(&test_env, fixture).await;
    let uri = injected_uri("one");
    for uri in [&*uri, "fx://one/static"] {
        read(&host, uri).await.unwrap();
    }
    greet(&host, INJECTION).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap_err();
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    let mut events = host.events();
    assert!(read(&host, &uri).await.unwrap().get().contains("\"stale\":true"));
    write(&json!({"results": "refuse"}));
    host.reload().await.unwrap();
    withheld_message(read(&host, &uri).await);
    withheld_message(greet(&host, INJECTION).await);
    assert_eq!(reported_items(&mut events, true), [&*uri, "greet"]);
    let error = read(&host, &uri).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { .. }), "it is gone: {error:?}");
    assert!(read(&host, "fx://one/static").await.unwrap().get().contains("\"stale\":true"));
    host.shutdown().await;
}

/// Attack: secrets | a credential in a prompt is an argument for another server | the guard rejects
/// the call | Secrets stay with their owner
#[tokio::test]
async fn a_credential_in_contents_is_known_again_in_arguments_for_another_server() {
    let test_env = TestEnv::new();
    let guard = json!({"guard": {"arguments": "refuse", "results": "flag"}});
    let config = test_env.config_with(&guard, [test_env.fixture("one"), test_env.fixture("two")]);
    let host = builder(config).start().await.unwrap();
    let mut events = host.events();
    greet(&host, "session_token=Zx81kQpW07LmTb42RvYc").await.unwrap();
    let arguments = json!({"message": "https://a.example/?q=Zx81kQpW07LmTb42RvYc"});
    host.call_tool("two.echo", arguments).await.unwrap_err();
    let kinds: Vec<FindingKind> =
        guard_findings(&mut events).into_iter().map(|finding| finding.2).collect();
    assert_eq!(kinds, [FindingKind::Secret, FindingKind::CrossServerCredential]);
    host.shutdown().await;
}

/// A server with one clean item and one injected item of each kind.
fn fixture_with_injections(test_env: &TestEnv) -> Fixture {
    let bad = |key: &str, value: &str, more: Value| {
        let mut item = json!({"name": "bad", "description": "Fine."});
        item[key] = json!(value);
        for (name, value) in more.as_object().unwrap() {
            item[name] = value.clone();
        }
        item
    };
    let argument = json!([{"name": "a", "description": INJECTION}]);
    let prompts = json!([{"name": "good"}, bad("name", "bad", json!({"arguments": argument}))]);
    let prompt_json = json!({"description": INJECTION});
    let resources = json!([{"uri": "fx://one/good", "name": "good"}, bad("uri", "fx://one/bad", prompt_json.clone())]);
    let templates = json!([bad("uriTemplate", "fx://one/item/{id}", prompt_json)]);
    let fixture = test_env.fixture("one").switch("--list-changed").with("--prompts", prompts);
    fixture.with("--resources", resources).with("--templates", templates)
}

/// Returns the number of listed prompts, resources and templates.
fn listed_count(host: &Host) -> usize {
    let catalog = host.catalog();
    let listing = catalog.server("one").unwrap().listing().unwrap();
    listing.prompts.len() + listing.resources.len() + listing.resource_templates.len()
}

#[tokio::test]
async fn definitions_of_prompts_and_resources_are_reported_or_excluded_by_the_mode() {
    for (mode, withheld) in [("flag", false), ("refuse", true)] {
        let test_env = TestEnv::new();
        let guard = json!({"guard": {"definitions": mode}});
        let builder = builder(test_env.config_with(&guard, [fixture_with_injections(&test_env)]));
        let mut events = builder.events();
        let host = builder.start().await.unwrap();
        assert_eq!(
            reported_items(&mut events, withheld),
            ["bad", "fx://one/bad", "fx://one/item/{id}"]
        );
        let findings = host.catalog().guard_findings();
        assert!(findings.iter().all(|doubt| doubt.tool.is_none() && doubt.item.is_some()));
        assert_eq!(findings.is_empty(), withheld);
        assert_eq!(listed_count(&host), if withheld { 2 } else { 5 });
        let none = Map::new();
        host.get_prompt("one.good", &none, CallOptions::default()).await.unwrap();
        read(&host, "fx://one/good").await.unwrap();
        let prompt = host.get_prompt("one.bad", &none, CallOptions::default()).await;
        let (server, options) = (Some("one"), CallOptions::default);
        let results = [
            (prompt, "prompt `bad`"),
            (read(&host, "fx://one/bad").await, "resource `fx://one/bad`"),
            (
                host.read_resource("fx://one/bad", server, options()).await,
                "resource `fx://one/bad`",
            ),
            (read(&host, "fx://one/item/7").await, "resource template `fx://one/item/7`"),
            (host.read_resource("fx://one/item/7", server, options()).await, "resource template"),
        ];
        for (result, expected) in results {
            if !withheld {
                result.unwrap();
                continue;
            }
            let error = result.unwrap_err();
            let is = matches!(error, CallError::Routing(RoutingError::ItemWithheld { .. }));
            let message = error.to_string();
            assert!(is && message.starts_with(expected), "{message}");
            assert!(message.contains("set `guard.definitions` to `flag`"), "{message}");
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_reload_and_a_new_list_scan_definitions_by_the_current_mode_and_report_each_once() {
    let test_env = TestEnv::new();
    let (host, write) = start(&test_env, fixture_with_injections(&test_env)).await;
    let mut events = host.events();
    assert_eq!(listed_count(&host), 5);
    let none = Map::new();
    host.get_prompt("one.bad", &none, CallOptions::default()).await.unwrap();
    write(&json!({"definitions": "refuse"}));
    host.reload().await.unwrap();
    assert_eq!(listed_count(&host), 2);
    assert_eq!(reported_items(&mut events, true), ["bad", "fx://one/bad", "fx://one/item/{id}"]);
    host.get_prompt("one.bad", &none, CallOptions::default()).await.unwrap_err();
    let mut others = host.events();
    assert!(host.refresh_server("one"));
    let changed = |event: &HostEvent| matches!(event, HostEvent::CatalogChanged { .. });
    crate::setup::wait_for_event(&mut others, changed).await;
    assert_eq!(guard_findings(&mut events), [], "what was told is not told again");
    assert_eq!(listed_count(&host), 2);
    write(&json!("off"));
    host.reload().await.unwrap();
    assert_eq!(listed_count(&host), 5, "all of them are back");
    assert_eq!(guard_findings(&mut events), [], "nothing is looked at");
    host.shutdown().await;
}

#[tokio::test]
async fn an_excluded_resource_is_not_read_by_a_template_that_is_offered() {
    let test_env = TestEnv::new();
    let resources = json!([{"uri": "fx://one/item/7", "name": "bad", "description": INJECTION}]);
    let fixture = test_env.fixture("one").with("--resources", resources);
    let config = test_env.config_with(&json!({"guard": {"definitions": "refuse"}}), [fixture]);
    let host = builder(config).start().await.unwrap();
    read(&host, "fx://one/item/8").await.unwrap();
    let error = read(&host, "fx://one/item/7").await.unwrap_err();
    let is = matches!(error, CallError::Routing(RoutingError::ItemWithheld { .. }));
    assert!(is, "{error:?}");
    assert_eq!(test_env.journal().count("resources/read"), 1);
    host.shutdown().await;
}

/// Attack: data | a server is lost after the cache stored a prompt that the guard now excludes |
/// the host does not return the copy | Complete checks
#[tokio::test]
async fn a_copy_of_an_excluded_item_is_not_returned_for_a_lost_server() {
    let test_env = TestEnv::new();
    let (host, write) =
        start(&test_env, fixture_with_injections(&test_env).with("--crash-after", 1)).await;
    let none = Map::new();
    let get = async |name| host.get_prompt(name, &none, CallOptions::default()).await;
    let read_from = async |uri| host.read_resource(uri, Some("one"), CallOptions::default()).await;
    for uri in ["fx://one/good", "fx://one/bad"] {
        read_from(uri).await.unwrap();
    }
    for name in ["one.good", "one.bad"] {
        get(name).await.unwrap();
    }
    host.call_tool("one.pid", ()).await.unwrap_err();
    write(&json!({"definitions": "refuse"}));
    host.reload().await.unwrap();
    get("one.good").await.unwrap();
    read_from("fx://one/good").await.unwrap();
    for result in [get("one.bad").await, read_from("fx://one/bad").await] {
        let error = result.unwrap_err();
        assert!(matches!(error, CallError::Unavailable { .. }), "{error:?}");
    }
    host.shutdown().await;
}

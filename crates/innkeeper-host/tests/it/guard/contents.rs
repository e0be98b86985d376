//! Prompts and resources: their definitions, what is in them, and what is kept of that.

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, Config, Environment, Host, ServerState};
use innkeeper_host::{Event, FindingKind};
use innkeeper_testkit::{Fixture, mcp_json};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::Receiver;

use super::{ORDER, found};
use crate::setup::{Log, Scene, builder};

/// A resource whose text, and nothing of whose definition, has the order.
fn ordered(server: &str) -> String {
    format!("fx://{server}/item/{}", ORDER.replace(' ', "%20"))
}

type Got = Result<Box<RawValue>, CallError>;

async fn greet_with(host: &Host, name: &str, options: CallOptions) -> Got {
    let arguments = json!({"name": name});
    host.get_prompt("one.greet", arguments.as_object().unwrap(), options).await
}

async fn greet(host: &Host, name: &str) -> Got {
    greet_with(host, name, CallOptions::default()).await
}

async fn read_with(host: &Host, uri: &str, options: CallOptions) -> Got {
    host.read_resource(uri, None, options).await
}

async fn read(host: &Host, uri: &str) -> Got {
    read_with(host, uri, CallOptions::default()).await
}

fn withheld(got: Got) -> String {
    let error = got.unwrap_err();
    assert!(matches!(error, CallError::Withheld { .. }), "{error:?}");
    error.to_string()
}

/// The items that were told since, each once in a row.
fn items(events: &mut Receiver<Event>, refused: bool) -> Vec<String> {
    let told = found(events);
    assert!(told.iter().all(|told| told.3 == refused), "{told:?}");
    let mut items: Vec<String> = told.into_iter().map(|told| told.1).collect();
    items.dedup();
    items
}

/// A host whose file says how this server is looked at, and the file.
async fn start(scene: &Scene, one: Fixture) -> (Host, impl Fn(&Value)) {
    let path = scene.path("mcp.json");
    let write = move |guard: &Value| {
        let one = one.clone().key("guard", guard.clone());
        std::fs::write(&path, mcp_json([one]).to_string()).unwrap();
    };
    write(&json!("off"));
    let files = [scene.path("mcp.json")];
    let config = Config::load(&files, &Environment::of_process()).unwrap();
    (builder(config).start().await.unwrap(), write)
}

#[tokio::test]
async fn contents_are_told_or_withheld_by_the_mode_and_counted_and_audited() {
    for (mode, refused) in [("flag", false), ("refuse", true)] {
        let scene = Scene::new();
        let log = Log::capture();
        let config = scene.config_with(&json!({"guard": {"results": mode}}), [scene.fx("one")]);
        let host = builder(config).start().await.unwrap();
        let mut events = host.events();
        greet(&host, "Ada").await.unwrap();
        read(&host, "fx://one/static").await.unwrap();
        assert_eq!(found(&mut events), [], "harmless");
        let uri = ordered("one");
        let (prompt, resource) = (greet(&host, ORDER).await, read(&host, &uri).await);
        assert_eq!(items(&mut events, refused), ["greet", &*uri]);
        let audited = log.audited();
        assert!(audited.iter().any(|line| line["item"] == "greet"
            && line["tool"].is_null()
            && line["what"] == "prompt result /messages/0/content/text"
            && line["refused"] == refused));
        assert!(!json!(audited).to_string().contains("gnore all"), "{audited:?}");
        if refused {
            assert!(withheld(prompt).contains("`greet`"));
            let words = withheld(resource);
            assert!(words.contains("`guard.results` as `flag`"), "{words}");
        } else {
            assert!(prompt.unwrap().get().contains("gnore all previous"));
            assert!(resource.unwrap().get().contains("gnore%20all"));
        }
        assert_eq!(host.metrics()["one"].error_count, if refused { 2 } else { 0 });
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_error_in_place_of_contents_is_looked_at_as_well() {
    let scene = Scene::new();
    let prompts = json!([{"name": "greet"}, {"name": "other"}]);
    let one = scene.fx("one").with("--prompts", prompts);
    let config = scene.config_with(&json!({"guard": {"results": "refuse"}}), [one]);
    let host = builder(config).start().await.unwrap();
    let mut events = host.events();
    // The fixture says back which address it does not have.
    let uri = format!("fx://nowhere/{}", ORDER.replace(' ', "%20"));
    let answer = host.read_resource(&uri, Some("one"), CallOptions::default()).await;
    withheld(answer);
    assert_eq!(items(&mut events, true), [uri]);
    let named = host.read_resource("fx://nowhere", Some("one"), CallOptions::default()).await;
    assert!(matches!(named, Err(CallError::Server { .. })), "{named:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn what_is_withheld_is_not_kept_and_a_flagged_copy_is_told_again() {
    let scene = Scene::new();
    let (host, write) = start(&scene, scene.fx("one")).await;
    write(&json!({"results": "refuse"}));
    host.reload().await.unwrap();
    let (uri, reads) = (ordered("one"), || scene.journal().count("resources/read"));
    for asked in [1, 2] {
        withheld(read(&host, &uri).await);
        assert_eq!(reads(), asked, "each asks the server");
    }
    assert_eq!(host.metrics()["one"].cache_entries, 0);
    write(&json!({"results": "flag"}));
    host.reload().await.unwrap();
    let mut events = host.events();
    for _ in 0..2 {
        read(&host, &uri).await.unwrap();
        assert_eq!(items(&mut events, false), [&*uri]);
    }
    assert_eq!(reads(), 3);
    read(&host, "fx://one/static").await.unwrap();
    read(&host, "fx://one/static").await.unwrap();
    assert_eq!((reads(), found(&mut events)), (4, vec![]));
    host.shutdown().await;
}

#[tokio::test]
async fn a_copy_that_was_kept_before_a_reload_is_held_to_the_mode_of_now() {
    for mode in ["off", "flag"] {
        let scene = Scene::new();
        let (host, write) = start(&scene, scene.fx("one")).await;
        write(&json!({"results": mode}));
        host.reload().await.unwrap();
        let uri = ordered("one");
        read(&host, &uri).await.unwrap();
        greet(&host, ORDER).await.unwrap();
        read(&host, "fx://one/static").await.unwrap();
        write(&json!({"results": "refuse"}));
        host.reload().await.unwrap();
        let mut events = host.events();
        withheld(read(&host, &uri).await);
        withheld(greet(&host, ORDER).await);
        assert_eq!(items(&mut events, true), [&*uri, "greet"]);
        read(&host, "fx://one/static").await.unwrap();
        assert_eq!(scene.journal().count("resources/read"), 2, "only copies were looked at");
        assert_eq!(host.metrics()["one"].cache_entries, 1, "what is held back is dropped");
        write(&json!("off"));
        host.reload().await.unwrap();
        read(&host, &uri).await.unwrap();
        assert_eq!(scene.journal().count("resources/read"), 3, "it was not kept");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_copy_of_a_lost_server_is_held_to_the_mode_of_now_too() {
    let scene = Scene::new();
    let one = scene.fx("one").with("--crash-after", 1);
    let (host, write) = start(&scene, one).await;
    let uri = ordered("one");
    for uri in [&*uri, "fx://one/static"] {
        read(&host, uri).await.unwrap();
    }
    greet(&host, ORDER).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap_err();
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    let mut events = host.events();
    assert!(read(&host, &uri).await.unwrap().get().contains("\"stale\":true"));
    write(&json!({"results": "refuse"}));
    host.reload().await.unwrap();
    withheld(read(&host, &uri).await);
    withheld(greet(&host, ORDER).await);
    assert_eq!(items(&mut events, true), [&*uri, "greet"]);
    let error = read(&host, &uri).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { .. }), "it is gone: {error:?}");
    assert!(read(&host, "fx://one/static").await.unwrap().get().contains("\"stale\":true"));
    host.shutdown().await;
}

#[tokio::test]
async fn a_credential_in_contents_is_known_again_in_arguments_for_another_server() {
    let scene = Scene::new();
    let guard = json!({"guard": {"arguments": "refuse", "results": "flag"}});
    let config = scene.config_with(&guard, [scene.fx("one"), scene.fx("two")]);
    let host = builder(config).start().await.unwrap();
    let mut events = host.events();
    greet(&host, "session_token=Zx81kQpW07LmTb42RvYc").await.unwrap();
    let carried = json!({"message": "https://a.example/?q=Zx81kQpW07LmTb42RvYc"});
    host.call_tool("two.echo", carried).await.unwrap_err();
    let kinds: Vec<FindingKind> = found(&mut events).into_iter().map(|told| told.2).collect();
    assert_eq!(kinds, [FindingKind::Secret, FindingKind::Carried]);
    host.shutdown().await;
}

/// A server with one of each that is good, and one of each that has the order.
fn offering(scene: &Scene) -> Fixture {
    let bad = |key: &str, value: &str, more: Value| {
        let mut item = json!({"name": "bad", "description": "Fine."});
        item[key] = json!(value);
        for (name, value) in more.as_object().unwrap() {
            item[name] = value.clone();
        }
        item
    };
    let argument = json!([{"name": "a", "description": ORDER}]);
    let prompts = json!([{"name": "good"}, bad("name", "bad", json!({"arguments": argument}))]);
    let told = json!({"description": ORDER});
    let resources =
        json!([{"uri": "fx://one/good", "name": "good"}, bad("uri", "fx://one/bad", told.clone())]);
    let templates = json!([bad("uriTemplate", "fx://one/item/{id}", told)]);
    let one = scene.fx("one").switch("--list-changed").with("--prompts", prompts);
    one.with("--resources", resources).with("--templates", templates)
}

/// What is offered beside tools.
fn offered(host: &Host) -> usize {
    let catalog = host.catalog();
    let offer = catalog.server("one").unwrap().offer().unwrap();
    offer.prompts.len() + offer.resources.len() + offer.resource_templates.len()
}

#[tokio::test]
async fn definitions_of_prompts_and_resources_are_told_or_kept_out_by_the_mode() {
    for (mode, refused) in [("flag", false), ("refuse", true)] {
        let scene = Scene::new();
        let guard = json!({"guard": {"definitions": mode}});
        let builder = builder(scene.config_with(&guard, [offering(&scene)]));
        let mut events = builder.events();
        let host = builder.start().await.unwrap();
        assert_eq!(items(&mut events, refused), ["bad", "fx://one/bad", "fx://one/item/{id}"]);
        let suspicions = host.catalog().suspicions();
        assert!(suspicions.iter().all(|doubt| doubt.tool.is_none() && doubt.item.is_some()));
        assert_eq!(suspicions.is_empty(), refused);
        assert_eq!(offered(&host), if refused { 2 } else { 5 });
        let none = Map::new();
        host.get_prompt("one.good", &none, CallOptions::default()).await.unwrap();
        read(&host, "fx://one/good").await.unwrap();
        let prompt = host.get_prompt("one.bad", &none, CallOptions::default()).await;
        let (one, options) = (Some("one"), CallOptions::default);
        let answers = [
            (prompt, "prompt `bad`"),
            (read(&host, "fx://one/bad").await, "resource `fx://one/bad`"),
            (host.read_resource("fx://one/bad", one, options()).await, "resource `fx://one/bad`"),
            (read(&host, "fx://one/item/7").await, "resource template `fx://one/item/7`"),
            (host.read_resource("fx://one/item/7", one, options()).await, "resource template"),
        ];
        for (answer, what) in answers {
            if !refused {
                answer.unwrap();
                continue;
            }
            let error = answer.unwrap_err();
            let is = matches!(error, CallError::Routing(RoutingError::ItemRefused { .. }));
            let words = error.to_string();
            assert!(is && words.starts_with(what), "{words}");
            assert!(words.contains("`guard.definitions` as `flag`"), "{words}");
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_reload_and_a_new_list_hold_definitions_to_the_mode_of_now_and_tell_each_once() {
    let scene = Scene::new();
    let (host, write) = start(&scene, offering(&scene)).await;
    let mut events = host.events();
    assert_eq!(offered(&host), 5);
    let none = Map::new();
    host.get_prompt("one.bad", &none, CallOptions::default()).await.unwrap();
    write(&json!({"definitions": "refuse"}));
    host.reload().await.unwrap();
    assert_eq!(offered(&host), 2);
    assert_eq!(items(&mut events, true), ["bad", "fx://one/bad", "fx://one/item/{id}"]);
    host.get_prompt("one.bad", &none, CallOptions::default()).await.unwrap_err();
    let mut others = host.events();
    assert!(host.refresh_server("one"));
    let changed = |event: &Event| matches!(event, Event::CatalogChanged { .. });
    crate::setup::until_told(&mut others, changed).await;
    assert_eq!(found(&mut events), [], "what was told is not told again");
    assert_eq!(offered(&host), 2);
    write(&json!("off"));
    host.reload().await.unwrap();
    assert_eq!(offered(&host), 5, "all of them are back");
    assert_eq!(found(&mut events), [], "nothing is looked at");
    host.shutdown().await;
}

#[tokio::test]
async fn a_resource_that_is_kept_out_is_not_read_by_a_template_that_is_offered() {
    let scene = Scene::new();
    let resources = json!([{"uri": "fx://one/item/7", "name": "bad", "description": ORDER}]);
    let one = scene.fx("one").with("--resources", resources);
    let config = scene.config_with(&json!({"guard": {"definitions": "refuse"}}), [one]);
    let host = builder(config).start().await.unwrap();
    read(&host, "fx://one/item/8").await.unwrap();
    let error = read(&host, "fx://one/item/7").await.unwrap_err();
    let is = matches!(error, CallError::Routing(RoutingError::ItemRefused { .. }));
    assert!(is, "{error:?}");
    assert_eq!(scene.journal().count("resources/read"), 1);
    host.shutdown().await;
}

#[tokio::test]
async fn a_copy_of_what_is_kept_out_now_is_not_given_for_a_lost_server() {
    let scene = Scene::new();
    let (host, write) = start(&scene, offering(&scene).with("--crash-after", 1)).await;
    let none = Map::new();
    let get = async |name| host.get_prompt(name, &none, CallOptions::default()).await;
    let named = async |uri| host.read_resource(uri, Some("one"), CallOptions::default()).await;
    for uri in ["fx://one/good", "fx://one/bad"] {
        named(uri).await.unwrap();
    }
    for name in ["one.good", "one.bad"] {
        get(name).await.unwrap();
    }
    host.call_tool("one.pid", ()).await.unwrap_err();
    write(&json!({"definitions": "refuse"}));
    host.reload().await.unwrap();
    get("one.good").await.unwrap();
    named("fx://one/good").await.unwrap();
    for answer in [get("one.bad").await, named("fx://one/bad").await] {
        let error = answer.unwrap_err();
        assert!(matches!(error, CallError::Unavailable { .. }), "{error:?}");
    }
    host.shutdown().await;
}

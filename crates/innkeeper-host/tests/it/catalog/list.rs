//! Lists at the start of a server.

use std::time::Duration;

use innkeeper_host::{CacheScope, CallOptions, Catalog, Host, ListCacheHint, ServerState};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::tools;
use crate::setup::TestEnv;

const DEFAULT_TOOLS: [&str; 9] =
    ["echo", "add", "a.b", "fail", "env", "read", "sleep", "big", "pid"];

/// Proves: FR3.1, FR3.2, FR3.3
#[tokio::test]
async fn lists_in_pages_are_read_to_their_end() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("one").with("--pages", 3),
        test_env.fixture("empty").with("--pages", 4).switch("--empty-cursor"),
        test_env.fixture("long").with("--pages", 3).with("--big-cursor", 20_000),
        test_env.fixture("many").with("--pages", 40).with("--many-tools", 1_000),
    ];
    let host = test_env.start(servers).await.unwrap();
    let catalog = host.catalog();
    for name in ["one", "empty", "long"] {
        assert_eq!(tools(&catalog, name), DEFAULT_TOOLS, "{name}");
        let listing = catalog.server(name).unwrap().listing().unwrap();
        let prompts: Vec<&str> = listing.prompts.iter().map(|p| p.view.name.as_str()).collect();
        assert_eq!(prompts, ["greet", "plain"]);
        let uris: Vec<&str> = listing.resources.iter().map(|r| r.view.uri.as_str()).collect();
        assert_eq!(uris, [&*format!("fx://{name}/static"), "fx://shared"]);
        let templates = &listing.resource_templates;
        assert_eq!(templates[0].view.uri_template, format!("fx://{name}/item/{{id}}"));
        assert_eq!(templates.len(), 1);
    }
    assert_eq!(tools(&catalog, "many").len(), 1_009);
    let journal = test_env.journal().for_server("one");
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let cursors: Vec<&Value> =
            journal.params(method).into_iter().map(|params| &params["cursor"]).collect();
        assert_eq!(cursors, [&Value::Null, &json!("page-1"), &json!("page-2")], "{method}");
    }
    assert_eq!(tools(&catalog, "many").last().unwrap(), "many_999");
    host.shutdown().await;
}

/// Proves: FR3.2, FR3.3
#[tokio::test]
async fn what_a_server_does_not_declare_it_is_not_asked_for() {
    let test_env = TestEnv::new();
    let servers = [
        test_env
            .fixture("bare")
            .switch("--no-prompts")
            .switch("--no-resources")
            .switch("--undeclared"),
        test_env.fixture("prompts").switch("--no-resources"),
        test_env.fixture("new").with("--era", "modern").switch("--no-prompts"),
    ];
    let host = test_env.start(servers).await.unwrap();
    let methods = |server: &str| {
        let journal = test_env.journal().for_server(server);
        let mut lists: Vec<String> = journal
            .methods()
            .into_iter()
            .filter(|method| method.ends_with("/list"))
            .map(str::to_owned)
            .collect();
        lists.sort();
        lists
    };
    assert_eq!(methods("bare"), ["tools/list"]);
    assert_eq!(methods("prompts"), ["prompts/list", "tools/list"]);
    assert_eq!(methods("new"), ["resources/list", "resources/templates/list", "tools/list"]);
    let catalog = host.catalog();
    let listing = catalog.server("bare").unwrap().listing().unwrap();
    assert!(listing.prompts.is_empty() && listing.resources.is_empty());
    assert!(listing.resource_templates.is_empty());
    host.shutdown().await;
}

/// Proves: N5, FR3.4, N12
#[tokio::test]
async fn the_catalog_has_every_server_by_its_name_with_all_it_offers() {
    let test_env = TestEnv::new();
    let servers = [
        test_env
            .fixture("zeta")
            .with("--instructions", "Be kind.")
            .with("--server-name", "somebody"),
        test_env.fixture("alpha"),
    ];
    let host = test_env.start(servers).await.unwrap();
    let catalog = host.catalog();
    let names: Vec<&str> = catalog.servers().map(|(name, _)| name).collect();
    assert_eq!(names, ["zeta", "alpha"], "in the order of the configuration");
    let zeta = catalog.server("zeta").unwrap();
    assert_eq!((zeta.state(), zeta.transport()), (ServerState::Ready, "stdio"));
    assert_eq!(zeta.instructions(), Some("Be kind."));
    let json: Value = serde_json::to_value(&*catalog).unwrap();
    let servers = json["servers"].as_object().unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["zeta", "alpha"]);
    let zeta = &servers["zeta"];
    assert_eq!(zeta["state"], "ready");
    assert_eq!(zeta["transport"], "stdio");
    assert_eq!(zeta["protocolVersion"], "2025-11-25");
    assert_eq!(zeta["serverInfo"]["name"], "somebody");
    assert_eq!(zeta["instructions"], "Be kind.");
    let count = |list: &str| zeta[list].as_array().unwrap().len();
    let counts = ["tools", "prompts", "resources", "resourceTemplates"].map(count);
    assert_eq!(counts, [9, 2, 2, 1]);
    assert_eq!(zeta["tools"][0]["inputSchema"]["required"], json!(["message"]));
    assert_eq!(zeta["prompts"][0]["arguments"][0]["required"], true);
    host.shutdown().await;
    assert_eq!(serde_json::to_value(&*host.catalog()).unwrap(), json!({"servers": {}}));
}

/// Proves: N12, FR3.5
#[tokio::test]
async fn a_thousand_tools_are_there_at_once_without_argument_await_or_traffic() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--many-tools", 1_000)]).await.unwrap();
    let before = test_env.journal().entries.len();
    let get: fn(&Host) -> std::sync::Arc<Catalog> = Host::catalog;
    let fastest = (0..20).map(|_| {
        let started_at = Instant::now();
        let catalog = get(&host);
        let listing = catalog.server("one").unwrap().listing().unwrap();
        assert_eq!(listing.tools.len(), 1_009);
        started_at.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(1), "{fastest:?}");
    assert_eq!(test_env.journal().entries.len(), before, "the server was asked");
    host.shutdown().await;
}

/// Proves: N22
#[tokio::test]
async fn states_are_reported_for_every_server_and_the_catalog_has_only_those_that_take_calls() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("well"),
        test_env
            .fixture("absent")
            .with("--exit-at-start", 7)
            .config_key("required", false)
            .config_key("initTimeout", 0.5),
        test_env.fixture("crashes").with("--crash-after", 1),
    ];
    let host = test_env.start(servers).await.unwrap();
    let states = |host: &Host| {
        let status = host.status();
        status.iter().map(|(name, status)| (name.to_string(), status.state)).collect::<Vec<_>>()
    };
    use ServerState::{Ready, Shutdown, Unavailable};
    let all = |states: [ServerState; 3]| {
        let names = ["well", "absent", "crashes"].map(str::to_owned);
        names.into_iter().zip(states).collect::<Vec<_>>()
    };
    assert_eq!(states(&host), all([Ready, Unavailable, Ready]));
    assert!(host.catalog().server("absent").is_none());
    assert!(host.status()["absent"].reason.as_ref().unwrap().contains("exit code 7"));
    host.call_tool("crashes.pid", ()).await.unwrap_err();
    assert_eq!(states(&host), all([Ready, Unavailable, Unavailable]));
    let catalog = host.catalog();
    assert_eq!(catalog.servers().map(|(name, _)| name).collect::<Vec<_>>(), ["well"]);
    host.shutdown().await;
    assert_eq!(states(&host)[0].1, Shutdown);
    assert_eq!(states(&host)[2].1, Shutdown);
}

#[tokio::test]
async fn the_catalog_has_the_cache_hints_of_the_lists_of_a_modern_server() {
    let test_env = TestEnv::new();
    let modern = test_env.fixture("new").with("--era", "modern").with("--list-ttl", 60_000);
    let host = test_env.start([test_env.fixture("old"), modern]).await.unwrap();
    let catalog = host.catalog();
    assert_eq!(catalog.server("old").unwrap().list_cache_hints(), None);
    let hints = catalog.server("new").unwrap().list_cache_hints().unwrap();
    for hint in [hints.tools, hints.prompts, hints.resources, hints.resource_templates] {
        let ListCacheHint { remaining, scope } = hint.unwrap();
        assert!(remaining > Duration::from_secs(30), "{remaining:?}");
        assert!(remaining <= Duration::from_secs(60), "{remaining:?}");
        assert_eq!(scope, CacheScope::Private);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn the_catalog_lists_what_can_be_called_with_its_definition_and_server() {
    let test_env = TestEnv::new();
    let fixture = |name, prompts: Value, resources: Value, templates: Value| {
        let fixture = test_env.fixture(name).with("--prompts", prompts);
        fixture.with("--resources", resources).with("--templates", templates)
    };
    let shared = json!({"uri": "x://shared", "name": "shared", "extra": 1});
    let template = json!({"uriTemplate": "x://items/{id}", "name": "item"});
    let one = fixture(
        "a",
        json!([{"name": "z", "extra": 1}, {"name": "b.c"}, {"name": "y"}]),
        json!([{"uri": "x://own", "name": "own"}, shared]),
        json!([template]),
    );
    let other = fixture("a.b", json!([{"name": "c"}]), json!([shared]), json!([template]));
    let host = test_env.start([one, other]).await.unwrap();
    let catalog = host.catalog();
    let prompts: Vec<_> =
        catalog.prompts().map(|prompt| (prompt.public_name, prompt.server)).collect();
    // The name `a.b.c` belongs to the server `a.b`.
    assert_eq!(prompts, [("a.z", "a"), ("a.y", "a"), ("a.b.c", "a.b")]);
    let first = catalog.prompts().next().unwrap().definition;
    assert_eq!((&*first.view.name, first.raw.get().contains("extra")), ("z", true));
    for prompt in catalog.prompts() {
        host.get_prompt(prompt.public_name, &Map::new(), CallOptions::default()).await.unwrap();
    }
    let resources: Vec<_> =
        catalog.resources().map(|resource| (resource.uri, resource.server)).collect();
    assert_eq!(resources, [("x://own", "a"), ("x://shared", "a"), ("x://shared", "a.b")]);
    for resource in catalog.resources() {
        assert_eq!(resource.definition.view.uri, resource.uri);
        let server = Some(resource.server);
        host.read_resource(resource.uri, server, CallOptions::default()).await.unwrap();
    }
    let templates = catalog.resource_templates();
    let templates: Vec<_> =
        templates.map(|template| (template.uri_template, template.server)).collect();
    assert_eq!(templates, [("x://items/{id}", "a"), ("x://items/{id}", "a.b")]);
    host.stop_server("a").await.unwrap();
    let catalog = host.catalog();
    assert!(catalog.prompts().all(|prompt| prompt.server == "a.b"));
    assert_eq!((catalog.resources().count(), catalog.resource_templates().count()), (1, 1));
    host.shutdown().await;
}

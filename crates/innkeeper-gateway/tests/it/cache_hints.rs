//! The cache hints of the lists of several servers.

use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::{Binding, Bindings, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::ToolFilter;
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};

use crate::setup::TestEnv;

/// A server of the modern era whose lists are fresh for a number of seconds.
fn server(test_env: &TestEnv, name: &str, seconds: u64, scope: &str) -> Fixture {
    let server = test_env.fixture(name).with("--era", "modern");
    server.with("--list-ttl", seconds * 1_000).with("--list-scope", scope)
}

/// Returns the time in units of ten minutes, rounded up, and the scope of the tools and the prompts for a modern client.
async fn hints(test_env: &TestEnv, policy: ToolPolicy, servers: Vec<Fixture>) -> [(u64, Value); 2] {
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(policy);
    let gateway = test_env.gateway_with(builder, servers).await;
    let mut client = gateway.modern("ada", json!({}));
    let mut hints = [(0, Value::Null), (0, Value::Null)];
    for (hint, method) in hints.iter_mut().zip(["tools/list", "prompts/list"]) {
        let list = client.request(method, json!({})).await;
        *hint = (list["ttlMs"].as_u64().unwrap().div_ceil(600_000), list["cacheScope"].clone());
    }
    hints
}

#[tokio::test]
async fn a_list_is_fresh_as_long_as_its_shortest_part_and_public_if_every_part_is() {
    let test_env = TestEnv::new();
    let (long, short) = (6_000, 3_000);
    let server = |name, seconds, scope| server(&test_env, name, seconds, scope);
    let all = ToolPolicy::default;
    let both = |ttl: u64, scope: &str| [(ttl, json!(scope)), (ttl, json!(scope))];
    let public = hints(&test_env, all(), vec![server("a", long, "public")]).await;
    assert_eq!(public, both(10, "public"));
    let servers = vec![server("a", long, "public"), server("b", short, "public")];
    assert_eq!(hints(&test_env, all(), servers).await, both(5, "public"));
    let servers = vec![server("a", long, "public"), server("b", short, "private")];
    assert_eq!(hints(&test_env, all(), servers).await, both(5, "private"));
    let servers = vec![server("a", long, "public"), test_env.fixture("legacy")];
    assert_eq!(hints(&test_env, all(), servers).await, both(0, "private"));
    // A server without prompts has no part in the list of prompts.
    let servers =
        vec![server("a", long, "public"), test_env.fixture("legacy").switch("--no-prompts")];
    let expected = [(0, json!("private")), (10, json!("public"))];
    assert_eq!(hints(&test_env, all(), servers).await, expected);
}

/// Attack: remote | a cache between the clients and the gateway stores the tools of one client | a list
/// that depends on the client is never public | Isolation
#[tokio::test]
async fn a_list_that_depends_on_the_client_is_private() {
    let test_env = TestEnv::new();
    let deny = ToolFilter { deny: vec!["a.echo".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("bob"), deny)], ToolFilter::default());
    let [tools, prompts] =
        hints(&test_env, policy, vec![server(&test_env, "a", 6_000, "public")]).await;
    assert_eq!((tools.1, prompts.1), (json!("private"), json!("public")));
    let binding = Binding { servers: None, endpoints: Some(Vec::new()) };
    let bindings = Bindings::new([(Principal::new("bob"), binding)], Binding::default());
    let builder = GatewayBuilder::new(GatewayOptions::default()).bindings(bindings);
    let one = server(&test_env, "b", 6_000, "public")
        .with("--read-result", r#"{"contents":[],"ttlMs":1000,"cacheScope":"public"}"#);
    let gateway = test_env.gateway_with(builder, [one]).await;
    let mut client = gateway.modern("ada", json!({}));
    for (method, params) in [
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "fx://b/item/1" })),
    ] {
        let result = client.request(method, params).await;
        assert_eq!(result["cacheScope"], "private", "{method}: {result}");
    }
    let private = server(&test_env, "p", 6_000, "public").config_key("share", "principal");
    let servers = vec![server(&test_env, "a", 6_000, "public"), private];
    for (_, scope) in hints(&test_env, ToolPolicy::default(), servers).await {
        assert_eq!(scope, "private");
    }
}

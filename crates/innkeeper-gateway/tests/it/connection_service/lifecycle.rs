//! The lifecycle of connections and the negotiation of features.

use std::time::Duration;

use http::StatusCode;
use innkeeper_gateway::auth::Authenticator;
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionOptions, ConnectionServiceBuilder, Feature,
    FeatureCapabilityLevel, VersionCompatibility,
};
use innkeeper_gateway::{GatewayBuilder, GatewayOptions, HttpAccess, Principal, Rejection};
use serde_json::json;

use super::*;
use crate::limits::{KEYS, access_with_keys, local_access};

/// Proves: B2, B18
#[tokio::test]
async fn initialize_opens_a_connection_and_declares_the_features() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    let reply = client.initialize(&json!({})).await;
    let body = reply.json();
    assert_eq!(body["protocol_version"], "1.0");
    assert_eq!(body["server"], json!({ "name": "beam-mcp-server", "version": "1.0.0" }));
    assert_eq!(body["capabilities"]["core.jsonrpc"]["version"], "2.0.0");
    assert_eq!(body["capabilities"]["core.jsonrpc"]["level"], "required");
    let cookie = reply.header("set-cookie");
    let id = client.id();
    assert_eq!(
        cookie,
        format!("mcp_connection_id={id}; Path=/; Max-Age=1800; HttpOnly; SameSite=Strict")
    );
}

/// Proves: B3, B6, B7
#[tokio::test]
async fn a_connection_is_activated_shut_down_and_ended() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    assert_eq!(client.call("echo", json!({ "a": 1 })).await.json()["result"], json!({ "a": 1 }));
    let reply = client.post("shutdown", "").await;
    assert_eq!((reply.status, reply.json()), (StatusCode::OK, json!({ "state": "terminating" })));
    let (status, code, message) = client.call("echo", json!({})).await.error();
    assert_eq!((status, code), (400, -32_005));
    assert!(message.contains("`terminating`"), "{message}");
    let reply = client.post("exit", "").await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::NO_CONTENT, ""));
    assert_eq!(reply.header("set-cookie"), "mcp_connection_id=; Path=/; Max-Age=0");
    let expired = (401, -32_002, "Invalid or expired connection".to_owned());
    assert_eq!(client.call("echo", json!({})).await.error(), expired);
    assert_eq!(client.post("initialized", "").await.error(), expired);
}

/// Proves: B8
#[tokio::test]
async fn each_move_of_the_lifecycle_is_permitted_in_its_states_only() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    // The messages that lead to a state, and the status of each message in this state.
    let table: [(&[&str], [u16; 4]); 4] = [
        (&[], [409, 204, 200, 400]),
        (&["initialized"], [409, 400, 200, 400]),
        (&["shutdown"], [409, 400, 400, 204]),
        (&["shutdown", "exit"], [200, 401, 401, 401]),
    ];
    for (path, statuses) in table {
        for (message, status) in
            ["initialize", "initialized", "shutdown", "exit"].into_iter().zip(statuses)
        {
            let mut client = ServiceClient::new(&gateway);
            client.initialize(&json!({})).await;
            for step in path {
                assert!(client.post(step, "").await.status.is_success(), "{path:?}");
            }
            let body = match message {
                "initialize" => initialize_body(&json!({})).to_string(),
                _ => String::new(),
            };
            let reply = client.post(message, body).await;
            assert_eq!(reply.status.as_u16(), status, "{message} after {path:?}: {reply:?}");
            let expected_code = match status {
                400 => -32_005,
                401 => -32_002,
                409 => -32_004,
                _ => continue,
            };
            assert_eq!(reply.error().1, expected_code, "{message} after {path:?}");
        }
    }
    // The state before `initialize`: no connection.
    let client = ServiceClient::new(&gateway);
    for message in ["initialized", "shutdown", "exit"] {
        let missing = (401, -32_003, "Missing connection ID".to_owned());
        assert_eq!(client.post(message, "").await.error(), missing);
    }
}

/// Proves: B8, B33
#[tokio::test]
async fn the_lifecycle_works_over_jsonrpc_too() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    let reply = client.call("initialize", initialize_body(&json!({}))).await;
    assert_eq!(reply.status, StatusCode::OK);
    let body = reply.json();
    assert_eq!((&body["id"], &body["result"]["protocol_version"]), (&json!(7), &json!("1.0")));
    client.set_id(&reply.header("x-mcp-connection-id"));
    let initialized = json!({ "jsonrpc": "2.0", "method": "initialized" });
    let reply = client.jsonrpc(&initialized).await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::NO_CONTENT, ""));
    let reply = client.jsonrpc(&initialized).await;
    assert_eq!((reply.error().0, reply.error().1), (400, -32_005));
    let reply = client.call("shutdown", json!({})).await;
    assert_eq!(reply.json()["result"], json!({ "state": "terminating" }));
    let exit = json!({ "jsonrpc": "2.0", "method": "exit" });
    assert_eq!(client.jsonrpc(&exit).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.jsonrpc(&exit).await.error().0, 401);
}

/// Proves: B17
#[tokio::test]
async fn another_protocol_version_is_rejected_with_both_versions() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    for version in ["2.0", "2025-11-25", "", "0.9"] {
        let mut body = initialize_body(&json!({}));
        body["protocol_version"] = version.into();
        for reply in [
            client.post("initialize", body.to_string()).await,
            client.call("initialize", body.clone()).await,
        ] {
            let (status, code, message) = reply.error();
            assert_eq!((status, code), (400, -32_000));
            assert!(message.contains("`1.0`"), "{message}");
            assert!(message.contains(&format!("`{version}`")), "{message}");
            assert!(reply.headers.get("x-mcp-connection-id").is_none());
        }
    }
    let mut body = initialize_body(&json!({}));
    body["protocol_version"] = "1.4".into();
    assert_eq!(client.post("initialize", body.to_string()).await.status, StatusCode::OK);
}

/// Proves: B20, B22, B23
#[tokio::test]
async fn incompatible_capabilities_are_rejected_with_every_reason() {
    let mut registry = CapabilityRegistry::with_core_features();
    let feature = Feature {
        level: FeatureCapabilityLevel::Preferred,
        version_compatibility: VersionCompatibility::Exact,
        required_properties: vec!["methods".to_owned()],
        ..Feature::default()
    };
    registry.register_feature("tool.job_management", feature).unwrap();
    let (test_env, service) = (TestEnv::new(), service_with(registry));
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    let mut body = initialize_body(&json!({ "tool.job_management": { "version": "1.1" } }));
    body["capabilities"]["core.jsonrpc"] = false.into();
    let reply = client.post("initialize", body.to_string()).await;
    assert_eq!((reply.error().0, reply.error().1), (400, -32_001));
    assert_eq!(
        reply.json()["data"],
        json!([
            "required feature `core.jsonrpc` is not supported by the client",
            "feature `tool.job_management`: the client has version `1.1`, the server accepts \
             exactly `1.0.0`",
            "feature `tool.job_management` lacks the required property `methods`",
        ])
    );
}

/// Proves: B46
#[tokio::test]
async fn a_wrong_type_is_named_with_its_path() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    for (pointer, value, path) in [
        ("/protocol_version", json!(1), "`protocol_version`"),
        ("/client/name", json!(null), "`client.name`"),
        ("", json!(["1.0", { "name": "x", "version": "1" }, {}]), "`.`"),
        ("/client", json!([]), "`client`"),
        ("/client", json!(["x", "1"]), "`client`"),
        ("/client/additional_info", json!("x"), "`client.additional_info`"),
        ("/capabilities/tools", json!("yes"), "`capabilities.tools`"),
        ("/capabilities", json!(true), "`capabilities`"),
    ] {
        let mut body = initialize_body(&json!({}));
        body["client"]["additional_info"] = json!({});
        *body.pointer_mut(pointer).unwrap() = value;
        let (status, code, message) = client.post("initialize", body.to_string()).await.error();
        assert_eq!((status, code), (400, -32_602), "{message}");
        assert!(message.starts_with(path), "{message}");
    }
    let (_, code, message) =
        client.post("initialize", r#"{"protocol_version": "1.0"}"#).await.error();
    assert_eq!(code, -32_602);
    assert!(message.starts_with("missing field `client`"), "{message}");
    for text in ["", "{", "[1]x", "{\"protocol_version\": \"1.0\"} {}"] {
        let (status, code, _) = client.post("initialize", text).await.error();
        assert_eq!(status, 400);
        assert!([-32_700, -32_602].contains(&code), "{text}: {code}");
    }
}

/// Attack: remote | a client opens connections with the largest parameters, of many small values | the
/// parameters have limits of bytes and of values | No unbounded memory
#[tokio::test]
async fn the_parameters_of_initialize_have_limits() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    let body = |data: Value| {
        let mut body = initialize_body(&json!({}));
        body["client"]["additional_info"] = json!({ "data": data });
        body
    };
    let (empty_text, no_items) = (body(json!("")).to_string(), body(json!([])));
    let text = |bytes: usize| body(json!("x".repeat(bytes - empty_text.len())));
    // The parameters, their members, those of the client, and the features with two versions.
    let values = 1 + 3 + 4 + 6 + 2;
    let items = |number: usize| {
        let mut body = no_items.clone();
        let item = |index| if index % 2 == 0 { json!(0) } else { json!([]) };
        body["client"]["additional_info"]["data"] = (values..number).map(item).collect();
        body
    };
    for (permitted, above) in [(text(65_536), text(65_537)), (items(1_024), items(1_025))] {
        let reply = client.post("initialize", permitted.to_string()).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        let (status, code, message) = client.post("initialize", above.to_string()).await.error();
        assert_eq!((status, code), (400, -32_602), "{message}");
        assert!(message.starts_with("the parameters of `initialize`"), "{message}");
    }
}

/// Proves: B45
#[tokio::test]
async fn the_header_has_precedence_over_the_cookie() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let first = ServiceClient::active(&gateway).await;
    let mut second = ServiceClient::active(&gateway).await;
    second.post("shutdown", "").await;
    let cookie = format!("theme=dark; mcp_connection_id={}; other=1", first.id());
    second.set_header("cookie", &cookie);
    let (status, code, _) = second.call("echo", json!({})).await.error();
    assert_eq!((status, code), (400, -32_005), "the connection of the header");
    second.headers.retain(|(name, _)| name == "cookie");
    assert_eq!(second.call("echo", json!({})).await.status, StatusCode::OK, "of the cookie");
    second.set_id("not-an-id");
    assert_eq!(second.call("echo", json!({})).await.error().0, 401, "no way back to the cookie");
}

/// Attack: remote | a request has two connection ids, of which a proxy checks one and the gateway uses
/// the other: two headers, or two cookies | the request is refused | Complete checks
#[tokio::test]
async fn a_request_with_two_connection_ids_is_refused() {
    let test_env = TestEnv::new();
    let service = service();
    let gateway = start(&test_env, &service).await;
    let first = ServiceClient::active(&gateway).await;
    let mut second = ServiceClient::active(&gateway).await;
    let own = second.headers.clone();
    second.headers.push(("x-mcp-connection-id".to_owned(), first.id().to_owned()));
    let (status, _, message) = second.call("echo", json!({})).await.error();
    assert_eq!(status, 400, "{message}");
    assert!(message.contains("several connection IDs"), "{message}");
    let cookie = format!("mcp_connection_id={}; mcp_connection_id={}", first.id(), second.id());
    second.headers.clear();
    second.set_header("cookie", &cookie);
    assert_eq!(second.call("echo", json!({})).await.error().0, 400);
    second.headers = own;
    assert_eq!(second.call("echo", json!({})).await.status, StatusCode::OK);
}

#[tokio::test]
async fn each_use_of_the_cookie_renews_it_and_the_end_removes_it() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::active(&gateway).await;
    assert!(client.call("echo", json!({})).await.headers.get("set-cookie").is_none());
    let id = client.id().to_owned();
    client.headers.clear();
    client.set_header("cookie", &format!("mcp_connection_id={id}"));
    let renewed = client.call("echo", json!({})).await.header("set-cookie");
    assert!(renewed.starts_with(&format!("mcp_connection_id={id}; Path=/; Max-Age=1800")));
    client.call("shutdown", json!({})).await;
    let removed = client.call("exit", json!({})).await.header("set-cookie");
    assert_eq!(removed, "mcp_connection_id=; Path=/; Max-Age=0");
}

#[tokio::test]
async fn the_cookie_is_for_https_only_where_the_client_uses_https() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    client.set_header("x-forwarded-proto", "https, http");
    let reply = client.initialize(&json!({})).await;
    assert!(reply.header("set-cookie").ends_with("; SameSite=Strict; Secure"), "{reply:?}");
}

/// Proves: B10
#[tokio::test]
async fn each_use_renews_the_expiry_and_an_unused_connection_expires() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    tokio::time::pause();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(1_799)).await;
        assert_eq!(client.call("echo", json!({})).await.status, StatusCode::OK);
    }
    tokio::time::advance(Duration::from_secs(1_800)).await;
    let (status, code, message) = client.call("echo", json!({})).await.error();
    assert_eq!((status, code, &*message), (401, -32_002, "Invalid or expired connection"));
}

/// Attack: remote | a client uses the connection id of another user | the connection is unknown to
/// it, and stays as it is | Isolation
///
/// Proves: B-b5
#[tokio::test]
async fn a_connection_belongs_to_the_user_that_opened_it() {
    let (test_env, service) = (TestEnv::new(), service());
    let builder = GatewayBuilder::new(GatewayOptions::default()).connections(service.clone());
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let router = gateway.gateway.router(access_with_keys());
    let mut ann = ServiceClient { router, headers: Vec::new() };
    assert_eq!(ann.post("initialize", "{}").await.error().0, 401, "no credential");
    let mut ben = ann.clone();
    ann.set_header("authorization", &format!("Bearer {}", KEYS[0]));
    ben.set_header("authorization", &format!("Bearer {}", KEYS[1]));
    ann.initialize(&json!({})).await;
    ben.set_id(ann.id());
    for reply in [
        ben.post("initialized", "").await,
        ben.post("shutdown", "").await,
        ben.call("echo", json!({})).await,
    ] {
        let unknown = (401, -32_003, "Invalid or expired connection".to_owned());
        assert_eq!(reply.error(), unknown);
    }
    assert_eq!(ann.post("initialized", "").await.status, StatusCode::NO_CONTENT);
    // Requests of another user do not renew the expiry.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1_000)).await;
    assert_eq!(ben.call("echo", json!({})).await.error().0, 401);
    tokio::time::advance(Duration::from_secs(1_000)).await;
    assert_eq!(ann.call("echo", json!({})).await.error().1, -32_002);
    tokio::time::resume();
    ann.headers.retain(|(name, _)| name == "authorization");
    ann.initialize(&json!({})).await;
    let id = ann.id().parse().unwrap();
    let user = Principal::new("ann");
    assert!(service.set_session_data(id, "page", Some(json!(3))).await.unwrap());
    let connection = service.connection(id, &user).await.unwrap();
    assert_eq!(connection.user_id.as_deref(), Some("ann"));
    assert_eq!(connection.session_data["page"], 3);
}

/// Proves: B15
#[tokio::test]
async fn another_prefix_moves_all_paths() {
    let test_env = TestEnv::new();
    let options =
        ConnectionOptions { prefix: "/service".parse().unwrap(), ..ConnectionOptions::default() };
    let store = Arc::new(MemoryStore::new(StoreOptions::default()));
    let registry = CapabilityRegistry::with_core_features();
    let service = ConnectionServiceBuilder::new(options, registry, store).build();
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    for route in ["initialize", "initialized", "shutdown", "exit", "jsonrpc", "events"] {
        let method = if route == "events" { "GET" } else { "POST" };
        for (prefix, found) in [("/service", true), (PREFIX, false)] {
            let request = client.request(method, &format!("{prefix}/{route}"));
            let response = client.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(response.status() != StatusCode::NOT_FOUND, found, "{prefix}/{route}");
        }
    }
}

/// Proves: B11
#[tokio::test]
async fn without_the_service_its_paths_do_not_exist() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let client = ServiceClient::new(&gateway);
    let body = initialize_body(&json!({})).to_string();
    assert_eq!(client.post("initialize", body).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_path_names_the_method_that_it_accepts() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::new(&gateway);
    for (route, wrong, allowed) in [("jsonrpc", "GET", "POST"), ("events", "POST", "GET")] {
        let request = client.request(wrong, &format!("{PREFIX}/{route}"));
        let reply = Reply::read(client.send(request.body(Body::empty()).unwrap()).await).await;
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, allowed.to_owned()));
    }
}

/// Proves: B49
#[tokio::test]
async fn a_page_of_another_origin_gets_no_connection() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    client.set_header("origin", "https://evil.example");
    let reply = client.post("initialize", initialize_body(&json!({})).to_string()).await;
    assert_eq!((reply.error().0, reply.error().1), (403, -32_302));
}

/// Proves: B-b5
#[tokio::test]
async fn an_application_authenticates_the_users_of_connections() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let authenticator = Authenticator::from_fn(|parts| {
        let token = parts.headers.get("authorization").cloned();
        async move {
            match token.as_ref().and_then(|token| token.to_str().ok()) {
                Some("Bearer token-of-ann") => Ok(Principal::new("ann")),
                _ => Err(Rejection::new(StatusCode::UNAUTHORIZED, "unknown token")),
            }
        }
    });
    let access = HttpAccess { authenticator, ..local_access() };
    let router = gateway.gateway.router(access);
    let mut client = ServiceClient { router, headers: Vec::new() };
    let rejected = (401, -32_302, "unknown token".to_owned());
    assert_eq!(client.post("initialize", "{}").await.error(), rejected);
    client.set_header("authorization", "Bearer token-of-ann");
    client.initialize(&json!({})).await;
    let id = client.id().parse().unwrap();
    let connection = service.connection(id, &Principal::new("ann")).await.unwrap();
    assert_eq!(connection.user_id.as_deref(), Some("ann"));
}

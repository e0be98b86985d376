//! Resources: routing by listed URI, by template, or to a named server.

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, ErrorClass, Host};
use serde_json::Value;

use super::{routing_error, unavailable_error};
use crate::setup::TestEnv;

async fn read(host: &Host, uri: &str, server: Option<&str>) -> Result<String, CallError> {
    let raw = host.read_resource(uri, server, CallOptions::default()).await?;
    let result: Value = serde_json::from_str(raw.get()).unwrap();
    assert_eq!(result["contents"][0]["uri"], uri);
    Ok(result["contents"][0]["text"].as_str().unwrap().to_owned())
}

/// Proves: FR4.9
#[tokio::test]
async fn a_uri_is_read_where_it_is_listed_or_where_a_template_fits() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for name in ["two", "one"] {
        let listed = read(&host, &format!("fx://{name}/static"), None).await.unwrap();
        assert_eq!(listed, format!("{name}: fx://{name}/static, reading 1"));
        let generated = read(&host, &format!("fx://{name}/item/42"), None).await.unwrap();
        assert_eq!(generated, format!("{name}: item 42"));
        assert_eq!(test_env.journal().for_server(name).count("resources/read"), 2);
    }
    host.shutdown().await;
}

/// Proves: FR4.9
#[tokio::test]
async fn a_listed_uri_comes_before_a_template_and_a_uri_of_two_templates_is_ambiguous() {
    let test_env = TestEnv::new();
    let templates = r#"[{"uriTemplate": "fx://one/{id}", "name": "any"}]"#;
    let two = test_env.fixture("two").with("--templates", templates);
    let host = test_env.start([test_env.fixture("one"), two]).await.unwrap();
    let listed = read(&host, "fx://one/static", None).await.unwrap();
    assert_eq!(listed, "one: fx://one/static, reading 1");
    let three = test_env.fixture("three").with("--templates", templates);
    let other_env = TestEnv::new();
    host.shutdown().await;
    let servers = [three, other_env.fixture("two").with("--templates", templates)];
    let host = other_env.start(servers).await.unwrap();
    let error = routing_error(read(&host, "fx://one/else", None).await);
    let RoutingError::Ambiguous { candidates, .. } = error else { panic!("{error:?}") };
    assert_eq!(candidates, ["three".into(), "two".into()]);
    host.shutdown().await;
}

/// Proves: FR4.9
#[tokio::test]
async fn a_uri_of_two_servers_is_ambiguous_until_the_server_is_named() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("two"), test_env.fixture("one")]).await.unwrap();
    let error = routing_error(read(&host, "fx://shared", None).await);
    let RoutingError::Ambiguous { candidates, .. } = error else { panic!("{error:?}") };
    assert_eq!(candidates, ["two".into(), "one".into()], "in the order of the configuration");
    assert_eq!(test_env.journal().count("resources/read"), 0);
    for name in ["one", "two"] {
        let text = read(&host, "fx://shared", Some(name)).await.unwrap();
        assert_eq!(text, format!("{name}: fx://shared, reading 1"));
    }
    host.shutdown().await;
}

/// Proves: N17, FR4.9
#[tokio::test]
async fn a_uri_nobody_offers_is_a_routing_error_with_a_suggestion() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    for (uri, server, message) in [
        ("file:///etc/passwd", None, "no server has resource `file:///etc/passwd`"),
        (
            "fx://one/statik",
            None,
            "no server has resource `fx://one/statik`; did you mean `fx://one/static`?",
        ),
        ("fx://one/item/", None, "no server has resource `fx://one/item/`"),
        ("fx://one/item/a/b", None, "no server has resource `fx://one/item/a/b`"),
        ("", None, "no server has resource ``"),
        ("fx://one/static", Some("on"), "no server for `on`; did you mean `one`?"),
    ] {
        let error = routing_error(read(&host, uri, server).await).to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(test_env.journal().count("resources/read"), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_named_server_answers_for_what_it_does_not_list() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let error = read(&host, "fx://one/static", Some("two")).await.unwrap_err();
    let CallError::Server { server, error, .. } = error else { panic!("{error}") };
    assert_eq!((&*server, error.code), ("two", -32002));
    assert_eq!(error.data.unwrap().get(), r#"{"uri":"fx://one/static"}"#);
    host.shutdown().await;
}

/// Proves: FR4.4
#[tokio::test]
async fn a_uri_whose_only_server_is_gone_is_unavailable_and_not_unknown() {
    let test_env = TestEnv::new();
    let crashing = test_env.fixture("gone").with("--crash-after", 1);
    let host = test_env.start([test_env.fixture("one"), crashing]).await.unwrap();
    host.call_tool("gone.pid", ()).await.unwrap_err();
    for (uri, server) in
        [("fx://gone/static", None), ("fx://gone/item/7", None), ("fx://gone/static", Some("gone"))]
    {
        let result = read(&host, uri, server).await;
        assert_eq!(result.as_ref().unwrap_err().class(), ErrorClass::ServerUnavailable, "{uri}");
        assert_eq!(result.as_ref().unwrap_err().server(), Some("gone"));
        unavailable_error(result);
    }
    // The URI that both servers listed now belongs to the other server only.
    assert_eq!(read(&host, "fx://shared", None).await.unwrap(), "one: fx://shared, reading 1");
    routing_error(read(&host, "fx://nobody/static", None).await);
    host.shutdown().await;
    unavailable_error(read(&host, "fx://one/static", None).await);
}

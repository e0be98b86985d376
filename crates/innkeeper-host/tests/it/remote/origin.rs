//! Secrets stay at their origin.

use innkeeper_host::StartError;
use innkeeper_host::error::ProtocolError;
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{AnnouncedEndpoint, Fault, RemoteServer};
use serde_json::json;
use tokio::time::Instant;

use super::{
    assert_responds, config_json, echo, protocol_error, start_host, start_host_with_neighbour,
    tolerant_fixture,
};
use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, builder, error_chain};

const SECRET: &str = "Bearer swordfish";

fn with_secret(server_builder: RemoteServerBuilder) -> RemoteServerBuilder {
    server_builder.header("Authorization", SECRET)
}

/// Fault 93.
/// Attack: remote | a server redirects a call to another origin, with five status codes | the call
/// fails, and the other origin receives nothing | Secrets stay with their owner
#[tokio::test]
async fn a_redirect_is_followed_nowhere_and_takes_no_secret_along() {
    for status in [301, 302, 303, 307, 308] {
        let (log, test_env) = (LogCapture::capture(), TestEnv::new());
        let elsewhere = RemoteServer::request_recorder().start().await;
        let redirect =
            Fault::redirect(status, &elsewhere.url()).on_rpc_method("tools/call").only_nth(1);
        let server_builder =
            with_secret(RemoteServer::for_fixture(tolerant_fixture(&test_env))).fault(redirect);
        let remote = server_builder.start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let error = protocol_error(echo(&host, "a", "").await);
        match &error {
            ProtocolError::HttpStatus { status: reported, .. } => assert_eq!(*reported, status),
            other => panic!("another fault: {other:?}"),
        }
        assert!(!error.to_string().contains("swordfish"), "{error}");
        let next_step = format!(
            "the target is `{}`; if the target is correct, set `url` to the target",
            elsewhere.origin()
        );
        assert!(error.to_string().ends_with(&next_step), "{error}");
        let audited = log.security_lines();
        assert_eq!((audited.len(), &audited[0]["audit"]), (1, &json!("address-refused")));
        assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
        assert_responds(&host, "b").await;
        assert_responds(&host, "a").await;
        let sent = remote.requests();
        assert!(sent.iter().all(|seen| seen.header("authorization") == Some(SECRET)));
        host.shutdown().await;
    }
}

/// Returns the message of a failed start with this server.
async fn start_error(test_env: &TestEnv, remote: &RemoteServer) -> String {
    let config = test_env.config_from(&config_json([("a", remote.config_entry())]));
    match builder(config).start().await {
        Err(StartError::Servers(failures)) => error_chain(&failures[0]).join(": "),
        other => panic!("not a failure of the server: {other:?}"),
    }
}

/// Fault 93.
/// Attack: remote | a server redirects the handshake, over three transports | the start fails, and
/// the other origin receives nothing | Secrets stay with their owner
#[tokio::test]
async fn a_redirect_in_the_handshake_is_not_followed_either() {
    for transport in [
        |server_builder: RemoteServerBuilder| server_builder,
        |server_builder: RemoteServerBuilder| server_builder.sse(),
        |server_builder: RemoteServerBuilder| server_builder.websocket(),
    ] {
        let test_env = TestEnv::new();
        let elsewhere = RemoteServer::request_recorder().start().await;
        let redirect = Fault::redirect(307, &elsewhere.url());
        let server_builder =
            RemoteServer::for_fixture(test_env.fixture("a").config_key("initTimeout", 5))
                .fault(redirect);
        let remote = transport(with_secret(server_builder)).start().await;
        let error = start_error(&test_env, &remote).await;
        let once = remote.requests().len();
        let streamable = error.contains("HTTP status 307: redirects");
        assert!(streamable || (error.contains("connection rejected") && once == 1), "{error}");
        assert!(error.contains("307") && !error.contains("swordfish"), "{error}");
        assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
    }
}

/// Fault 94.
///
/// Attack: remote | an SSE server names an endpoint at another origin | the start fails, and the
/// other origin receives nothing | Secrets stay with their owner
/// Proves: TR10.5
#[tokio::test]
async fn an_endpoint_at_another_origin_gets_nothing() {
    let (log, test_env) = (LogCapture::capture(), TestEnv::new());
    let elsewhere = RemoteServer::request_recorder().start().await;
    let other = AnnouncedEndpoint::Fixed(elsewhere.origin().to_owned());
    let server_builder =
        RemoteServer::for_fixture(test_env.fixture("a").config_key("initTimeout", 5))
            .sse()
            .endpoint(other);
    let remote = with_secret(server_builder).start().await;
    let error = start_error(&test_env, &remote).await;
    assert!(error.contains("another origin") && !error.contains("swordfish"), "{error}");
    let audited = &log.security_lines()[0];
    assert_eq!((&audited["audit"], &audited["server"]), (&json!("address-refused"), &json!("a")));
    assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
}

#[tokio::test]
async fn an_endpoint_may_be_a_whole_address_of_the_same_origin() {
    let test_env = TestEnv::new();
    let server_builder = RemoteServer::for_fixture(test_env.fixture("a"))
        .sse()
        .endpoint(AnnouncedEndpoint::Absolute);
    let remote = with_secret(server_builder).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    assert_responds(&host, "a").await;
    let sent = remote.requests();
    assert!(sent.iter().all(|seen| seen.header("authorization") == Some(SECRET)), "{sent:#?}");
    host.shutdown().await;
}

/// Attack: remote | an SSE server never names its endpoint | the start of the server fails at its
/// timeout; another server is ready | No unbounded wait
#[tokio::test]
async fn an_endpoint_that_is_never_named_costs_the_start_of_its_server() {
    let test_env = TestEnv::new();
    let server_builder = RemoteServer::for_fixture(
        test_env.fixture("a").config_key("initTimeout", 1).config_key("required", false),
    );
    let remote = server_builder.sse().endpoint(AnnouncedEndpoint::Never).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    assert_responds(&host, "b").await;
    assert!(echo(&host, "a", "").await.is_err());
    host.shutdown().await;
}

/// Fault 100.
/// Attack: remote | a server accepts a TLS connection and stays silent | the start of the server
/// fails at its timeout; another server is ready | No unbounded wait
#[tokio::test]
async fn a_server_that_never_speaks_tls_costs_its_own_start() {
    let test_env = TestEnv::new();
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://{}/mcp", silent.local_addr().unwrap());
    let entry = json!({"type": "http", "url": url, "initTimeout": 1, "required": false});
    let started_at = Instant::now();
    let host =
        start_host(&test_env, [("a", entry), ("b", test_env.fixture("b").config_entry())]).await;
    assert!(started_at.elapsed() < TEST_TIMEOUT);
    assert!(echo(&host, "a", "").await.is_err());
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

/// Attack: remote | a server with a secret in URL and header is lost | no error and no log contains
/// the secret | Secrets do not print
#[tokio::test]
async fn no_secret_of_an_address_or_header_is_in_an_error_or_the_log() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let fixture =
        test_env.fixture("a").config_key("retry", json!({"max": 1, "initialDelay": 0.01}));
    let remote = with_secret(RemoteServer::for_fixture(fixture)).start().await;
    let mut entry = remote.config_entry();
    entry["url"] = json!(format!("{}?key=swordfish", remote.url()));
    let host = start_host(&test_env, [("a", entry)]).await;
    assert_responds(&host, "a").await;
    remote.stop().await;
    let error = echo(&host, "a", "").await.unwrap_err();
    let shown = format!("{} {error:?}", error_chain(&error).join(": "));
    assert!(!shown.contains("swordfish"), "{shown}");
    host.shutdown().await;
    let lines = serde_json::to_string(&log.lines()).unwrap();
    assert!(lines.contains("cannot connect") && !lines.contains("swordfish"), "{lines}");
}

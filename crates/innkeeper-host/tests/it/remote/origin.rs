//! Secrets stay at the origin they are for.

use innkeeper_host::StartError;
use innkeeper_host::error::ProtocolFault;
use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Endpoint, Fault, Remote};
use serde_json::json;
use tokio::time::Instant;

use super::{answers, beside, echo, file, forgiving, hosting, protocol_fault};
use crate::setup::{Log, PATIENCE, Scene, builder, chain};

const SECRET: &str = "Bearer swordfish";

fn with_secret(plan: Plan) -> Plan {
    plan.header("Authorization", SECRET)
}

/// Fault 93.
#[tokio::test]
async fn a_redirect_is_followed_nowhere_and_takes_no_secret_along() {
    for status in [301, 302, 303, 307, 308] {
        let (log, scene) = (Log::capture(), Scene::new());
        let elsewhere = Remote::recorder().start().await;
        let redirect = Fault::redirect(status, &elsewhere.url()).on("tools/call").nth(1);
        let plan = with_secret(Remote::of(forgiving(&scene))).fault(redirect);
        let remote = plan.start().await;
        let host = beside(&scene, &remote).await;
        let fault = protocol_fault(echo(&host, "a", "").await);
        match &fault {
            ProtocolFault::Status { status: given, .. } => assert_eq!(*given, status),
            other => panic!("another fault: {other:?}"),
        }
        assert!(!fault.to_string().contains("swordfish"), "{fault}");
        let next_step =
            format!("it leads to `{}`; if that is right, change `url`", elsewhere.origin());
        assert!(fault.to_string().ends_with(&next_step), "{fault}");
        let audited = log.audited();
        assert_eq!((audited.len(), &audited[0]["audit"]), (1, &json!("address-refused")));
        assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
        answers(&host, "b").await;
        answers(&host, "a").await;
        let sent = remote.requests();
        assert!(sent.iter().all(|seen| seen.header("authorization") == Some(SECRET)));
        host.shutdown().await;
    }
}

/// Why a host whose one server is this one does not start.
async fn start_error(scene: &Scene, remote: &Remote) -> String {
    let config = scene.config_of(&file([("a", remote.entry())]));
    match builder(config).start().await {
        Err(StartError::Servers(failures)) => chain(&failures[0]).join(": "),
        other => panic!("not a failure of the server: {other:?}"),
    }
}

/// Fault 93.
#[tokio::test]
async fn a_redirect_in_the_handshake_is_not_followed_either() {
    for way in [|plan: Plan| plan, |plan: Plan| plan.sse(), |plan: Plan| plan.websocket()] {
        let scene = Scene::new();
        let elsewhere = Remote::recorder().start().await;
        let redirect = Fault::redirect(307, &elsewhere.url());
        let plan = Remote::of(scene.fx("a").key("initTimeout", 5)).fault(redirect);
        let remote = way(with_secret(plan)).start().await;
        let error = start_error(&scene, &remote).await;
        let once = remote.requests().len();
        let streamable = error.contains("it answered with HTTP 307: redirects");
        assert!(
            streamable || (error.contains("it refuses the connection") && once == 1),
            "{error}"
        );
        assert!(error.contains("307") && !error.contains("swordfish"), "{error}");
        assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
    }
}

/// Fault 94.
///
/// Proves: TR10.5
#[tokio::test]
async fn an_endpoint_at_another_origin_gets_nothing() {
    let (log, scene) = (Log::capture(), Scene::new());
    let elsewhere = Remote::recorder().start().await;
    let other = Endpoint::At(elsewhere.origin().to_owned());
    let plan = Remote::of(scene.fx("a").key("initTimeout", 5)).sse().endpoint(other);
    let remote = with_secret(plan).start().await;
    let error = start_error(&scene, &remote).await;
    assert!(error.contains("another origin") && !error.contains("swordfish"), "{error}");
    let audited = &log.audited()[0];
    assert_eq!((&audited["audit"], &audited["server"]), (&json!("address-refused"), &json!("a")));
    assert!(elsewhere.requests().is_empty(), "{:#?}", elsewhere.requests());
}

#[tokio::test]
async fn an_endpoint_may_be_a_whole_address_of_the_same_origin() {
    let scene = Scene::new();
    let plan = Remote::of(scene.fx("a")).sse().endpoint(Endpoint::Absolute);
    let remote = with_secret(plan).start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    answers(&host, "a").await;
    let sent = remote.requests();
    assert!(sent.iter().all(|seen| seen.header("authorization") == Some(SECRET)), "{sent:#?}");
    host.shutdown().await;
}

#[tokio::test]
async fn an_endpoint_that_is_never_named_costs_the_start_of_its_server() {
    let scene = Scene::new();
    let plan = Remote::of(scene.fx("a").key("initTimeout", 1).key("required", false));
    let remote = plan.sse().endpoint(Endpoint::Never).start().await;
    let host = beside(&scene, &remote).await;
    answers(&host, "b").await;
    assert!(echo(&host, "a", "").await.is_err());
    host.shutdown().await;
}

/// Fault 100.
#[tokio::test]
async fn a_server_that_never_speaks_tls_costs_its_own_start() {
    let scene = Scene::new();
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://{}/mcp", silent.local_addr().unwrap());
    let entry = json!({"type": "http", "url": url, "initTimeout": 1, "required": false});
    let began = Instant::now();
    let host = hosting(&scene, [("a", entry), ("b", scene.fx("b").entry())]).await;
    assert!(began.elapsed() < PATIENCE);
    assert!(echo(&host, "a", "").await.is_err());
    answers(&host, "b").await;
    host.shutdown().await;
}

#[tokio::test]
async fn no_secret_of_an_address_or_header_is_in_an_error_or_the_log() {
    let log = Log::capture();
    let scene = Scene::new();
    let fixture = scene.fx("a").key("retry", json!({"max": 1, "initialDelay": 0.01}));
    let remote = with_secret(Remote::of(fixture)).start().await;
    let mut entry = remote.entry();
    entry["url"] = json!(format!("{}?key=swordfish", remote.url()));
    let host = hosting(&scene, [("a", entry)]).await;
    answers(&host, "a").await;
    remote.stop().await;
    let error = echo(&host, "a", "").await.unwrap_err();
    let told = format!("{} {error:?}", chain(&error).join(": "));
    assert!(!told.contains("swordfish"), "{told}");
    host.shutdown().await;
    let lines = serde_json::to_string(&log.lines()).unwrap();
    assert!(lines.contains("cannot be reached") && !lines.contains("swordfish"), "{lines}");
}

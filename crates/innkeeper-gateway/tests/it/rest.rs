//! Tools over plain HTTP, and the metrics.

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::{NameStyle, Rate, RateConfig, ToolFilter};
use innkeeper_testkit::Journal;
use serde_json::json;
use tower::ServiceExt;

use crate::http::json;
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

pub(crate) fn request(method: &str, path: &str) -> http::request::Builder {
    let request = Request::builder().method(method).uri(format!("http://127.0.0.1{path}"));
    request.header("host", "127.0.0.1").header("content-type", "application/json")
}

async fn send(router: &Router, method: &str, path: &str, body: impl Into<Body>) -> Response<Body> {
    router.clone().oneshot(request(method, path).body(body.into()).unwrap()).await.unwrap()
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Returns the status, the detail and the hint of a problem.
async fn problem(response: Response<Body>) -> (u16, String, String) {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let status = response.status();
    let body = json(response).await;
    assert_eq!(body["status"], status.as_u16(), "{body}");
    let member = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    (status.as_u16(), member("detail"), member("hint"))
}

async fn gateway_with_policy(test_env: &TestEnv, policy: ToolPolicy) -> TestGateway {
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(policy);
    test_env.gateway_with(builder, [test_env.fixture("a")]).await
}

#[tokio::test]
async fn a_call_over_plain_http_has_the_bytes_of_the_server() {
    let test_env = TestEnv::new();
    let result = r#"{"content":[{"type":"hologram","v":1.0}],"structuredContent":{"n":123456789012345678901234567890},"x-a":-0.0}"#;
    let server =
        test_env.fixture("a").with("--call-result-text", result).journal(&test_env.journal());
    let gateway = test_env.gateway([server]).await;
    let arguments = r#"{"message":"hi","n":123456789012345678901234567890,"z":1.50}"#;
    let response = send(&gateway.router(), "POST", "/tools/a.echo", arguments).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(text(response).await, result);
    let journal = Journal::read(&test_env.journal());
    let call = &journal.received("tools/call")[0].raw;
    assert!(call.contains(&format!(r#""arguments":{arguments}"#)), "{call}");
}

#[tokio::test]
async fn the_health_check_answers_with_ok() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let response = send(&gateway.router(), "GET", "/healthz", "").await;
    assert_eq!((response.status(), &*text(response).await), (StatusCode::OK, "ok\n"));
}

#[tokio::test]
async fn the_list_and_the_description_have_the_tools_of_the_endpoint() {
    let test_env = TestEnv::new();
    let flat = EndpointOptions {
        names: NameStyle::Flat,
        tools: ToolFilter { deny: vec!["fail".to_owned()], ..ToolFilter::default() },
        ..EndpointOptions::default()
    };
    let named_endpoints = vec![("short".to_owned(), flat)];
    let options = GatewayOptions { named_endpoints, ..GatewayOptions::default() };
    let gateway =
        test_env.gateway_with(GatewayBuilder::new(options), [test_env.fixture("a")]).await;
    let router = gateway.router();
    let names = async |path: &str| {
        let list = json(send(&router, "GET", path, "").await).await;
        let tools = list["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (all, short) = (names("/tools").await, names("/endpoints/short/tools").await);
    assert!(all.contains(&"a.fail".to_owned()) && !short.contains(&"fail".to_owned()));
    for (path, names) in [("/openapi.json", all), ("/endpoints/short/openapi.json", short)] {
        let document = json(send(&router, "GET", path, "").await).await;
        assert_eq!(document["openapi"], "3.1.0");
        let described: Vec<String> =
            document["paths"].as_object().unwrap().keys().map(ToOwned::to_owned).collect();
        let expected: Vec<String> = names.iter().map(|name| format!("/tools/{name}")).collect();
        assert_eq!(described, expected);
    }
    let called = send(&router, "POST", "/endpoints/short/tools/echo", r#"{"message":"hi"}"#).await;
    assert_eq!(json(called).await["content"][0]["text"], "hi");
    let (status, detail, _) =
        problem(send(&router, "GET", "/endpoints/absent/tools", "").await).await;
    assert_eq!(
        (status, &*detail),
        (404, "no endpoint has this name; `serve.endpoints` has the names")
    );
    let stale = problem(send(&router, "GET", "/tools?cursor=x", "").await).await;
    assert_eq!((stale.0, stale.2.contains("omit `cursor`")), (400, true));
}

#[tokio::test]
async fn a_problem_names_the_tool_and_the_next_step() {
    let test_env = TestEnv::new();
    let crashing = test_env.fixture("b").switch("--crash-signal");
    let slow = test_env.fixture("c").config_key("timeout", 0.2);
    let gateway = test_env.gateway([test_env.fixture("a"), crashing, slow]).await;
    let router = gateway.router();
    let too_long = " ".repeat(GatewayOptions::default().limits.max_body_bytes + 1);
    let cases = [
        ("POST", "/tools/a.absent", "{}", 404, "`a.absent`", "GET /tools"),
        ("POST", "/tools/a.echo", "{", 400, "not JSON", "/openapi.json"),
        ("POST", "/tools/a.echo", "[1]", 400, "JSON object", "/openapi.json"),
        ("POST", "/tools/a.echo", "{\"message\":1}", 400, "message", "/openapi.json"),
        ("POST", "/tools/a.echo", &*too_long, 413, "8388608 bytes", ""),
        ("POST", "/tools/c.sleep", "{\"ms\":60000}", 504, "`c`", "timeout"),
        ("POST", "/tools/b.pid", "{}", 502, "`b`", "mayHaveRun"),
        ("PUT", "/tools/a.echo", "", 405, "POST", ""),
    ];
    for (method, path, body, expected, in_detail, in_hint) in cases {
        let (status, detail, hint) =
            problem(send(&router, method, path, body.to_owned()).await).await;
        assert_eq!(status, expected, "{path}: {detail}");
        assert!(detail.contains(in_detail) && hint.contains(in_hint), "{path}: {detail}; {hint}");
    }
    let form = Request::builder().method("POST").uri("http://127.0.0.1/tools/a.echo");
    let form = form.header("host", "127.0.0.1").body(Body::from("message=hi")).unwrap();
    let (status, _, hint) = problem(router.clone().oneshot(form).await.unwrap()).await;
    assert_eq!((status, hint.contains("Content-Type")), (415, true));
    let failed = send(&router, "POST", "/tools/a.fail", "{}").await;
    assert_eq!(failed.status(), StatusCode::OK, "an error of the tool is its result");
    assert_eq!(json(failed).await["isError"], true);
}

/// Attack: remote | a client over plain HTTP calls a tool that is denied to the client, and reads the
/// list and the description | the tool is as absent as an unknown tool, and the server gets no call |
/// Isolation
#[tokio::test]
async fn a_denied_tool_is_absent_over_plain_http() {
    let test_env = TestEnv::new();
    let rules = ToolFilter { deny: vec!["a.echo".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::local_user(), rules)], ToolFilter::default());
    let gateway = gateway_with_policy(&test_env, policy).await;
    let router = gateway.router();
    let (denied, unknown) = (
        problem(send(&router, "POST", "/tools/a.echo", r#"{"message":"hi"}"#).await).await,
        problem(send(&router, "POST", "/tools/a.ecco", r#"{"message":"hi"}"#).await).await,
    );
    assert_eq!(denied.0, 404);
    assert_eq!(denied.1.replace("echo", "ecco"), unknown.1);
    assert_eq!(denied.2, unknown.2);
    for path in ["/tools", "/openapi.json"] {
        let listed = text(send(&router, "GET", path, "").await).await;
        assert!(!listed.contains("a.echo") && listed.contains("a.fail"), "{path}: {listed}");
    }
}

/// Attack: remote | a client over plain HTTP calls a tool more often than permitted | the calls above
/// the rate have status 429 with the time to wait, and do not run | No unbounded memory
#[tokio::test]
async fn a_call_above_the_rate_has_the_time_to_wait() {
    let test_env = TestEnv::new();
    let rate = Rate { per_minute: 1.try_into().unwrap(), burst: 1.try_into().unwrap() };
    let common = RateConfig { tools: [("a.*".to_owned(), rate)].into(), ..RateConfig::default() };
    let builder =
        GatewayBuilder::new(GatewayOptions::default()).rate_limits(RateLimits::new(common, []));
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let router = gateway.router();
    assert_eq!(send(&router, "POST", "/tools/a.pid", "{}").await.status(), StatusCode::OK);
    let second = send(&router, "POST", "/tools/a.pid", "{}").await;
    let delay: u64 = second.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&delay), "{delay}");
    assert_eq!(problem(second).await.0, 429);
}

#[tokio::test]
async fn a_question_of_a_server_is_refused_and_the_call_has_a_result() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").switch("--ask-elicit").with("--era", era);
        let gateway = test_env.gateway([server]).await;
        let arguments = r#"{"message":"hi"}"#;
        let router = gateway.router();
        let call = send(&router, "POST", "/tools/a.echo", arguments);
        let response = tokio::time::timeout(TEST_TIMEOUT, call).await.unwrap();
        let status = response.status();
        let body = text(response).await;
        let (expected, refusal) = match era {
            "legacy" => (StatusCode::OK, "does not declare `elicitation/create`"),
            _ => (StatusCode::BAD_GATEWAY, r#""requiredCapabilities":{"elicitation":{}}"#),
        };
        assert_eq!(status, expected, "{era}: {body}");
        assert!(body.contains(refusal), "{era}: {body}");
    }
}

#[tokio::test]
async fn a_closed_connection_cancels_the_call_at_its_server() {
    use tokio::io::AsyncWriteExt;
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").journal(&test_env.journal())]).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = gateway.router();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await });
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = r#"{"ms":60000}"#;
    let head = format!(
        "POST /tools/a.sleep HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let called = |journal: &Journal| journal.count("tools/call") == 1;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, called).await;
    drop(client);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, cancelled).await;
    serving.abort_all();
    let metrics = text(send(&gateway.router(), "GET", "/metrics", "").await).await;
    let line = r#"{transport="rest",method="tools/call",outcome="cancelled"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn the_metrics_count_requests_rejections_sessions_and_streams() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let router = gateway.router();
    send(&router, "POST", "/tools/a.pid", "{}").await;
    send(&router, "POST", "/tools/a.echo", r#"{"message":1}"#).await;
    let mut lines = gateway.initialized("local", json!({})).await;
    lines.respond("my/method", json!({})).await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let initialized =
        request("POST", "/mcp").header("accept", "application/json, text/event-stream");
    let initialized = initialized.body(Body::from(initialize.to_string())).unwrap();
    let response = router.clone().oneshot(initialized).await.unwrap();
    let stream = request("GET", "/mcp").header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", &response.headers()["mcp-session-id"]);
    let stream = router.clone().oneshot(stream.body(Body::empty()).unwrap()).await.unwrap();
    let foreign = request("GET", "/metrics").header("origin", "https://evil.example");
    let foreign = router.clone().oneshot(foreign.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(problem(foreign).await.0, 403);
    let read = async || text(send(&router, "GET", "/metrics", "").await).await;
    let metrics = read().await;
    for line in [
        r#"innkeeper_calls_total{server="a",outcome="ok"} 1"#,
        r#"innkeeper_gateway_requests_total{transport="rest",method="tools/call",outcome="ok"} 1"#,
        r#"innkeeper_gateway_requests_total{transport="rest",method="tools/call",outcome="invalid"} 1"#,
        r#"innkeeper_gateway_requests_total{transport="connection",method="initialize",outcome="ok"} 1"#,
        r#"innkeeper_gateway_requests_total{transport="connection",method="other",outcome="server"} 1"#,
        r#"innkeeper_gateway_requests_total{transport="http",method="initialize",outcome="ok"} 1"#,
        r#"innkeeper_gateway_rejections_total{reason="origin"} 1"#,
        "innkeeper_gateway_sessions 1",
        "innkeeper_gateway_parked_calls 0",
        "innkeeper_gateway_open_streams 1",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line}\n{metrics}");
    }
    drop(stream);
    assert!(read().await.contains("innkeeper_gateway_open_streams 0\n"));
}

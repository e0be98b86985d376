//! Streamable HTTP: sessions, event streams and resumption.

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use innkeeper_host::config::ToolFilter;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

/// A client of the legacy era over HTTP.
pub(crate) struct HttpClient {
    router: Router,
    session: Option<String>,
}

impl HttpClient {
    pub(crate) fn new(gateway: &TestGateway) -> Self {
        Self { router: gateway.router(), session: None }
    }

    /// Connects a client with a session.
    pub(crate) async fn initialized(gateway: &TestGateway, capabilities: Value) -> Self {
        let mut client = Self::new(gateway);
        let response = client.post(&initialize(&capabilities)).await;
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        client.session = Some(session);
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post(&notification).await.status(), StatusCode::ACCEPTED);
        client
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) fn request(&self, method: &str) -> http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri("http://127.0.0.1/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    async fn post(&self, message: &Value) -> Response<Body> {
        self.send(self.request("POST").body(Body::from(message.to_string())).unwrap()).await
    }

    async fn get(&self, last_event: Option<&str>) -> Response<Body> {
        let mut request = self.request("GET");
        if let Some(id) = last_event {
            request = request.header("last-event-id", id);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }
}

pub(crate) fn initialize(capabilities: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    }})
}

pub(crate) fn call(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "a.echo", "arguments": { "message": "hi" }, "_meta": { "progressToken": id },
    }})
}

pub(crate) async fn json(response: Response<Body>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {body:?}"))
}

/// The events of a response.
pub(crate) struct Events {
    body: Body,
    pending: std::collections::VecDeque<(String, Value)>,
}

impl Events {
    pub(crate) fn new(response: Response<Body>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), pending: std::collections::VecDeque::new() }
    }

    /// Returns the data of the first event, which has this name.
    pub(crate) async fn named(&mut self, name: &str) -> String {
        let frame = self.body.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        let data = text.strip_prefix(&format!("event: {name}\ndata: ")).unwrap();
        data.trim_end().to_owned()
    }

    /// Returns the next part of the stream as text; `None` at the end of the stream.
    pub(crate) async fn text(&mut self) -> Option<String> {
        let frame = tokio::time::timeout(TEST_TIMEOUT, self.body.frame()).await;
        let bytes = frame.expect("an event in time")?.unwrap().into_data().unwrap();
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Returns the next event with its id; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let frame = tokio::time::timeout(TEST_TIMEOUT, self.body.frame()).await;
            let frame = frame.expect("an event in time")?.unwrap();
            let events = decode(&frame.into_data().unwrap());
            self.pending.extend(events);
        }
    }
}

fn decode(bytes: &[u8]) -> Vec<(String, Value)> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut events = Vec::new();
    for block in text.split("\n\n") {
        let (mut id, mut data) = (String::new(), None);
        for line in block.lines() {
            if let Some(value) = line.strip_prefix("id: ").or_else(|| line.strip_prefix("id:")) {
                id = value.trim().to_owned();
            }
            if let Some(value) = line.strip_prefix("data:") {
                data = Some(serde_json::from_str(value.trim()).unwrap());
            }
        }
        events.extend(data.map(|data| (id, data)));
    }
    events
}

/// Proves: B1
#[tokio::test]
async fn an_application_nests_the_routes_beside_its_own() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let router = Router::new()
        .route("/own", axum::routing::get(async || "own"))
        .nest("/ai", gateway.router());
    let send = async |path: &str, body: String| {
        let request = Request::builder()
            .method(if body.is_empty() { "GET" } else { "POST" })
            .uri(format!("http://127.0.0.1{path}"))
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    assert_eq!(send("/own", String::new()).await, (StatusCode::OK, "own".to_owned()));
    let (status, result) = send("/ai/mcp", initialize(&json!({})).to_string()).await;
    assert!(status == StatusCode::OK && result.contains("\"innkeeper\""), "{status}: {result}");
    let called = send("/ai/tools/a.echo", r#"{"message":"hi"}"#.to_owned()).await;
    assert!(called.0 == StatusCode::OK && called.1.contains("hi"), "{called:?}");
    assert_eq!(send("/mcp", "{}".to_owned()).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_starts_with_initialize_and_ends_with_delete() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let response = json(client.post(&call(1)).await).await;
    assert_eq!(response["result"]["content"][0]["text"], "hi");
    let deleted = client.send(client.request("DELETE").body(Body::empty()).unwrap()).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    assert_eq!(client.post(&call(2)).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_without_a_session_or_with_an_unknown_one_says_what_to_do() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = HttpClient::new(&gateway);
    let response = client.post(&call(1)).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(json(response).await["error"]["message"].as_str().unwrap().contains("initialize"));
    client.session = Some("guessed".to_owned());
    assert_eq!(client.post(&call(1)).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(client.get(None).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn progress_and_the_result_arrive_on_the_stream_of_the_request() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").with("--progress", 2)]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let mut events = Events::new(client.post(&call(7)).await);
    for _ in 0..2 {
        let (_, progress) = events.next().await.unwrap();
        assert_eq!(progress["params"]["progressToken"], 7, "{progress}");
    }
    let (_, result) = events.next().await.unwrap();
    assert_eq!((&result["id"], events.next().await), (&json!(7), None), "{result}");
}

#[tokio::test]
async fn a_question_arrives_on_the_stream_of_its_call_and_the_answer_in_a_request() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").switch("--ask-elicit")]).await;
    let client = HttpClient::initialized(&gateway, json!({ "elicitation": {} })).await;
    let mut events = Events::new(client.post(&call(3)).await);
    let (_, question) = events.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer =
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    assert_eq!(client.post(&answer).await.status(), StatusCode::ACCEPTED);
    let (_, result) = events.next().await.unwrap();
    assert_eq!(result["id"], 3);
    assert!(result["result"]["content"].to_string().contains("decline"), "{result}");
}

#[tokio::test]
async fn a_lost_stream_continues_after_the_last_received_event() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--progress", 3).with("--progress-delay", 100);
    let gateway = test_env.gateway([server]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let mut events = Events::new(client.post(&call(5)).await);
    let (id, _) = events.next().await.unwrap();
    // The connection is lost; the request goes on.
    drop(events);
    let mut resumed = Events::new(client.get(Some(&id)).await);
    let mut received = Vec::new();
    while let Some((_, message)) = resumed.next().await {
        received.push(message);
    }
    assert_eq!(received.len(), 3, "two notifications and the result: {received:?}");
    assert_eq!(received[2]["id"], 5);
}

#[tokio::test]
async fn an_event_id_that_cannot_be_resumed_does_not_say_that_the_session_ended() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    for (id, status) in [
        ("", StatusCode::OK),
        ("99-1", StatusCode::CONFLICT),
        ("0-5", StatusCode::CONFLICT),
        ("abc", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(client.get(Some(id)).await.status(), status, "{id}");
    }
    assert_eq!(client.post(&call(1)).await.status(), StatusCode::OK, "the session goes on");
}

#[tokio::test]
async fn a_finished_stream_takes_memory_until_its_session_ends() {
    let test_env = TestEnv::new();
    // The response stream starts before the call ends.
    let server = test_env.fixture("a").with("--progress", 2).with("--progress-delay", 50);
    let gateway = test_env.gateway([server]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let bytes = async || -> u64 {
        let request = Request::builder().uri("http://127.0.0.1/metrics").header("host", "[::1]");
        let response = client.send(request.body(Body::empty()).unwrap()).await;
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&text).unwrap();
        let prefix = "innkeeper_gateway_finished_stream_bytes ";
        let value = text.lines().find_map(|line| line.strip_prefix(prefix));
        value.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    };
    assert_eq!(bytes().await, 0);
    let mut events = Events::new(client.post(&call(7)).await);
    while events.next().await.is_some() {}
    drop(events);
    assert!(bytes().await > 0);
    let deleted = client.send(client.request("DELETE").body(Body::empty()).unwrap()).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    assert_eq!(bytes().await, 0);
}

#[tokio::test]
async fn changes_arrive_on_the_general_stream() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").switch("--list-changed")]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let mut events = Events::new(client.get(None).await);
    let grow = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "a.grow", "arguments": { "what": "tools" } } });
    client.post(&grow).await;
    let (_, changed) = events.next().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
}

/// The `_meta` of a request of the modern era.
pub(crate) fn modern_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request of the modern era with its headers.
pub(crate) fn modern(client: &HttpClient, name: &str, capabilities: &Value) -> Request<Body> {
    let params = json!({
        "name": name, "arguments": { "message": "hi" },
        "_meta": modern_meta(capabilities),
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = client
        .request("POST")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name);
    request.body(Body::from(message.to_string())).unwrap()
}

#[tokio::test]
async fn a_modern_request_needs_no_session_and_headers_that_match_its_body() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let client = HttpClient::new(&gateway);
    let response = client.send(modern(&client, "a.echo", &json!({}))).await;
    assert_eq!(response.status(), StatusCode::OK);
    let result = json(response).await;
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    let mut wrong = modern(&client, "a.echo", &json!({}));
    wrong.headers_mut().insert("mcp-name", "a.fail".parse().unwrap());
    let response = client.send(wrong).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json(response).await["error"]["code"], -32020);
    let mut repeated = modern(&client, "a.echo", &json!({}));
    repeated.headers_mut().append("mcp-name", "a.fail".parse().unwrap());
    assert_eq!(client.send(repeated).await.status(), StatusCode::BAD_REQUEST);
}

/// Attack: remote | a client asks with headers of arguments (`Mcp-Param`) whether a tool exists that is
/// denied to it | a denied tool has the same answer as an unknown one, with any header | Isolation
#[tokio::test]
async fn headers_of_arguments_do_not_tell_a_denied_tool_from_an_unknown_one() {
    let test_env = TestEnv::new();
    let argument = json!({ "type": "string", "x-mcp-header": "Text" });
    let schema = json!({ "type": "object", "properties": { "message": argument } });
    let tool = |name: &str| json!({ "name": name, "description": "", "inputSchema": schema });
    let tools = json!([tool("echo"), tool("denied")]).to_string();
    let deny = ToolFilter { deny: vec!["a.denied".to_owned()], ..ToolFilter::default() };
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(ToolPolicy::new([], deny));
    let gateway =
        test_env.gateway_with(builder, [test_env.fixture("a").with("--tools", tools)]).await;
    let client = HttpClient::new(&gateway);
    let answer = async |name: &str, header: &str| {
        let mut request = modern(&client, name, &json!({}));
        request.headers_mut().insert("mcp-param-text", header.parse().unwrap());
        let response = client.send(request).await;
        let status = response.status();
        (status, json(response).await["error"]["code"].clone())
    };
    assert_eq!(answer("a.echo", "hi").await.0, StatusCode::OK);
    assert_eq!(answer("a.echo", "other").await, (StatusCode::BAD_REQUEST, json!(-32020)));
    for header in ["hi", "other"] {
        assert_eq!(answer("a.denied", header).await, answer("a.absent", header).await, "{header}");
    }
}

/// Attack: remote | a client sends bodies and headers that are no MCP request | each has a status that
/// says why, and no server is called | No unbounded memory
#[tokio::test]
async fn unusable_requests_have_a_status_that_says_why() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let client = HttpClient::initialized(&gateway, json!({})).await;
    let with = |change: &dyn Fn(&mut HeaderMap), body: Vec<u8>| {
        let mut request = client.request("POST").body(Body::from(body)).unwrap();
        change(request.headers_mut());
        request
    };
    let none: &dyn Fn(&mut HeaderMap) = &|_| {};
    let limit = 8 << 20;
    let body_of = |bytes: usize| {
        let frame = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"p":""}}"#;
        frame.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - frame.len()))).into_bytes()
    };
    let cases = [
        (with(none, b"{".to_vec()), StatusCode::BAD_REQUEST),
        (with(none, body_of(limit)), StatusCode::ACCEPTED),
        (with(none, body_of(limit + 1)), StatusCode::PAYLOAD_TOO_LARGE),
        (with(none, format!("[{}]", call(1)).into_bytes()), StatusCode::BAD_REQUEST),
        (
            with(
                &|headers| drop(headers.insert("content-type", "text/plain".parse().unwrap())),
                vec![],
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        (
            with(&|headers| drop(headers.insert("accept", "text/html".parse().unwrap())), vec![]),
            StatusCode::NOT_ACCEPTABLE,
        ),
        (
            with(
                &|headers| {
                    let _ = headers.insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
                },
                call(1).to_string().into_bytes(),
            ),
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (number, (request, status)) in cases.into_iter().enumerate() {
        assert_eq!(client.send(request).await.status(), status, "case {number}");
    }
    let response = client.send(client.request("PUT").body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

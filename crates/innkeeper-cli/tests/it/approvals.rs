//! Tests of approvals in `serve`: the program is killed, starts again, and has the same questions.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use innkeeper_testkit::{Journal, RedisServer, fixture, mcp_json};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;
use crate::serve::HttpGateway;

/// Maximum time for what usually takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A directory with the configuration of a fixture server whose calls need an approval, and a Redis.
struct TestEnv {
    directory: TempDir,
    redis: RedisServer,
}

impl TestEnv {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = fixture("a").journal(&directory.path().join("journal"));
        let mut file = mcp_json([server]);
        file["serve"] = json!({ "approval": { "tools": ["a.*"] } });
        std::fs::write(directory.path().join("mcp.json"), file.to_string()).unwrap();
        Self { directory, redis: RedisServer::start(&[]) }
    }

    fn serve(&self) -> HttpGateway {
        let url = self.redis.url();
        let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0", "--store", &url];
        HttpGateway::start(&mut innkeeper(&args, self.directory.path()))
    }

    async fn wait_for_calls(&self, count: usize) {
        let path = self.directory.path().join("journal");
        Journal::wait_for(&path, TIMEOUT, |journal| journal.count("tools/call") == count).await;
    }

    fn calls(&self) -> usize {
        Journal::read(&self.directory.path().join("journal")).count("tools/call")
    }

    /// Lets the time pass after which a process counts as ended.
    fn pass_lease(&self) {
        let script = "for _, id in ipairs(redis.call('ZRANGE', 'mcp:questions:deadlines', 0, -1)) do \
                      redis.call('ZINCRBY', 'mcp:questions:deadlines', -31000, id) end return 'ok'";
        let mut stream = TcpStream::connect(self.redis.address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let length = script.len();
        write!(stream, "*3\r\n$4\r\nEVAL\r\n${length}\r\n{script}\r\n$1\r\n0\r\n").unwrap();
        let mut response = [0; 7];
        stream.read_exact(&mut response).unwrap();
        assert_eq!(&response, b"$2\r\nok\r");
    }
}

/// Calls a tool without a session, with a state if there is one. Returns the response.
fn call(gateway: &HttpGateway, (name, arguments): (&str, &Value), state: Option<&Value>) -> Value {
    let mut params = json!({ "name": name, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    }});
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = format!(
        "\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}"
    );
    let (_, body) = gateway.post("/mcp", &headers, &message);
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Returns the text after a mark, up to a quote.
fn quoted_after<'t>(text: &'t str, mark: &str) -> &'t str {
    let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in {text}"));
    rest.split('"').next().unwrap()
}

/// Approves the question of a page of the console. Returns the head and the body of the response.
fn approve(gateway: &HttpGateway, link: &str) -> (String, String) {
    let (_, page) = gateway.get(&format!("/console/{link}"));
    let token = quoted_after(&page, "name=\"form-token\" value=\"");
    let address = &gateway.address;
    let head = format!(
        "POST /console/{link} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
         content-type: application/x-www-form-urlencoded"
    );
    gateway.send(&head, &format!("form-token={token}&answer=approve"))
}

/// Returns the link to the only question.
fn question_link(gateway: &HttpGateway) -> String {
    let (_, page) = gateway.get("/console/questions");
    let link = format!("question?id={}", quoted_after(&page, "href=\"question?id="));
    assert_eq!(page.matches("href=\"question?id=").count(), 1, "{page}");
    link
}

fn state_of(response: &Value) -> Value {
    assert_eq!(response["result"]["resultType"], "input_required", "{response}");
    response["result"]["requestState"].clone()
}

/// Attack: processes | the gateway is killed while a call waits for its approval, and an operator
/// approves in the next gateway, twice | the call runs once, and its client gets the result | No
/// repeated execution
#[test]
fn a_call_waits_for_its_approval_while_the_gateway_is_killed_and_started_again() {
    let test_env = TestEnv::new();
    let mut gateway = test_env.serve();
    let echo = ("a.echo", &json!({ "message": "hi" }));
    let state = state_of(&call(&gateway, echo, None));
    let link = question_link(&gateway);
    gateway.kill();

    let gateway = test_env.serve();
    assert_eq!(question_link(&gateway), link);
    let (_, page) = gateway.get(&format!("/console/{link}"));
    assert!(page.contains("{&quot;message&quot;:&quot;hi&quot;}"), "{page}");
    let (head, _) = approve(&gateway, &link);
    assert!(head.starts_with("HTTP/1.1 303"), "{head}");
    let response = call(&gateway, echo, Some(&state));
    assert_eq!(response["result"]["content"][0]["text"], "hi", "{response}");
    let metrics = gateway.get("/metrics").1;
    assert!(metrics.contains("innkeeper_gateway_open_questions 0\n"), "{metrics}");
    assert_eq!(test_env.calls(), 1);
    assert_eq!(gateway.terminate(), Some(143));
}

/// Attack: processes | the gateway is killed while it runs an approved call, and an operator approves
/// again in the next gateway | the call does not run again, and operator and client learn that its
/// outcome is unknown | No repeated execution
#[tokio::test]
async fn an_approved_call_whose_gateway_is_killed_does_not_run_again() {
    let test_env = TestEnv::new();
    let mut gateway = test_env.serve();
    let sleep = ("a.sleep", &json!({ "ms": 60_000 }));
    let state = state_of(&call(&gateway, sleep, None));
    let link = question_link(&gateway);
    approve(&gateway, &link);
    test_env.wait_for_calls(1).await;
    gateway.kill();
    test_env.pass_lease();

    let gateway = test_env.serve();
    let response = call(&gateway, sleep, Some(&state));
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("outcome of the approved call of `a.sleep` is unknown"), "{message}");
    assert_eq!(response["error"]["data"]["mayHaveRun"], true);
    let (_, page) = gateway.get(&format!("/console/{link}"));
    assert!(page.contains("outcome unknown") && !page.contains("Approve"), "{page}");
    assert_eq!(test_env.calls(), 1);
    assert_eq!(gateway.terminate(), Some(143));
}

#[test]
fn approvals_that_nobody_could_give_are_an_error_at_the_start() {
    let test_env = TestEnv::new();
    let args = ["serve", "--stdio", "--config", "mcp.json"];
    let output = innkeeper(&args, test_env.directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("nobody can answer the questions of `serve.approval`"), "{stderr}");
}

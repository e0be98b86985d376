//! A protected MCP server with its authorization server, over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The only token that the server accepts.
pub(crate) const TOKEN: &str = "token-of-the-application";
/// The code that the sign-in page shows.
const CODE: &str = "code-of-the-page";

/// The running server. A drop stops the server.
pub(crate) struct ProtectedServer {
    origin: String,
    received: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl ProtectedServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<String>>>::default();
        let (own_origin, log) = (origin.clone(), received.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (origin, log) = (own_origin.clone(), log.clone());
                connections.spawn(async move {
                    let _ = serve(stream, &origin, &log).await;
                });
            }
        });
        Self { origin, received, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Returns how often the server received a request: a path, an MCP method that the server
    /// accepted, or `rejected`.
    pub(crate) fn count(&self, request: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|received| *received == request).count()
    }
}

async fn serve(stream: TcpStream, origin: &str, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut first_line = String::new();
    stream.read_line(&mut first_line).await?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let body = String::from_utf8(body).unwrap();
    let mut words = first_line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path = target.split('?').next().unwrap();
    let (status, response) = if path == "/mcp" && method == "POST" {
        let message: Value = serde_json::from_str(&body).unwrap();
        let is_permitted = headers
            .get("authorization")
            .is_some_and(|value| value.strip_prefix("Bearer ").is_some_and(|token| token == TOKEN));
        let entry = if is_permitted { message["method"].as_str().unwrap() } else { "rejected" };
        log.lock().unwrap().push(entry.to_owned());
        if is_permitted { mcp_response(&message) } else { (401, json!({})) }
    } else {
        log.lock().unwrap().push(path.to_owned());
        authorization_response(path, &body, origin)
    };
    let challenge = match status {
        401 => format!("WWW-Authenticate: Bearer resource_metadata=\"{origin}/metadata\"\r\n"),
        _ => String::new(),
    };
    let response = response.to_string();
    let length = response.len();
    let text = format!(
        "HTTP/1.1 {status} x\r\n{challenge}Content-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{response}"
    );
    stream.get_mut().write_all(text.as_bytes()).await
}

fn mcp_response(message: &Value) -> (u16, Value) {
    let result = match message["method"].as_str().unwrap() {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "vault", "version": "1"},
            "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}),
        "tools/list" => json!({"tools": [{"name": "open", "inputSchema": {"type": "object"}}],
            "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}),
        "tools/call" => json!({"content": [{"type": "text", "text": "It is open."}],
            "resultType": "complete"}),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return (404, json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    };
    (200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn authorization_response(path: &str, form: &str, origin: &str) -> (u16, Value) {
    match path {
        "/metadata" => {
            (200, json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}))
        }
        "/.well-known/oauth-authorization-server" => (
            200,
            json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/page"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => (201, json!({"client_id": "application", "redirect_uris": []})),
        "/page" => (200, json!({"code": CODE})),
        "/token"
            if form.contains(&format!("code={CODE}")) || form.contains("client_credentials") =>
        {
            (200, json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}))
        }
        _ => (404, json!({})),
    }
}

/// Sends a request as the HTTP client of an application does, and returns the JSON response.
pub(crate) async fn http_request(method: &str, url: &str, body: &str) -> Value {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

//! End-to-end tests of `login` with an authorization server and a stand-in for a browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::program::innkeeper;

const TOKEN: &str = "canary-7c1e-token";

/// A protected MCP server and its authorization server on one port, until the test ends.
#[derive(Clone)]
struct OauthTestServer {
    origin: String,
    /// Whether only calls need a token.
    challenges_calls_only: bool,
    /// Paths of all requests.
    requested_paths: Arc<Mutex<Vec<String>>>,
}

impl OauthTestServer {
    fn start(challenges_calls_only: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { origin, challenges_calls_only, requested_paths: Arc::default() };
        let accepting = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = accepting.clone();
                std::thread::spawn(move || connection.handle_connection(stream.unwrap()));
            }
        });
        server
    }

    fn request_count(&self, path: &str) -> usize {
        self.requested_paths.lock().unwrap().iter().filter(|requested| *requested == path).count()
    }

    fn handle_connection(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let mut lines = head.iter().filter_map(|line| line.split_once(": "));
            lines
                .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).unwrap();
        let target = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        self.requested_paths.lock().unwrap().push(path.to_owned());
        let signed = header("authorization") == Some(&format!("Bearer {TOKEN}"));
        let (status, more, body) = self.respond(path, query, &body, signed);
        let text = format!(
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\
             Connection: close\r\n{more}\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn respond(&self, path: &str, query: &str, body: &[u8], signed: bool) -> (u16, String, String) {
        let origin = &self.origin;
        let ok = |body: &Value| (200, String::new(), body.to_string());
        match path {
            "/mcp" if signed || self.challenges_calls_only && !is_call(body) => {
                match mcp_response(body) {
                    Some(body) => ok(&body),
                    None => (405, String::new(), String::new()),
                }
            }
            "/mcp" => {
                let pointer = format!("Bearer resource_metadata=\"{origin}/metadata\"");
                (401, format!("WWW-Authenticate: {pointer}\r\n"), String::new())
            }
            "/metadata" | "/.well-known/oauth-protected-resource/mcp" => {
                ok(&json!({"resource": format!("{origin}/mcp"),
                "authorization_servers": [origin]}))
            }
            "/.well-known/oauth-authorization-server" => ok(&json!({"issuer": origin,
                "authorization_endpoint": format!("{origin}/page"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"]})),
            "/register" => {
                (201, String::new(), json!({"client_id": "c", "redirect_uris": []}).to_string())
            }
            "/page" => {
                let field = |name: &str| {
                    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).unwrap()
                };
                let redirect_uri = field("redirect_uri").replace("%3A", ":").replace("%2F", "/");
                let location =
                    format!("{redirect_uri}?code=canary-7c1e-code&state={}", field("state"));
                (302, format!("Location: {location}\r\n"), String::new())
            }
            "/token" => ok(&json!({"access_token": TOKEN, "token_type": "Bearer"})),
            _ => (404, String::new(), String::new()),
        }
    }
}

fn is_call(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|request| request["method"] == "tools/call")
}

/// Returns the MCP server's response; `None` for a notification.
fn mcp_response(body: &[u8]) -> Option<Value> {
    let registration: Value = serde_json::from_slice(body).ok()?;
    let mut result = match registration["method"].as_str()? {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "rest", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": []}),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return Some(json!({"jsonrpc": "2.0", "id": registration["id"], "error": error}));
        }
    };
    result["resultType"] = json!("complete");
    (result["ttlMs"], result["cacheScope"]) = (json!(0), json!("private"));
    Some(json!({"jsonrpc": "2.0", "id": registration["id"], "result": result}))
}

/// Requests a URL like a browser and returns the whole response.
fn http_get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn command(args: &[&str], dir: &Path) -> Command {
    let mut command = innkeeper(args, dir);
    command.env("XDG_STATE_HOME", dir.join("state")).stdin(Stdio::null());
    command
}

#[test]
fn a_user_signs_in_once_and_the_other_commands_have_the_token() {
    for challenges_calls_only in [false, true] {
        sign_in_once(&OauthTestServer::start(challenges_calls_only));
    }
}

fn sign_in_once(oauth_server: &OauthTestServer) {
    let dir = tempfile::tempdir().unwrap();
    let file = json!({"servers": {"web": {"url": format!("{}/mcp", oauth_server.origin)}}});
    std::fs::write(dir.path().join("mcp.json"), file.to_string()).unwrap();
    let before = command(&["call", "web.rest"], dir.path()).output().unwrap();
    let stderr = String::from_utf8(before.stderr).unwrap();
    assert!(stderr.contains("run `innkeeper login web` to sign in"), "{stderr}");
    let mut login = command(&["login", "web", "--json"], dir.path());
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines().map(Result::unwrap);
    let page = lines.find(|line| line.trim().starts_with("http://")).unwrap();
    let sent = http_get(page.trim());
    let location = sent.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    assert!(http_get(location).contains("You can close this page"));
    let rest: Vec<String> = lines.collect();
    let output = login.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest:?}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result, json!({"server": "web", "ready": true, "signedIn": true}));
    assert!(!rest.concat().contains("canary"), "{rest:?}");
    let again = command(&["login", "web"], dir.path()).output().unwrap();
    let stderr = String::from_utf8(again.stderr).unwrap();
    assert!(stderr.ends_with("ready: server `web` asked for no sign-in\n"), "{stderr}");
    let after = command(&["call", "web.rest", "--json"], dir.path()).output().unwrap();
    assert_eq!(after.status.code(), Some(0), "{}", String::from_utf8_lossy(&after.stderr));
    assert_eq!((oauth_server.request_count("/page"), oauth_server.request_count("/token")), (1, 1));
}

//! A server with MCP, authorization and identity provider endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Prefix of every secret, so that a test finds a leaked secret anywhere.
pub(crate) const CANARY: &str = "canary-7c1e";

/// The behaviour of the test server.
#[derive(Clone, Default)]
pub(crate) struct OauthServerOptions {
    /// Replaces the `resource_metadata` URL of the challenge.
    pub(crate) metadata_url: Option<String>,
    /// Replaces `resource` in the resource metadata.
    pub(crate) resource: Option<String>,
    /// Replaces the authorization server in the resource metadata.
    pub(crate) issuer: Option<String>,
    /// Replaces the authorization endpoint.
    pub(crate) authorization_endpoint: Option<String>,
    /// Lifetime in seconds of an access token from a sign-in; renewed access tokens last an hour.
    pub(crate) expires_in: Option<u64>,
    /// Whether the server issues refresh tokens.
    pub(crate) renewable: bool,
    /// The scope that tool calls require.
    pub(crate) required_scope: Option<&'static str>,
    /// Whether the server rejects client registration.
    pub(crate) registration_disabled: bool,
    /// Whether the resource server rejects every token.
    pub(crate) rejects_all_tokens: bool,
    /// Whether tokens never have the requested scope.
    pub(crate) grants_no_scope: bool,
    /// Whether the MCP and token endpoints respond with status 400 and a copy of the request.
    pub(crate) echoes_requests: bool,
    /// The response of the token endpoint in place of a token.
    pub(crate) token_response: Option<(u16, String)>,
    /// The response of the token endpoint to a renewal in place of a token.
    pub(crate) renewal_response: Option<(u16, String)>,
    /// Whether the challenge of the resource server has another scheme than `Bearer`.
    pub(crate) other_scheme: bool,
    /// Further members of the authorization server's metadata.
    pub(crate) metadata: Value,
    /// The response of the identity provider in place of an assertion.
    pub(crate) provider_response: Option<(u16, String)>,
    /// Replaces the `resource` of the assertion.
    pub(crate) assertion_resource: Option<String>,
}

#[derive(Default)]
struct OauthServerState {
    issued: u32,
    /// The valid access tokens with their scopes.
    valid_tokens: BTreeMap<String, String>,
    /// The scopes of authorization codes that no client has exchanged yet.
    codes: BTreeMap<String, String>,
    /// Requests as pairs of key and content: path and form of an OAuth request, method and empty
    /// string of an MCP request, `refused` and method of a rejected MCP request.
    requests: Vec<(String, String)>,
    used_refresh_tokens: BTreeSet<String>,
}

/// The running server; dropping this value stops the server.
pub(crate) struct OauthTestServer {
    pub(crate) origin: String,
    options: Arc<Mutex<OauthServerOptions>>,
    state: Arc<Mutex<OauthServerState>>,
    _tasks: JoinSet<()>,
}

impl OauthTestServer {
    pub(crate) async fn start(options: OauthServerOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let options = Arc::new(Mutex::new(options));
        let state = Arc::new(Mutex::new(OauthServerState::default()));
        let handler = OauthRequestHandler {
            origin: origin.clone(),
            options: options.clone(),
            state: state.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let handler = handler.clone();
                connections.spawn(async move {
                    let _ = handler.serve(stream).await;
                });
            }
        });
        Self { origin, options, state, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Returns the `WWW-Authenticate` header with the URL of the resource metadata.
    pub(crate) fn challenge_header(&self) -> String {
        format!("Bearer resource_metadata=\"{}/metadata\"", self.origin)
    }

    pub(crate) fn configure(&self, change: impl FnOnce(&mut OauthServerOptions)) {
        change(&mut self.options.lock().unwrap());
    }

    /// Invalidates every access token issued so far.
    pub(crate) fn revoke(&self) {
        self.state.lock().unwrap().valid_tokens.clear();
    }

    /// Makes `token` the only valid access token.
    pub(crate) fn accept_only(&self, token: &str) {
        self.state.lock().unwrap().valid_tokens =
            BTreeMap::from([(token.to_owned(), String::new())]);
    }

    /// Returns the contents of all requests with this key, in order of arrival.
    pub(crate) fn requests(&self, key: &str) -> Vec<String> {
        let server_state = self.state.lock().unwrap();
        let at = server_state.requests.iter().filter(|(path, _)| path == key);
        at.map(|(_, body)| body.clone()).collect()
    }
}

#[derive(Clone)]
struct OauthRequestHandler {
    origin: String,
    options: Arc<Mutex<OauthServerOptions>>,
    state: Arc<Mutex<OauthServerState>>,
}

struct HttpResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn json_response(status: u16, body: &Value) -> HttpResponse {
    HttpResponse { status, headers: Vec::new(), body: body.to_string() }
}

/// Returns the value of one field of a query or a form.
fn form_field(form: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(&format!("http://form/?{form}")).unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

impl OauthRequestHandler {
    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            if line.trim().is_empty() {
                break;
            }
            head.push(line);
        }
        let header = |name: &str| {
            let lines = head.iter().skip(1).filter_map(|line| line.split_once(':'));
            let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            values.next().map(|(_, value)| value.trim().to_owned())
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let body = String::from_utf8(body).unwrap();
        let mut tokens = head.first().map(String::as_str).unwrap_or_default().split(' ');
        let (method, target) =
            (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let token = header("authorization");
        let token = token.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let response = match (method, path) {
            ("POST", "/mcp") => self.handle_mcp(token, &body),
            (_, "/mcp") => json_response(405, &json!({})),
            _ => self.handle_oauth(path, query, &body),
        };
        let HttpResponse { status, headers, body } = response;
        let mut text = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Type: application/json\r\nConnection: close\r\n\r\n{body}");
        stream.get_mut().write_all(text.as_bytes()).await
    }

    fn handle_oauth(&self, path: &str, query: &str, body: &str) -> HttpResponse {
        let options = self.options.lock().unwrap().clone();
        let mut server_state = self.state.lock().unwrap();
        let form = if body.is_empty() { query } else { body };
        server_state.requests.push((path.to_owned(), form.to_owned()));
        let origin = &self.origin;
        match path {
            "/metadata" | "/.well-known/oauth-protected-resource/mcp" => {
                let resource = options.resource.unwrap_or(format!("{origin}/mcp"));
                let issuer = options.issuer.unwrap_or(origin.clone());
                json_response(
                    200,
                    &json!({"resource": resource, "authorization_servers": [issuer]}),
                )
            }
            "/.well-known/oauth-authorization-server" => {
                let mut metadata = json!({
                    "issuer": origin,
                    "authorization_endpoint": options.authorization_endpoint.unwrap_or(format!("{origin}/page")),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                });
                for (key, value) in options.metadata.as_object().into_iter().flatten() {
                    metadata[key] = value.clone();
                }
                json_response(200, &metadata)
            }
            "/register" if options.registration_disabled => {
                json_response(403, &json!({"error": "access_denied"}))
            }
            "/register" => {
                let client = json!({"client_id": "c1", "client_secret": format!("{CANARY}-client"),
                    "redirect_uris": []});
                json_response(201, &client)
            }
            "/page" => {
                let code = format!("{CANARY}-code-{}", server_state.requests.len());
                server_state
                    .codes
                    .insert(code.clone(), form_field(query, "scope").unwrap_or_default());
                let redirect_uri = form_field(query, "redirect_uri").unwrap();
                let state = form_field(query, "state").unwrap();
                let to = format!("{redirect_uri}?code={code}&state={state}");
                HttpResponse { headers: vec![("Location", to)], ..json_response(302, &json!({})) }
            }
            "/token" => server_state.issue_token(&options, form),
            "/provider" => handle_identity_provider(&options, form),
            _ => json_response(404, &json!({})),
        }
    }

    fn handle_mcp(&self, token: Option<&str>, body: &str) -> HttpResponse {
        let options = self.options.lock().unwrap().clone();
        let mut server_state = self.state.lock().unwrap();
        let registration: Value = serde_json::from_str(body).unwrap();
        let method = registration["method"].as_str().unwrap_or_default().to_owned();
        let pointer = options.metadata_url.unwrap_or(format!("{}/metadata", self.origin));
        let rejection = |status, more: &str| {
            let header = match options.other_scheme {
                true => "Other realm=\"inn\"".to_owned(),
                false => format!("Bearer resource_metadata=\"{pointer}\"{more}"),
            };
            HttpResponse {
                headers: vec![("WWW-Authenticate", header)],
                ..json_response(status, &json!({}))
            }
        };
        let token = token.filter(|_| !options.rejects_all_tokens);
        let Some(scopes) = token.and_then(|token| server_state.valid_tokens.get(token).cloned())
        else {
            server_state.requests.push(("refused".to_owned(), method));
            return rejection(401, "");
        };
        if let Some(scope) = options.required_scope.filter(|_| method == "tools/call")
            && !scopes.split(' ').any(|granted| granted == scope)
        {
            let more = format!(", error=\"insufficient_scope\", scope=\"{scope}\"");
            return rejection(403, &more);
        }
        server_state.requests.push((method.clone(), String::new()));
        if options.echoes_requests {
            let message = format!("what is Bearer {}?", token.unwrap_or_default());
            let error = json!({"code": -32000, "message": message, "data": [message]});
            return json_response(
                400,
                &json!({"jsonrpc": "2.0", "id": registration["id"], "error": error}),
            );
        }
        let result = match &*method {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "inn", "version": "1"},
                "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}),
            "tools/list" => json!({"tools": [{"name": "sleep", "inputSchema": {"type": "object"}}],
                "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}),
            "tools/call" => json!({"content": [], "resultType": "complete"}),
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                return json_response(
                    404,
                    &json!({"jsonrpc": "2.0", "id": registration["id"], "error": error}),
                );
            }
        };
        json_response(200, &json!({"jsonrpc": "2.0", "id": registration["id"], "result": result}))
    }
}

/// The identity provider with the issuer `https://idp.example`.
fn handle_identity_provider(options: &OauthServerOptions, form: &str) -> HttpResponse {
    if let Some((status, body)) = &options.provider_response {
        return HttpResponse { status: *status, headers: Vec::new(), body: body.clone() };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"iss": "https://idp.example", "sub": "someone", "client_id": "us",
        "aud": form_field(form, "audience"), "jti": "1", "iat": now, "exp": now + 300,
        "resource": options.assertion_resource.clone().or(form_field(form, "resource"))});
    let head = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
    let encode = |text: &Value| URL_SAFE_NO_PAD.encode(text.to_string());
    let assertion = format!("{}.{}.{CANARY}A", encode(&head), encode(&claims));
    let kind = "urn:ietf:params:oauth:token-type:id-jag";
    json_response(
        200,
        &json!({"access_token": assertion, "issued_token_type": kind, "token_type": "N_A"}),
    )
}

impl OauthServerState {
    fn issue_token(&mut self, options: &OauthServerOptions, form: &str) -> HttpResponse {
        if let Some((status, body)) = &options.token_response {
            return HttpResponse { status: *status, headers: Vec::new(), body: body.clone() };
        }
        if options.echoes_requests {
            let error_json = json!({"error": "invalid_client", "error_description": form});
            return json_response(400, &error_json);
        }
        let renewed = form_field(form, "grant_type").as_deref() == Some("refresh_token");
        if let Some((status, body)) = options.renewal_response.as_ref().filter(|_| renewed) {
            return HttpResponse { status: *status, headers: Vec::new(), body: body.clone() };
        }
        let scope = match form_field(form, "code") {
            Some(code) => self.codes.remove(&code),
            None => form_field(form, "scope").or(Some(String::new())),
        };
        let Some(scope) = scope else {
            return json_response(400, &json!({"error": "invalid_grant"}));
        };
        self.issued += 1;
        let token = format!("{CANARY}-token-{}", self.issued);
        let scope = if options.grants_no_scope { String::new() } else { scope };
        self.valid_tokens.insert(token.clone(), scope);
        let mut token_json = json!({"access_token": token, "token_type": "Bearer",
            "id_token": format!("{CANARY}-id")});
        if let Some(lasts) = options.expires_in {
            token_json["expires_in"] = json!(if renewed { 3600 } else { lasts });
        }
        if options.renewable {
            let renewal = format!("{CANARY}-renewal-{}", self.issued);
            // A refresh token is valid once.
            if let Some(used) = form_field(form, "refresh_token")
                && !self.used_refresh_tokens.insert(used)
            {
                return json_response(400, &json!({"error": "invalid_grant"}));
            }
            token_json["refresh_token"] = json!(renewal);
        }
        json_response(200, &token_json)
    }
}

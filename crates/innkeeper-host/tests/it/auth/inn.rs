//! A server that wants tokens and the authorization server that gives them, on one port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What every secret begins with, so that one is found wherever it turns up.
pub(crate) const CANARY: &str = "canary-7c1e";

/// How the two are to behave.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// In place of the pointer of a refusal.
    pub(crate) pointer: Option<String>,
    /// In place of the resource that the metadata speaks of.
    pub(crate) resource: Option<String>,
    /// In place of the authorization server that it names.
    pub(crate) issuer: Option<String>,
    /// In place of the page where a person signs in.
    pub(crate) page: Option<String>,
    /// How many seconds a token that was signed in for lasts; a renewed one lasts an hour.
    pub(crate) lasts: Option<u64>,
    /// Whether tokens can be renewed.
    pub(crate) renewable: bool,
    /// The scope that calls want.
    pub(crate) calls_want: Option<&'static str>,
    /// Whether nobody can register.
    pub(crate) no_clients: bool,
    /// Whether no token is ever good.
    pub(crate) never_content: bool,
    /// Whether a token's scopes are never what was asked for.
    pub(crate) stingy: bool,
    /// Whether both answer with 400 and what they were sent.
    pub(crate) repeats: bool,
    /// What the token endpoint answers in place of a token.
    pub(crate) token_answer: Option<(u16, String)>,
    /// What the identity provider answers in place of an assertion.
    pub(crate) provider_answer: Option<(u16, String)>,
    /// In place of the resource that its assertion is for.
    pub(crate) assertion_for: Option<String>,
}

#[derive(Default)]
struct Books {
    given: u32,
    /// The tokens that are good, with their scopes.
    good: BTreeMap<String, String>,
    /// The scopes of codes that were not exchanged yet.
    codes: BTreeMap<String, String>,
    /// Requests by path, with their bodies; of the server's own, by what they call.
    seen: Vec<(String, String)>,
    closed: BTreeSet<String>,
}

/// The running pair; it ends when it is dropped.
pub(crate) struct Inn {
    pub(crate) origin: String,
    rules: Arc<Mutex<Rules>>,
    books: Arc<Mutex<Books>>,
    _tasks: JoinSet<()>,
}

impl Inn {
    pub(crate) async fn open(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let rules = Arc::new(Mutex::new(rules));
        let books = Arc::new(Mutex::new(Books::default()));
        let desk = Desk { origin: origin.clone(), rules: rules.clone(), books: books.clone() };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut guests = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let desk = desk.clone();
                guests.spawn(async move { drop(desk.serve(stream).await) });
            }
        });
        Self { origin, rules, books, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// The whereabouts of its metadata, as another server's refusal may have it.
    pub(crate) fn pointer(&self) -> String {
        format!("Bearer resource_metadata=\"{}/metadata\"", self.origin)
    }

    pub(crate) fn rule(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules.lock().unwrap());
    }

    /// No token that was given so far is good any more.
    pub(crate) fn revoke(&self) {
        self.books.lock().unwrap().good.clear();
    }

    /// A token that somebody else has given is good from now on, and no other.
    pub(crate) fn admit(&self, token: &str) {
        self.books.lock().unwrap().good = BTreeMap::from([(token.to_owned(), String::new())]);
    }

    /// What was asked for at this path, or called by this name, in order.
    pub(crate) fn seen(&self, what: &str) -> Vec<String> {
        let books = self.books.lock().unwrap();
        let at = books.seen.iter().filter(|(path, _)| path == what);
        at.map(|(_, body)| body.clone()).collect()
    }
}

#[derive(Clone)]
struct Desk {
    origin: String,
    rules: Arc<Mutex<Rules>>,
    books: Arc<Mutex<Books>>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer { status, headers: Vec::new(), body: body.to_string() }
}

/// The value of one name in a query or a form.
fn field(form: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(&format!("http://form/?{form}")).unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

impl Desk {
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
            let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let body = String::from_utf8(body).unwrap();
        let mut words = head.first().map(String::as_str).unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let token = header("authorization");
        let token = token.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let answer = match (method, path) {
            ("POST", "/mcp") => self.mcp(token, &body),
            (_, "/mcp") => answer(405, &json!({})),
            _ => self.desk(path, query, &body),
        };
        let Answer { status, headers, body } = answer;
        let mut text = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Type: application/json\r\nConnection: close\r\n\r\n{body}");
        stream.get_mut().write_all(text.as_bytes()).await
    }

    fn desk(&self, path: &str, query: &str, body: &str) -> Answer {
        let rules = self.rules.lock().unwrap().clone();
        let mut books = self.books.lock().unwrap();
        let form = if body.is_empty() { query } else { body };
        books.seen.push((path.to_owned(), form.to_owned()));
        let origin = &self.origin;
        match path {
            "/metadata" | "/.well-known/oauth-protected-resource/mcp" => {
                let resource = rules.resource.unwrap_or(format!("{origin}/mcp"));
                let issuer = rules.issuer.unwrap_or(origin.clone());
                answer(200, &json!({"resource": resource, "authorization_servers": [issuer]}))
            }
            "/.well-known/oauth-authorization-server" => answer(
                200,
                &json!({
                    "issuer": origin,
                    "authorization_endpoint": rules.page.unwrap_or(format!("{origin}/page")),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                }),
            ),
            "/register" if rules.no_clients => answer(403, &json!({"error": "access_denied"})),
            "/register" => {
                let client = json!({"client_id": "c1", "client_secret": format!("{CANARY}-client"),
                    "redirect_uris": []});
                answer(201, &client)
            }
            "/page" => {
                let code = format!("{CANARY}-code-{}", books.seen.len());
                books.codes.insert(code.clone(), field(query, "scope").unwrap_or_default());
                let back = field(query, "redirect_uri").unwrap();
                let state = field(query, "state").unwrap();
                let to = format!("{back}?code={code}&state={state}");
                Answer { headers: vec![("Location", to)], ..answer(302, &json!({})) }
            }
            "/token" => books.token(&rules, form),
            "/provider" => provider(&rules, form),
            _ => answer(404, &json!({})),
        }
    }

    fn mcp(&self, token: Option<&str>, body: &str) -> Answer {
        let rules = self.rules.lock().unwrap().clone();
        let mut books = self.books.lock().unwrap();
        let asked: Value = serde_json::from_str(body).unwrap();
        let method = asked["method"].as_str().unwrap_or_default().to_owned();
        let pointer = rules.pointer.unwrap_or(format!("{}/metadata", self.origin));
        let refused = |status, more: &str| {
            let header = format!("Bearer resource_metadata=\"{pointer}\"{more}");
            Answer { headers: vec![("WWW-Authenticate", header)], ..answer(status, &json!({})) }
        };
        let token = token.filter(|_| !rules.never_content);
        let Some(scopes) = token.and_then(|token| books.good.get(token).cloned()) else {
            books.seen.push(("refused".to_owned(), method));
            return refused(401, "");
        };
        if let Some(scope) = rules.calls_want.filter(|_| method == "tools/call")
            && !scopes.split(' ').any(|given| given == scope)
        {
            let more = format!(", error=\"insufficient_scope\", scope=\"{scope}\"");
            return refused(403, &more);
        }
        books.seen.push((method.clone(), String::new()));
        if rules.repeats {
            let message = format!("what is Bearer {}?", token.unwrap_or_default());
            let error = json!({"code": -32000, "message": message, "data": [message]});
            return answer(400, &json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
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
                return answer(404, &json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
            }
        };
        answer(200, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
    }
}

/// The identity provider: its own name is `https://idp.example`.
fn provider(rules: &Rules, form: &str) -> Answer {
    if let Some((status, body)) = &rules.provider_answer {
        return Answer { status: *status, headers: Vec::new(), body: body.clone() };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"iss": "https://idp.example", "sub": "someone", "client_id": "us",
        "aud": field(form, "audience"), "jti": "1", "iat": now, "exp": now + 300,
        "resource": rules.assertion_for.clone().or(field(form, "resource"))});
    let head = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
    let encode = |text: &Value| URL_SAFE_NO_PAD.encode(text.to_string());
    let assertion = format!("{}.{}.{CANARY}A", encode(&head), encode(&claims));
    let kind = "urn:ietf:params:oauth:token-type:id-jag";
    answer(200, &json!({"access_token": assertion, "issued_token_type": kind, "token_type": "N_A"}))
}

impl Books {
    fn token(&mut self, rules: &Rules, form: &str) -> Answer {
        if let Some((status, body)) = &rules.token_answer {
            return Answer { status: *status, headers: Vec::new(), body: body.clone() };
        }
        if rules.repeats {
            let told = json!({"error": "invalid_client", "error_description": form});
            return answer(400, &told);
        }
        let renewed = field(form, "grant_type").as_deref() == Some("refresh_token");
        let scope = match field(form, "code") {
            Some(code) => self.codes.remove(&code),
            None => field(form, "scope").or(Some(String::new())),
        };
        let Some(scope) = scope else { return answer(400, &json!({"error": "invalid_grant"})) };
        self.given += 1;
        let token = format!("{CANARY}-token-{}", self.given);
        let scope = if rules.stingy { String::new() } else { scope };
        self.good.insert(token.clone(), scope);
        let mut given = json!({"access_token": token, "token_type": "Bearer",
            "id_token": format!("{CANARY}-id")});
        if let Some(lasts) = rules.lasts {
            given["expires_in"] = json!(if renewed { 3600 } else { lasts });
        }
        if rules.renewable {
            let renewal = format!("{CANARY}-renewal-{}", self.given);
            // Each can be used once.
            if let Some(used) = field(form, "refresh_token")
                && !self.closed.insert(used)
            {
                return answer(400, &json!({"error": "invalid_grant"}));
            }
            given["refresh_token"] = json!(renewal);
        }
        answer(200, &given)
    }
}

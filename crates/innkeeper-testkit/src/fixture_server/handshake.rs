//! Handshakes of the fixture server in both protocol eras.

use serde_json::{Map, Value, json};

use super::message::{self, Request, Response, error_code, meta_key};
use super::server::FixtureServer;

/// The protocol version without a handshake.
const MODERN_REVISION: &str = "2026-07-28";

/// The protocol versions with a handshake, the newest last.
const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Exit code of `--exit-on-discover`.
pub(super) const DISCOVER_EXIT_CODE: u8 = 1;

#[derive(Debug, Default)]
pub(super) struct ClientState {
    /// Whether the server has received a discover request.
    pub(super) discover_seen: bool,
    /// Whether the server has responded to `initialize` with a result.
    pub(super) initialized: bool,
}

impl FixtureServer {
    /// Returns the error for a request of the wrong protocol era.
    pub(super) fn reject_wrong_era(&self, request: &Request) -> Option<Response> {
        let method = request.method.as_str();
        let era = self.era();
        if method == "initialize" {
            let poisoned = self.switches.is_set("--poison") && self.client.discover_seen;
            return (era == "modern" || poisoned)
                .then(|| self.unsupported_version(request.param("protocolVersion")));
        }
        if method == "server/discover" {
            return (era == "legacy").then(|| {
                Response::error(error_code::METHOD_NOT_FOUND, "unknown method `server/discover`")
            });
        }
        if era != "legacy" && request.is_modern() {
            let requested =
                request.meta(meta_key::VERSION).and_then(Value::as_str).unwrap_or_default();
            if requested != self.modern_revision() {
                return Some(self.unsupported_version(requested));
            }
            return request.meta(meta_key::CAPABILITIES).is_none().then(|| {
                Response::error(
                    error_code::INVALID_PARAMS,
                    "`_meta` lacks the client's capabilities",
                )
            });
        }
        if era == "modern" {
            let message = format!("`_meta` lacks `{}`", meta_key::VERSION);
            return Some(Response::error(error_code::INVALID_PARAMS, message));
        }
        let early = !self.client.initialized && method != "ping";
        early
            .then(|| Response::error(error_code::INVALID_REQUEST, "the session is not initialized"))
    }

    pub(super) fn discover(&self) -> Response {
        if let Some(code) = self.switches.number("--discover-error") {
            return Response::error(code, "discovery failed as asked");
        }
        let mut result = json!({
            "supportedVersions": [self.modern_revision()],
            "capabilities": self.capabilities(),
        });
        self.add_instructions(&mut result);
        Response::Result(result)
    }

    pub(super) fn initialize(&mut self, request: &Request) -> Response {
        if let Some(code) = self.switches.number("--init-error") {
            return Response::error(
                code,
                self.switches.error_text("initialization failed as asked"),
            );
        }
        self.client.initialized = true;
        if self.switches.is_set("--wrong-init") {
            return Response::Result(json!({
                "protocolVersion": 20_251_125, "capabilities": [], "serverInfo": "fx",
            }));
        }
        let requested = request.param("protocolVersion");
        let revision =
            self.switches.value("--revision").unwrap_or(if LEGACY_REVISIONS.contains(&requested) {
                requested
            } else {
                LEGACY_REVISIONS[LEGACY_REVISIONS.len() - 1]
            });
        let mut result = json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
        });
        self.add_instructions(&mut result);
        if self.switches.is_set("--init-twice") {
            self.respond(request, Response::Result(result.clone()));
        }
        Response::Result(result)
    }

    pub(super) fn on_initialized(&mut self) {
        if self.switches.is_set("--ping-client") {
            for _ in 0..self.switches.count("--ping-count").max(1) {
                let id = self.open.pending.next_id();
                let text = message::request(&id, "ping", &json!({}));
                self.stdout.write_line(text.as_bytes());
            }
        }
    }

    /// The `serverInfo` of the server.
    pub(super) fn server_info(&self) -> Value {
        let name = self.switches.value("--server-name").unwrap_or(self.switches.server_name());
        json!({"name": name, "version": env!("CARGO_PKG_VERSION")})
    }

    fn era(&self) -> &str {
        self.switches.value("--era").unwrap_or("legacy")
    }

    fn modern_revision(&self) -> &str {
        match self.switches.value("--revision") {
            Some(revision) if self.era() == "modern" => revision,
            _ => MODERN_REVISION,
        }
    }

    fn unsupported_version(&self, requested: &str) -> Response {
        Response::Error {
            code: error_code::UNSUPPORTED_VERSION,
            message: "unsupported protocol version".to_owned(),
            data: Some(json!({"supported": [self.modern_revision()], "requested": requested})),
        }
    }

    fn add_instructions(&self, result: &mut Value) {
        if let Some(text) = self.switches.value("--instructions") {
            result["instructions"] = json!(text);
        }
    }

    fn capabilities(&self) -> Value {
        let switches = &self.switches;
        let changes = switches.is_set("--list-changed") || switches.is_set("--relist-loop");
        let list = if changes { json!({"listChanged": true}) } else { json!({}) };
        let mut capabilities = Map::new();
        capabilities.insert("tools".to_owned(), list.clone());
        if !switches.is_set("--no-prompts") {
            capabilities.insert("prompts".to_owned(), list.clone());
        }
        if !switches.is_set("--no-resources") {
            let mut resources = list;
            if switches.is_set("--touch") {
                resources["subscribe"] = json!(true);
            }
            capabilities.insert("resources".to_owned(), resources);
        }
        if switches.is_set("--log-flood") {
            capabilities.insert("logging".to_owned(), json!({}));
        }
        if switches.is_set("--completions") {
            capabilities.insert("completions".to_owned(), json!({}));
        }
        self.declare_tasks(&mut capabilities);
        Value::Object(capabilities)
    }
}

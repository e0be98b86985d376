//! How the fixture server introduces itself, in both eras.

use serde_json::{Map, Value, json};

use super::message::{self, Answer, Request, code, meta};
use super::server::Server;

/// The revision without a handshake.
const MODERN: &str = "2026-07-28";

/// The revisions with a handshake, newest last.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Exit code of `--exit-on-discover`.
pub(super) const FRIGHTENED: u8 = 1;

/// What is known of the client.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Whether a discover request has been received, answered or not.
    pub(super) discover_seen: bool,
    /// Whether `initialize` has been answered with a result.
    pub(super) initialized: bool,
}

impl Server {
    /// The error for a request that does not belong to the era this server speaks.
    pub(super) fn refuse_era(&self, request: &Request) -> Option<Answer> {
        let method = request.method.as_str();
        let era = self.era();
        if method == "initialize" {
            let poisoned = self.switches.on("--poison") && self.session.discover_seen;
            return (era == "modern" || poisoned)
                .then(|| self.unsupported(request.param("protocolVersion")));
        }
        if method == "server/discover" {
            return (era == "legacy").then(|| {
                Answer::error(code::METHOD_NOT_FOUND, "unknown method `server/discover`")
            });
        }
        if era != "legacy" && request.is_modern() {
            let asked = request.meta(meta::VERSION).and_then(Value::as_str).unwrap_or_default();
            if asked != self.modern_revision() {
                return Some(self.unsupported(asked));
            }
            return request.meta(meta::CAPABILITIES).is_none().then(|| {
                Answer::error(code::INVALID_PARAMS, "`_meta` lacks the client's capabilities")
            });
        }
        if era == "modern" {
            let message = format!("`_meta` lacks `{}`", meta::VERSION);
            return Some(Answer::error(code::INVALID_PARAMS, message));
        }
        let early = !self.session.initialized && method != "ping";
        early.then(|| Answer::error(code::INVALID_REQUEST, "the session is not initialized"))
    }

    pub(super) fn discover(&self) -> Answer {
        if let Some(code) = self.switches.number("--discover-error") {
            return Answer::error(code, "discovery failed as asked");
        }
        let mut result = json!({
            "supportedVersions": [self.modern_revision()],
            "capabilities": self.capabilities(),
        });
        self.add_instructions(&mut result);
        Answer::Result(result)
    }

    pub(super) fn initialize(&mut self, request: &Request) -> Answer {
        if let Some(code) = self.switches.number("--init-error") {
            return Answer::error(code, "initialization failed as asked");
        }
        self.session.initialized = true;
        if self.switches.on("--wrong-init") {
            return Answer::Result(json!({
                "protocolVersion": 20_251_125, "capabilities": [], "serverInfo": "fx",
            }));
        }
        let asked = request.param("protocolVersion");
        let revision = self.switches.text("--revision").unwrap_or(if LEGACY.contains(&asked) {
            asked
        } else {
            LEGACY[LEGACY.len() - 1]
        });
        let mut result = json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
        });
        self.add_instructions(&mut result);
        if self.switches.on("--init-twice") {
            self.respond(request, Answer::Result(result.clone()));
        }
        Answer::Result(result)
    }

    pub(super) fn initialized(&mut self) {
        if self.switches.on("--ping-client") {
            for _ in 0..self.switches.count("--ping-count").max(1) {
                let id = self.asks.next_id();
                let text = message::request(&id, "ping", &json!({}));
                self.wire.line(text.as_bytes());
            }
        }
    }

    /// Who this server says it is.
    pub(super) fn server_info(&self) -> Value {
        let name = self.switches.text("--server-name").unwrap_or(self.switches.server());
        json!({"name": name, "version": env!("CARGO_PKG_VERSION")})
    }

    fn era(&self) -> &str {
        self.switches.text("--era").unwrap_or("legacy")
    }

    fn modern_revision(&self) -> &str {
        match self.switches.text("--revision") {
            Some(revision) if self.era() == "modern" => revision,
            _ => MODERN,
        }
    }

    fn unsupported(&self, asked: &str) -> Answer {
        Answer::Error {
            code: code::UNSUPPORTED_VERSION,
            message: "unsupported protocol version".to_owned(),
            data: Some(json!({"supported": [self.modern_revision()], "requested": asked})),
        }
    }

    fn add_instructions(&self, result: &mut Value) {
        if let Some(text) = self.switches.text("--instructions") {
            result["instructions"] = json!(text);
        }
    }

    fn capabilities(&self) -> Value {
        let switches = &self.switches;
        let changes = switches.on("--list-changed") || switches.on("--relist-loop");
        let list = if changes { json!({"listChanged": true}) } else { json!({}) };
        let mut capabilities = Map::new();
        capabilities.insert("tools".to_owned(), list.clone());
        if !switches.on("--no-prompts") {
            capabilities.insert("prompts".to_owned(), list.clone());
        }
        if !switches.on("--no-resources") {
            let mut resources = list;
            if switches.on("--touch") {
                resources["subscribe"] = json!(true);
            }
            capabilities.insert("resources".to_owned(), resources);
        }
        if switches.on("--log-flood") {
            capabilities.insert("logging".to_owned(), json!({}));
        }
        self.declare_tasks(&mut capabilities);
        Value::Object(capabilities)
    }
}

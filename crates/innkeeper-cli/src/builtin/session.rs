//! One client's conversation with a server, in either era: requests in, results out, no I/O.

#[cfg(test)]
mod tests;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::modern::{
    META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, META_SERVER_INFO,
};
use innkeeper_protocol::{Era, Revision, method};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::service::{Object, Produced, Service};

/// How long a list that never changes may be kept, in milliseconds: one hour.
const FIXED_TTL_MS: u64 = 3_600_000;

/// Why a request gets an error and no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// A service and what its client has said so far.
#[derive(Debug)]
pub(super) struct Session<S> {
    service: S,
    /// What `initialize` settled; a client of the modern era never sends it.
    settled: Option<Revision>,
}

impl<S: Service> Session<S> {
    pub(super) fn new(service: S) -> Self {
        Self { service, settled: None }
    }

    /// Whether a batch is allowed now.
    pub(super) fn allows_batches(&self) -> bool {
        self.settled.is_some_and(Revision::allows_batches)
    }

    /// Answers one request.
    ///
    /// Each request tells its era by itself: one that carries a protocol version in `_meta` is
    /// modern, every other one is legacy.
    pub(super) fn answer(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, Refusal> {
        let params: Object = match params {
            None => Object::new(),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|_| Refusal::params("`params` must be an object"))?,
        };
        let era = self.era(method, &params)?;
        let mut result = match (era, method) {
            (Era::Legacy, method::INITIALIZE) => self.initialize(&params)?,
            (Era::Legacy, method::PING) => Object::new(),
            (Era::Modern, method::SERVER_DISCOVER) => self.discover(),
            _ => self.ask(era, method, params)?,
        };
        if era == Era::Modern {
            self.finish(method, &mut result);
        }
        Ok(result.into())
    }

    fn era(&self, method: &str, params: &Object) -> Result<Era, Refusal> {
        let meta = params.get("_meta");
        let Some(version) = meta.and_then(|meta| meta.get(META_PROTOCOL_VERSION)) else {
            let opens = matches!(method, method::INITIALIZE | method::PING);
            return if opens || self.settled.is_some() {
                Ok(Era::Legacy)
            } else {
                let text = format!("`_meta` has no `{META_PROTOCOL_VERSION}`");
                Err(Refusal::params(text + ", and `initialize` was not sent before"))
            };
        };
        if *version != Revision::LATEST.as_str() {
            return Err(Refusal {
                code: code::UNSUPPORTED_PROTOCOL_VERSION,
                message: format!("protocol version {version} is not supported"),
                data: Some(json!({ "supported": [Revision::LATEST], "requested": version })),
            });
        }
        match meta.and_then(|meta| meta.get(META_CLIENT_CAPABILITIES)) {
            Some(Value::Object(_)) => Ok(Era::Modern),
            _ => Err(Refusal::params(format!("`_meta` has no `{META_CLIENT_CAPABILITIES}`"))),
        }
    }

    fn initialize(&mut self, params: &Object) -> Result<Object, Refusal> {
        let wanted = text(params, "protocolVersion")?.parse::<Revision>().ok();
        let settled = wanted
            .filter(|revision| revision.era() == Era::Legacy)
            .unwrap_or(Revision::LATEST_LEGACY);
        self.settled = Some(settled);
        Ok(members(json!({
            "protocolVersion": settled,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
            "instructions": self.service.identity().instructions,
        })))
    }

    fn discover(&self) -> Object {
        members(json!({
            "supportedVersions": [Revision::LATEST],
            "capabilities": self.capabilities(),
            "instructions": self.service.identity().instructions,
        }))
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = members(json!({ "tools": {}, "resources": {} }));
        if !self.service.prompts().is_empty() {
            capabilities.insert("prompts".to_owned(), json!({}));
        }
        capabilities.into()
    }

    fn server_info(&self) -> Value {
        let identity = self.service.identity();
        json!({
            "name": identity.name,
            "title": identity.title,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// Answers what both eras can ask.
    fn ask(&mut self, era: Era, method: &str, params: Object) -> Result<Object, Refusal> {
        let prompts = !self.service.prompts().is_empty();
        match method {
            method::TOOLS_LIST => list("tools", Ok(self.service.tools()), &params),
            method::TOOLS_CALL => self.call(params),
            method::RESOURCES_LIST => list("resources", self.service.resources(), &params),
            method::RESOURCES_TEMPLATES_LIST => {
                list("resourceTemplates", Ok(self.service.resource_templates()), &params)
            }
            method::RESOURCES_READ => self.read(era, &params),
            method::PROMPTS_LIST if prompts => list("prompts", Ok(self.service.prompts()), &params),
            method::PROMPTS_GET if prompts => self.prompt(params),
            _ => {
                let message = format!("there is no method {method:?}");
                Err(Refusal::new(code::METHOD_NOT_FOUND, message))
            }
        }
    }

    fn call(&mut self, mut params: Object) -> Result<Object, Refusal> {
        let name = text(&params, "name")?.to_owned();
        let arguments = taken(&mut params)?;
        let Some(outcome) = self.service.call(&name, arguments) else {
            return Err(Refusal::params(format!("there is no tool {name:?}")));
        };
        Ok(members(match outcome {
            Ok(Produced { text, structured }) => json!({
                "content": [{ "type": "text", "text": text }],
                "structuredContent": structured,
                "isError": false,
            }),
            Err(complaint) => json!({
                "content": [{ "type": "text", "text": complaint }],
                "isError": true,
            }),
        }))
    }

    fn read(&mut self, era: Era, params: &Object) -> Result<Object, Refusal> {
        let uri = text(params, "uri")?;
        match self.service.read(uri) {
            Some(Ok(contents)) => Ok(members(json!({ "contents": contents }))),
            Some(Err(complaint)) => Err(Refusal::new(code::INTERNAL_ERROR, complaint)),
            None => Err(Refusal {
                code: match era {
                    Era::Legacy => code::RESOURCE_NOT_FOUND,
                    Era::Modern => code::INVALID_PARAMS,
                },
                message: "there is no such resource".to_owned(),
                data: Some(json!({ "uri": uri })),
            }),
        }
    }

    fn prompt(&mut self, mut params: Object) -> Result<Object, Refusal> {
        let name = text(&params, "name")?.to_owned();
        let arguments = taken(&mut params)?;
        match self.service.prompt(&name, arguments) {
            Some(Ok(prompt)) => Ok(members(prompt)),
            Some(Err(complaint)) => Err(Refusal::params(complaint)),
            None => Err(Refusal::params(format!("there is no prompt {name:?}"))),
        }
    }

    /// Adds what every result of the modern era carries.
    fn finish(&self, method: &str, result: &mut Object) {
        let cached = match method {
            method::SERVER_DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_TEMPLATES_LIST => Some((FIXED_TTL_MS, "public")),
            method::RESOURCES_LIST | method::RESOURCES_READ => Some((0, "private")),
            _ => None,
        };
        if let Some((ttl, scope)) = cached {
            result.insert("ttlMs".to_owned(), ttl.into());
            result.insert("cacheScope".to_owned(), scope.into());
        }
        result.insert("resultType".to_owned(), "complete".into());
        result.insert("_meta".to_owned(), json!({ META_SERVER_INFO: self.server_info() }));
    }
}

/// A list in one page; no cursor was ever given out, so none is valid.
fn list(
    member: &str,
    items: Result<Vec<Value>, String>,
    params: &Object,
) -> Result<Object, Refusal> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Refusal::params("the cursor is not known"));
    }
    let items = items.map_err(|complaint| Refusal::new(code::INTERNAL_ERROR, complaint))?;
    Ok(members(json!({ member: items })))
}

fn text<'a>(params: &'a Object, key: &str) -> Result<&'a str, Refusal> {
    let found = params.get(key).and_then(Value::as_str);
    found.ok_or_else(|| Refusal::params(format!("`{key}` must be a string")))
}

fn taken(params: &mut Object) -> Result<Object, Refusal> {
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(Refusal::params("`arguments` must be an object")),
    }
}

fn members(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

//! The protocol session of a built-in server, in both eras, without I/O.

#[cfg(test)]
mod tests;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::request_meta::{
    META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, META_SERVER_INFO,
};
use innkeeper_protocol::{Era, Revision, method};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::service::{JsonObject, Service, ToolOutput};

/// TTL of lists, in milliseconds: one hour, because the lists never change.
const LIST_TTL_MS: u64 = 3_600_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonRpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl JsonRpcError {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// A service with the state of its session.
#[derive(Debug)]
pub(super) struct Session<S> {
    service: S,
    /// The revision from `initialize`; a modern client never sends `initialize`.
    negotiated_revision: Option<Revision>,
}

impl<S: Service> Session<S> {
    pub(super) fn new(service: S) -> Self {
        Self { service, negotiated_revision: None }
    }

    /// Whether the negotiated revision allows batches.
    pub(super) fn allows_batches(&self) -> bool {
        self.negotiated_revision.is_some_and(Revision::allows_batches)
    }

    /// Handles one request.
    ///
    /// Each request shows its era: a request with a protocol version in `_meta` is modern, any
    /// other request is legacy.
    pub(super) fn handle_request(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, JsonRpcError> {
        let params: JsonObject = match params {
            None => JsonObject::new(),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|_| JsonRpcError::invalid_params("`params` must be an object"))?,
        };
        let era = self.request_era(method, &params)?;
        let mut result = match (era, method) {
            (Era::Legacy, method::INITIALIZE) => self.initialize(&params)?,
            (Era::Legacy, method::PING) => JsonObject::new(),
            (Era::Modern, method::SERVER_DISCOVER) => self.discover(),
            _ => self.handle_common_method(era, method, params)?,
        };
        if era == Era::Modern {
            self.add_modern_fields(method, &mut result);
        }
        Ok(result.into())
    }

    fn request_era(&self, method: &str, params: &JsonObject) -> Result<Era, JsonRpcError> {
        let meta = params.get("_meta");
        let Some(version) = meta.and_then(|meta| meta.get(META_PROTOCOL_VERSION)) else {
            let opens = matches!(method, method::INITIALIZE | method::PING);
            return if opens || self.negotiated_revision.is_some() {
                Ok(Era::Legacy)
            } else {
                let text = format!("`_meta` has no `{META_PROTOCOL_VERSION}`");
                Err(JsonRpcError::invalid_params(text + ", and `initialize` was not sent before"))
            };
        };
        if *version != Revision::LATEST.as_str() {
            return Err(JsonRpcError {
                code: code::UNSUPPORTED_PROTOCOL_VERSION,
                message: format!("protocol version {version} is not supported"),
                data: Some(json!({ "supported": [Revision::LATEST], "requested": version })),
            });
        }
        match meta.and_then(|meta| meta.get(META_CLIENT_CAPABILITIES)) {
            Some(Value::Object(_)) => Ok(Era::Modern),
            _ => Err(JsonRpcError::invalid_params(format!(
                "`_meta` has no `{META_CLIENT_CAPABILITIES}`"
            ))),
        }
    }

    fn initialize(&mut self, params: &JsonObject) -> Result<JsonObject, JsonRpcError> {
        let requested = string_param(params, "protocolVersion")?.parse::<Revision>().ok();
        let settled = requested
            .filter(|revision| revision.era() == Era::Legacy)
            .unwrap_or(Revision::LATEST_LEGACY);
        self.negotiated_revision = Some(settled);
        Ok(into_object(json!({
            "protocolVersion": settled,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
            "instructions": self.service.identity().instructions,
        })))
    }

    fn discover(&self) -> JsonObject {
        into_object(json!({
            "supportedVersions": [Revision::LATEST],
            "capabilities": self.capabilities(),
            "instructions": self.service.identity().instructions,
        }))
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = into_object(json!({ "tools": {}, "resources": {} }));
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

    /// Handles the methods that both eras have.
    fn handle_common_method(
        &mut self,
        era: Era,
        method: &str,
        params: JsonObject,
    ) -> Result<JsonObject, JsonRpcError> {
        let prompts = !self.service.prompts().is_empty();
        match method {
            method::TOOLS_LIST => list_result("tools", Ok(self.service.tools()), &params),
            method::TOOLS_CALL => self.call_tool(params),
            method::RESOURCES_LIST => list_result("resources", self.service.resources(), &params),
            method::RESOURCES_TEMPLATES_LIST => {
                list_result("resourceTemplates", Ok(self.service.resource_templates()), &params)
            }
            method::RESOURCES_READ => self.read_resource(era, &params),
            method::PROMPTS_LIST if prompts => {
                list_result("prompts", Ok(self.service.prompts()), &params)
            }
            method::PROMPTS_GET if prompts => self.get_prompt(params),
            _ => {
                let message = format!("unknown method {method:?}");
                Err(JsonRpcError::new(code::METHOD_NOT_FOUND, message))
            }
        }
    }

    fn call_tool(&mut self, mut params: JsonObject) -> Result<JsonObject, JsonRpcError> {
        let name = string_param(&params, "name")?.to_owned();
        let arguments = take_arguments(&mut params)?;
        let Some(outcome) = self.service.call_tool(&name, arguments) else {
            return Err(JsonRpcError::invalid_params(format!("unknown tool {name:?}")));
        };
        Ok(into_object(match outcome {
            Ok(ToolOutput { text, structured }) => json!({
                "content": [{ "type": "text", "text": text }],
                "structuredContent": structured,
                "isError": false,
            }),
            Err(message) => json!({
                "content": [{ "type": "text", "text": message }],
                "isError": true,
            }),
        }))
    }

    fn read_resource(&mut self, era: Era, params: &JsonObject) -> Result<JsonObject, JsonRpcError> {
        let uri = string_param(params, "uri")?;
        match self.service.read_resource(uri) {
            Some(Ok(contents)) => Ok(into_object(json!({ "contents": contents }))),
            Some(Err(failure)) => Err(JsonRpcError::new(code::INTERNAL_ERROR, failure)),
            None => Err(JsonRpcError {
                code: match era {
                    Era::Legacy => code::RESOURCE_NOT_FOUND,
                    Era::Modern => code::INVALID_PARAMS,
                },
                message: "unknown resource".to_owned(),
                data: Some(json!({ "uri": uri })),
            }),
        }
    }

    fn get_prompt(&mut self, mut params: JsonObject) -> Result<JsonObject, JsonRpcError> {
        let name = string_param(&params, "name")?.to_owned();
        let arguments = take_arguments(&mut params)?;
        match self.service.get_prompt(&name, arguments) {
            Some(Ok(prompt)) => Ok(into_object(prompt)),
            Some(Err(message)) => Err(JsonRpcError::invalid_params(message)),
            None => Err(JsonRpcError::invalid_params(format!("unknown prompt {name:?}"))),
        }
    }

    /// Adds the fields that every modern result has.
    fn add_modern_fields(&self, method: &str, result: &mut JsonObject) {
        let cached = match method {
            method::SERVER_DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_TEMPLATES_LIST => Some((LIST_TTL_MS, "public")),
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

/// Returns a list as one page; every cursor is invalid because no page has a next cursor.
fn list_result(
    member: &str,
    items: Result<Vec<Value>, String>,
    params: &JsonObject,
) -> Result<JsonObject, JsonRpcError> {
    if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(JsonRpcError::invalid_params("invalid cursor"));
    }
    let items = items.map_err(|message| JsonRpcError::new(code::INTERNAL_ERROR, message))?;
    Ok(into_object(json!({ member: items })))
}

fn string_param<'a>(params: &'a JsonObject, key: &str) -> Result<&'a str, JsonRpcError> {
    let value = params.get(key).and_then(Value::as_str);
    value.ok_or_else(|| JsonRpcError::invalid_params(format!("`{key}` must be a string")))
}

fn take_arguments(params: &mut JsonObject) -> Result<JsonObject, JsonRpcError> {
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(JsonObject::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(_) => Err(JsonRpcError::invalid_params("`arguments` must be an object")),
    }
}

fn into_object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

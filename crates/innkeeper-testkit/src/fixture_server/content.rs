//! Content of single prompts and resources.

use serde_json::{Value, json};

use super::message::{Request, Response, error_code};
use super::server::FixtureServer;

impl FixtureServer {
    pub(super) fn get_prompt(&self, request: &Request) -> Response {
        let name = request.param("name");
        if !self.catalog.prompts.iter().any(|prompt| prompt["name"] == name) {
            return Response::error(error_code::INVALID_PARAMS, format!("unknown prompt `{name}`"));
        }
        if let Some(result) = self.switches.json("--prompt-result") {
            return Response::Result(result);
        }
        let server = self.switches.server_name();
        let arguments = request.params.get("arguments");
        let argument = |key: &str| arguments.and_then(|all| all.get(key)).and_then(Value::as_str);
        let text = match (name, argument("name")) {
            ("greet", None) => {
                return Response::error(error_code::INVALID_PARAMS, "argument `name` is missing");
            }
            ("greet", Some(person)) => match argument("style") {
                Some(style) => format!("{server}: greet {person}, {style}"),
                None => format!("{server}: greet {person}"),
            },
            _ => format!("{server}: {name}"),
        };
        Response::Result(json!({
            "description": format!("The prompt {name} of {server}."),
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        }))
    }

    pub(super) fn read_resource(&mut self, request: &Request) -> Response {
        let uri = request.param("uri").to_owned();
        let server = self.switches.server_name().to_owned();
        let item = uri.strip_prefix(&format!("fx://{server}/item/")).map(str::to_owned);
        let is_listed = self.catalog.resources.iter().any(|resource| resource["uri"] == *uri);
        if self.switches.is_set("--no-resources") || !(is_listed || item.is_some()) {
            let missing = if request.is_modern() {
                error_code::INVALID_PARAMS
            } else {
                error_code::RESOURCE_NOT_FOUND
            };
            return Response::Error {
                code: missing,
                message: "resource not found".to_owned(),
                data: Some(json!({"uri": uri})),
            };
        }
        self.open.calls.resource_reads += 1;
        if let Some(result) = self.switches.json("--read-result") {
            return Response::Result(result);
        }
        let text = match item {
            Some(id) => format!("{server}: item {id}"),
            None => format!("{server}: {uri}, reading {}", self.open.calls.resource_reads),
        };
        Response::Result(json!({
            "contents": [{"uri": uri, "mimeType": "text/plain", "text": text}],
        }))
    }
}

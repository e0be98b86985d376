//! Prompts and resources as asked for one by one.

use serde_json::{Value, json};

use super::message::{Answer, Request, code};
use super::server::Server;

impl Server {
    pub(super) fn get_prompt(&self, request: &Request) -> Answer {
        let name = request.param("name");
        if !self.catalog.prompts.iter().any(|prompt| prompt["name"] == name) {
            return Answer::error(code::INVALID_PARAMS, format!("unknown prompt `{name}`"));
        }
        let server = self.switches.server();
        let arguments = request.params.get("arguments");
        let argument = |key: &str| arguments.and_then(|all| all.get(key)).and_then(Value::as_str);
        let text = match (name, argument("name")) {
            ("greet", None) => {
                return Answer::error(code::INVALID_PARAMS, "argument `name` is missing");
            }
            ("greet", Some(who)) => match argument("style") {
                Some(style) => format!("{server}: greet {who}, {style}"),
                None => format!("{server}: greet {who}"),
            },
            _ => format!("{server}: {name}"),
        };
        Answer::Result(json!({
            "description": format!("The prompt {name} of {server}."),
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        }))
    }

    pub(super) fn read_resource(&mut self, request: &Request) -> Answer {
        let uri = request.param("uri").to_owned();
        let server = self.switches.server().to_owned();
        let item = uri.strip_prefix(&format!("fx://{server}/item/")).map(str::to_owned);
        let listed = self.catalog.resources.iter().any(|resource| resource["uri"] == *uri);
        if self.switches.on("--no-resources") || !(listed || item.is_some()) {
            let missing =
                if request.is_modern() { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
            return Answer::Error {
                code: missing,
                message: "resource not found".to_owned(),
                data: Some(json!({"uri": uri})),
            };
        }
        self.calls.reads += 1;
        let text = match item {
            Some(id) => format!("{server}: item {id}"),
            None => format!("{server}: {uri}, reading {}", self.calls.reads),
        };
        Answer::Result(json!({
            "contents": [{"uri": uri, "mimeType": "text/plain", "text": text}],
        }))
    }
}

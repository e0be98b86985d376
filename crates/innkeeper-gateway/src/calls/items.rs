//! `prompts/get`, `resources/read` and `completion/complete`.

use std::sync::Arc;

use innkeeper_host::{CallError, CompletionReference};
use innkeeper_protocol::{Era, skim};
use serde_json::{Map, Value, json};

use super::Calls;
use super::forwarding::CallTarget;
use crate::error::RpcError;
use crate::json_text::{cacheable_result, complete_result};
use crate::offering::OfferedServer;
use crate::offers::Need;
use crate::request::{ClientRequest, Reply};

impl Calls {
    pub(crate) async fn get_prompt(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let name = request.string_param("name")?;
        let offering = self.offers.offering_for(request.caller, Need::Prompt(&name)).await?;
        let Some(prompt) = offering.prompt(&name) else {
            let unknown = RpcError::unknown_item("prompt", &name);
            let need = Need::Prompt(&name);
            return Err(self.offers.missing_item(request.caller, &offering, need, unknown));
        };
        let arguments = match request.param("arguments") {
            None | Some("null") => Map::new(),
            Some(arguments) => serde_json::from_str(arguments)
                .map_err(|_| RpcError::invalid_params("`params/arguments` must be an object"))?,
        };
        let digest_of = request.raw_param("arguments");
        let target = CallTarget {
            server: &prompt.server,
            item: &name,
            digest_of,
            task: None,
            may_repeat: true,
        };
        let host = prompt.server.upstream.host.clone();
        let host_name: Box<str> = prompt.names.prefixed().into();
        let result = self
            .forward(request, target, move |options| async move {
                host.get_prompt(&host_name, &arguments, options).await
            })
            .await;
        let result = result.map_err(|error| RpcError::from_call_error(error, &name))??;
        Ok(complete_result(result, request.caller.era()))
    }

    pub(crate) async fn read_resource(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let uri = request.string_param("uri")?;
        if let Some(reply) = self.large_results.read(request.caller, &uri) {
            return reply;
        }
        let offering = self.offers.offering_for(request.caller, Need::Resource(&uri)).await?;
        let Some(server) = offering.resource_server(&uri) else {
            let unknown = unknown_resource(request, &uri);
            let need = Need::Resource(&uri);
            return Err(self.offers.missing_item(request.caller, &offering, need, unknown));
        };
        let target =
            CallTarget { server, item: &uri, digest_of: None, task: None, may_repeat: true };
        let host = server.upstream.host.clone();
        let name = server.name.clone();
        let address = uri.clone();
        let result = self
            .forward(request, target, move |options| async move {
                host.read_resource(&address, Some(&name), options).await
            })
            .await;
        let result = result.map_err(|error| match error {
            CallError::Routing(_) => unknown_resource(request, &uri),
            error => RpcError::from_call_error(error, &uri),
        })??;
        let is_for_all = self.offers.endpoints.are_same_for_all();
        Ok(cacheable_result(result, request.caller.era(), is_for_all))
    }

    pub(crate) async fn complete(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let invalid =
            |place: &str| RpcError::invalid_params(format!("`params/{place}` is invalid"));
        let read = |key: &str| -> Result<Value, RpcError> {
            let value = request.param(key).ok_or_else(|| invalid(key))?;
            serde_json::from_str(value).map_err(|_| invalid(key))
        };
        let reference = read("ref")?;
        let argument = read("argument")?;
        let name = text_member(&argument, "name").ok_or_else(|| invalid("argument/name"))?;
        let value = text_member(&argument, "value").ok_or_else(|| invalid("argument/value"))?;
        let context =
            request.param("context").and_then(|context| skim::member(context, "arguments"));
        let context: Map<String, Value> = match context {
            None => Map::new(),
            Some(context) => {
                serde_json::from_str(context).map_err(|_| invalid("context/arguments"))?
            }
        };
        let name_of =
            |key: &str| text_member(&reference, key).ok_or_else(|| invalid(&format!("ref/{key}")));
        let referred = match text_member(&reference, "type").as_deref() {
            Some("ref/prompt") => Referred::Prompt(name_of("name")?),
            Some("ref/resource") => Referred::Resource(name_of("uri")?),
            _ => return Err(invalid("ref/type")),
        };
        let offering = self.offers.offering_for(request.caller, referred.need()).await?;
        let missing = |need, kind, name: &str| {
            let unknown = RpcError::unknown_item(kind, name);
            self.offers.missing_item(request.caller, &offering, need, unknown)
        };
        let (server, item, is_prompt): (&Arc<OfferedServer>, Box<str>, bool) = match referred {
            Referred::Prompt(name) => {
                let prompt = offering
                    .prompt(&name)
                    .ok_or_else(|| missing(Need::Prompt(&name), "prompt", &name))?;
                (&prompt.server, prompt.names.prefixed().into(), true)
            }
            Referred::Resource(uri) => {
                let server = offering.template_server(&uri);
                let server = server
                    .or_else(|| offering.resource_server(&uri))
                    .ok_or_else(|| missing(Need::Resource(&uri), "resource template", &uri))?;
                (server, uri.into(), false)
            }
        };
        let shown = item.clone();
        let target =
            CallTarget { server, item: &shown, digest_of: None, task: None, may_repeat: true };
        let host = server.upstream.host.clone();
        let server_name = server.name.clone();
        let result = self
            .forward(request, target, move |options| async move {
                let reference = if is_prompt {
                    CompletionReference::Prompt(&item)
                } else {
                    CompletionReference::Template { uri: &item, server: &server_name }
                };
                host.complete(reference, &name, &value, &context, options).await
            })
            .await;
        let result = result.map_err(|error| RpcError::from_call_error(error, &shown))??;
        Ok(complete_result(result, request.caller.era()))
    }
}

fn text_member(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(ToOwned::to_owned)
}

/// What a completion is for.
enum Referred {
    /// The name of a prompt.
    Prompt(String),
    /// The URI of a resource or a template.
    Resource(String),
}

impl Referred {
    fn need(&self) -> Need<'_> {
        match self {
            Self::Prompt(name) => Need::Prompt(name),
            Self::Resource(uri) => Need::Resource(uri),
        }
    }
}

/// Returns the error of a resource that no server has: the code changed in 2026-07-28.
fn unknown_resource(request: &ClientRequest<'_>, uri: &str) -> RpcError {
    let code = match request.caller.era() {
        Era::Legacy => innkeeper_protocol::envelope::code::RESOURCE_NOT_FOUND,
        Era::Modern => innkeeper_protocol::envelope::code::INVALID_PARAMS,
    };
    let message = format!("unknown resource `{}`", innkeeper_host::display_safe(uri));
    let data = serde_json::value::to_raw_value(&json!({ "uri": uri })).ok();
    RpcError { data, ..RpcError::new(code, message) }
}

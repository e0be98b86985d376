//! `tools/call`, `prompts/get`, `resources/read` and `completion/complete`.

use std::sync::Arc;

use http::HeaderValue;
use innkeeper_host::{Arguments, CallError, CallOptions, CompletionReference};
use innkeeper_protocol::{Era, Revision, skim};
use serde_json::{Map, Value, json};

use super::client_tasks::TaskCall;
use super::forwarding::{CallTarget, cacheable_result, complete_result};
use super::gateway_tools::text_result;
use super::{ClientRequest, Reply};
use crate::call_monitor::{CallInFlight, CallSubject};
use crate::error::{ErrorKind, RpcError, shown_name};
use crate::gateway::GatewayInner;
use crate::gateway_tools::GatewayTool;
use crate::offering::{NamedItem, OfferedServer};
use crate::offers::{CallerOffering, Need};

impl GatewayInner {
    pub(super) async fn call_tool(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let name = request.string_param("name")?;
        let options = self.endpoints.options(request.caller.endpoint);
        match GatewayTool::find(options, &name) {
            // In a box: a nested call makes the future large.
            Some(tool) => Box::pin(self.call_gateway_tool(request, tool)).await,
            None => {
                let offering = self.offers.offering_for(request.caller, Need::Tool(&name)).await?;
                self.call_offered_tool(request, &offering, &name).await
            }
        }
    }

    /// Calls a tool of a server.
    pub(super) async fn call_offered_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        offering: &CallerOffering,
        name: &str,
    ) -> Reply {
        let principal = &request.caller.principal;
        let Some(tool) = self.offers.permitted_tool(principal, offering, name) else {
            let unknown = RpcError::unknown_item("tool", name);
            let error =
                self.offers.missing_item(request.caller, offering, Need::Tool(name), unknown);
            if error.kind == ErrorKind::UnknownItem {
                self.audit_log.record_refused_tool(principal, name);
            }
            return Err(error);
        };
        if let Some(headers) = request.param_headers {
            let header = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
            let checked = tool.param_headers.check_call(request.params.raw(), header);
            checked.map_err(|mismatch| RpcError::new(mismatch.code(), mismatch.to_string()))?;
        }
        let questions = self.approval_of(tool);
        if let Some(questions) = questions
            && let Some(reply) =
                Box::pin(self.continue_wait(request, questions, (tool, name))).await
        {
            return reply;
        }
        self.rate_limits.count_call(principal, &tool.names).map_err(|exceeded| {
            let text = format!("call of `{}`: {exceeded}", shown_name(name));
            self.audit_log.record("rate", Some(principal), &text);
            RpcError::from_rate(exceeded)
        })?;
        match questions {
            Some(questions) => {
                Box::pin(self.call_after_approval(request, questions, (tool, name))).await
            }
            None => self.run_tool(request, tool, name).await,
        }
    }

    /// Runs a call that the client may make.
    pub(super) async fn run_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        name: &str,
    ) -> Reply {
        let monitored = self.call_monitor.start(CallSubject {
            principal: request.caller.principal.clone(),
            server: tool.server.name.clone(),
            tool: name.into(),
            transport: request.caller.transport,
        });
        let call = monitored.call().clone();
        // In a box: each caller of the future would have room for it.
        monitored.run(Box::pin(self.forward_call(request, (tool, name), call))).await
    }

    async fn forward_call(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        (tool, name): (&NamedItem, &str),
        in_flight: Arc<CallInFlight>,
    ) -> Reply {
        let arguments = request.raw_param("arguments");
        let target = CallTarget {
            server: &tool.server,
            item: name,
            digest_of: arguments,
            task: None,
            may_repeat: tool.may_repeat,
        };
        let host = tool.server.upstream.host.clone();
        let host_name: Box<str> = tool.names.prefixed().into();
        let task_call = self.task_call(request, tool)?;
        let call = {
            let arguments = arguments.map(ToOwned::to_owned);
            let task_call = task_call.as_ref().map(TaskCall::for_host);
            let in_flight = in_flight.clone();
            move |options: CallOptions| async move {
                let arguments = arguments.map_or(Arguments::from(json!({})), Arguments::from);
                let result = match task_call {
                    // In a box: each call would have room for the future.
                    Some(call) => Box::pin(call.call(&host_name, arguments, options)).await?,
                    None => host.call_tool_with(&host_name, arguments, options).await?,
                };
                in_flight.record_result(&result);
                Ok(result.into_raw())
            }
        };
        let revision = request.caller.identity.revision;
        let result = match self.forward(request, target, call).await {
            // A model can correct its arguments only if it sees the problem.
            Err(error @ CallError::Validation { .. }) if revision >= Revision::V2025_11_25 => {
                in_flight.record_tool_error();
                text_result(&[error.to_string()], true)
            }
            Err(error) => return Err(RpcError::from_call_error(error, name)),
            Ok(result) => {
                let result = result?;
                let task = task_call
                    .and_then(|call| self.created_task(request.caller, name, call, &result));
                match task {
                    Some(task) => return task,
                    None => self.store_large_result(request.caller, name, result),
                }
            }
        };
        Ok(complete_result(result, request.caller.era()))
    }

    pub(super) async fn get_prompt(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
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
        let call = move |options: CallOptions| async move {
            host.get_prompt(&host_name, &arguments, options).await
        };
        let result = self.forward(request, target, call).await;
        let result = result.map_err(|error| RpcError::from_call_error(error, &name))??;
        Ok(complete_result(result, request.caller.era()))
    }

    pub(super) async fn read_resource(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let uri = request.string_param("uri")?;
        if let Some(reply) = self.read_stored_result(request, &uri) {
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
        let (host, name, address) =
            (server.upstream.host.clone(), server.name.clone(), uri.clone());
        let call = move |options: CallOptions| async move {
            host.read_resource(&address, Some(&name), options).await
        };
        let result = self.forward(request, target, call).await;
        let result = result.map_err(|error| match error {
            CallError::Routing(_) => unknown_resource(request, &uri),
            error => RpcError::from_call_error(error, &uri),
        })??;
        let is_for_all = self.endpoints.are_same_for_all();
        Ok(cacheable_result(result, request.caller.era(), is_for_all))
    }

    pub(super) async fn complete(self: &Arc<Self>, request: &ClientRequest<'_>) -> Reply {
        let invalid =
            |place: &str| RpcError::invalid_params(format!("`params/{place}` is invalid"));
        let read = |key: &str| -> Result<Value, RpcError> {
            let value = request.param(key).ok_or_else(|| invalid(key))?;
            serde_json::from_str(value).map_err(|_| invalid(key))
        };
        let (reference, argument) = (read("ref")?, read("argument")?);
        let text = |value: &Value, key: &str| value.get(key)?.as_str().map(ToOwned::to_owned);
        let name = text(&argument, "name").ok_or_else(|| invalid("argument/name"))?;
        let value = text(&argument, "value").ok_or_else(|| invalid("argument/value"))?;
        let context =
            request.param("context").and_then(|context| skim::member(context, "arguments"));
        let context: Map<String, Value> = match context {
            None => Map::new(),
            Some(context) => {
                serde_json::from_str(context).map_err(|_| invalid("context/arguments"))?
            }
        };
        let name_of =
            |key: &str| text(&reference, key).ok_or_else(|| invalid(&format!("ref/{key}")));
        let referred = match text(&reference, "type").as_deref() {
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
        let (host, server_name) = (server.upstream.host.clone(), server.name.clone());
        let call = move |options: CallOptions| async move {
            let reference = if is_prompt {
                CompletionReference::Prompt(&item)
            } else {
                CompletionReference::Template { uri: &item, server: &server_name }
            };
            host.complete(reference, (&name, &value), &context, options).await
        };
        let result = self.forward(request, target, call).await;
        let result = result.map_err(|error| RpcError::from_call_error(error, &shown))??;
        Ok(complete_result(result, request.caller.era()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarded_call_has_no_room_for_the_futures_of_tasks() {
        type Request = ClientRequest<'static>;

        fn future_bytes<F>(
            _call: impl Fn(
                &'static Arc<GatewayInner>,
                &'static Request,
                &'static NamedItem,
                Arc<CallInFlight>,
            ) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let bytes = future_bytes(|gateway, request, tool, in_flight| {
            gateway.forward_call(request, (tool, "echo"), in_flight)
        });
        assert!(bytes <= 4_700, "{bytes} bytes");
    }
}

//! Calls of the gateway's own tools: the search for tools.

use std::sync::Arc;

use innkeeper_protocol::{RequestParams, skim};
use innkeeper_toolcall::search_tools::{DescribeArguments, SearchArguments};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Calls;
use crate::error::{RpcError, shown_name};
use crate::gateway_tools::{GatewayTool, ToolOutput, invalid_arguments, parse, text_result};
use crate::json_text::complete_result;
use crate::offering::Offering;
use crate::offers::Need;
use crate::request::{ClientRequest, Reply};

/// The arguments of `call_tool`.
#[derive(Deserialize)]
struct CallArguments<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Calls {
    pub(super) async fn call_gateway_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        tool: GatewayTool,
    ) -> Reply {
        let arguments = request.param("arguments").unwrap_or("{}");
        if tool == GatewayTool::CallTool {
            return self.call_found_tool(request, arguments).await;
        }
        // A call of a found tool counts as a call of that tool only.
        let counted = self.rate_limits.count_call(&request.caller.principal, &tool.names());
        counted.map_err(RpcError::from_rate)?;
        let output = match tool {
            GatewayTool::SearchTools | GatewayTool::DescribeTools => {
                let offering = self.offers.offering(request.caller).await?.offering;
                match tool {
                    GatewayTool::SearchTools => {
                        self.search_tools(request, &offering, arguments).await
                    }
                    _ => self.describe_tools(request, &offering, arguments),
                }
            }
            GatewayTool::CallTool
            | GatewayTool::ReadResult
            | GatewayTool::SearchResult
            | GatewayTool::SelectResult => {
                self.large_results.query(request.caller, tool, arguments).await
            }
        };
        let result = match output {
            Ok(texts) => text_result(&texts, false),
            Err(message) => text_result(&[message], true),
        };
        Ok(complete_result(result, request.caller.era()))
    }

    /// Calls a tool of the endpoint as if the client had called it by its name.
    async fn call_found_tool(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        arguments: &str,
    ) -> Reply {
        let call: CallArguments<'_> = match parse(GatewayTool::CallTool, arguments) {
            Ok(call) => call,
            Err(message) => return Ok(tool_error(request, &message)),
        };
        let principal = &request.caller.principal;
        let offering = self.offers.offering_for(request.caller, Need::Tool(&call.name)).await?;
        if self.offers.permitted_tool(principal, &offering, &call.name).is_none() {
            let message = offering.not_started.first().map_or_else(
                || self.unknown_tool(request, &offering, &call.name),
                |error| error.message.clone(),
            );
            return Ok(tool_error(request, &message));
        }
        let params = called_params(request.params.raw(), &call);
        let params = RequestParams::from_raw(Some(&params))?;
        let called = ClientRequest {
            id: request.id,
            method: request.method,
            params: &params,
            meta: request.meta.clone(),
            caller: request.caller,
            sink: request.sink,
            param_headers: None,
        };
        self.call_offered_tool(&called, &offering, &call.name).await
    }

    /// Returns the error of a name that no tool has for the client, with similar names.
    fn unknown_tool(&self, request: &ClientRequest<'_>, offering: &Offering, name: &str) -> String {
        let options = self.offers.endpoints.options(request.caller.endpoint);
        let shown = shown_name(name);
        if GatewayTool::find(options, name).is_some() {
            return format!("`{shown}` is a tool of the gateway: call it by its name");
        }
        let principal = &request.caller.principal;
        let search = offering.search.as_ref();
        let similar = search
            .map(|search| {
                search.similar_names(name, |tool| {
                    self.offers.permitted_tool(principal, offering, tool).is_some()
                })
            })
            .unwrap_or_default();
        let hint = if similar.is_empty() {
            "find tools with `search_tools`".to_owned()
        } else {
            let similar: Vec<String> = similar.iter().map(|name| format!("`{name}`")).collect();
            format!("similar names: {}", similar.join(", "))
        };
        format!("unknown tool `{shown}`; {hint}")
    }

    async fn search_tools(
        &self,
        request: &ClientRequest<'_>,
        offering: &Arc<Offering>,
        arguments: &str,
    ) -> ToolOutput {
        let arguments = SearchArguments::parse(arguments)
            .map_err(|error| invalid_arguments(GatewayTool::SearchTools, &error))?;
        let principal = &request.caller.principal;
        let Some(search) = &offering.search else { return Err(no_search()) };
        let permitted = search
            .permitted(|tool| self.offers.permitted_tool(principal, offering, tool).is_some());
        let offering = offering.clone();
        let found = self
            .large_results
            .computations
            .run(principal, move || Some(offering.search.as_ref()?.search(&arguments, permitted)))
            .await
            .map_err(|error| error.to_string())?;
        found.map(|text| vec![text]).ok_or_else(no_search)
    }

    fn describe_tools(
        &self,
        request: &ClientRequest<'_>,
        offering: &Offering,
        arguments: &str,
    ) -> ToolOutput {
        let arguments = DescribeArguments::parse(arguments)
            .map_err(|error| invalid_arguments(GatewayTool::DescribeTools, &error))?;
        let principal = &request.caller.principal;
        let search = offering.search.as_ref().ok_or_else(no_search)?;
        let (text, is_error) = search.describe(&arguments.names(), |tool| {
            self.offers.permitted_tool(principal, offering, tool).is_some()
        });
        if is_error { Err(text) } else { Ok(vec![text]) }
    }
}

/// The error of an offering without a search; the offering of an endpoint with the tool has one.
fn no_search() -> String {
    "the endpoint has no search".to_owned()
}

/// Returns the parameters of the request with the name and the arguments of the called tool, and every
/// other member as it is.
fn called_params(params: Option<&RawValue>, call: &CallArguments<'_>) -> Box<RawValue> {
    let params = params.map_or("{}", RawValue::get);
    let name = Value::from(call.name.as_str()).to_string();
    let named = skim::replace_member(params, "name", &name);
    let text = match call.arguments {
        Some(arguments) => skim::replace_member(&named, "arguments", arguments.get()),
        None => skim::remove_member(&named, "arguments"),
    };
    RawValue::from_string(text).unwrap_or_default()
}

fn tool_error(request: &ClientRequest<'_>, message: &str) -> Box<RawValue> {
    complete_result(text_result(&[message.to_owned()], true), request.caller.era())
}

//! The steps of one call: resolve, validate, send, scan, record.

mod arguments;
mod completion;
mod contents;
mod options;
mod raw_request;
mod round_trip_mode;
mod subscription;
mod task_mode;
mod tool_result;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::check_tool_result;
use innkeeper_protocol::{Era, JsonText, method, write_member};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::audit::AuditEvent;
use crate::cache::FetchedResult;
use crate::catalog::{Catalog, ToolRoute};
use crate::connection::meta::Meta;
use crate::connection::pass_through::PassThrough;
use crate::connection::result_type::ResultType;
use crate::connection::round_trips::RoundTripParams;
use crate::connection::{Connection, RequestSpec, ResultRejection};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{CallError, Violation};
use crate::event::CallOutcome;
use crate::guard::{Finding, ItemKind, Scanner, Verdict};
use crate::session::RequestError;

pub use arguments::Arguments;
pub use completion::CompletionReference;
pub(crate) use completion::complete;
pub(crate) use contents::{get_prompt, read_resource};
pub use options::CallOptions;
pub(crate) use raw_request::{notify, request};
pub use round_trip_mode::RoundTripMode;
pub(crate) use subscription::subscribe;
pub use task_mode::TaskMode;
pub use tool_result::{StructuredContentError, ToolResult};

/// The parameters of `tools/call` and `prompts/get`.
struct ItemParams<'a, T> {
    name: &'a str,
    arguments: Option<&'a T>,
    meta: Option<Meta<'a>>,
    responses: Option<Arc<RawValue>>,
    state: Option<Arc<RawValue>>,
    task: Option<TaskParam<'a>>,
}

impl<T: JsonText> JsonText for ItemParams<'_, T> {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(b"{\"name\":");
        self.name.write_json(out)?;
        write_optional(out, "arguments", self.arguments)?;
        write_optional(out, "_meta", self.meta.as_ref())?;
        write_optional(out, "inputResponses", self.responses.as_ref())?;
        write_optional(out, "requestState", self.state.as_ref())?;
        write_optional(out, "task", self.task.as_ref())?;
        out.push(b'}');
        Ok(())
    }
}

fn write_optional(
    out: &mut Vec<u8>,
    name: &str,
    value: Option<&impl JsonText>,
) -> Result<(), serde_json::Error> {
    value.map_or(Ok(()), |value| write_member(out, name, value))
}

/// The `task` parameter of a call that runs as a task.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum TaskParam<'a> {
    Host(TaskMetadata),
    Application(&'a RawValue),
}

/// The `task` parameter of the host.
#[derive(Clone, Copy, Serialize)]
struct TaskMetadata {
    /// The requested lifetime of the task in milliseconds: the maximum duration of the call.
    ttl: u64,
}

impl TaskMetadata {
    fn new(max_duration: Duration) -> Self {
        // `MAX_REQUEST_TIMEOUT` is a year, so the milliseconds fit into a `u64`.
        Self {
            ttl: u64::try_from(max_duration.min(MAX_REQUEST_TIMEOUT).as_millis())
                .unwrap_or_default(),
        }
    }
}

/// Calls a tool by its public name.
pub(crate) async fn call_tool(
    catalog: &Catalog,
    name: &str,
    arguments: &Arguments,
    options: CallOptions,
) -> Result<ToolResult, CallError> {
    let route = catalog.tool(name).inspect_err(|_| {
        if let Some((server, tool, reason)) = catalog.excluded_tool(name) {
            AuditEvent::ToolRefused { tool, reason }.emit(server);
        }
    })?;
    let values = read_arguments(route, arguments)?;
    let connection = &*route.connection;
    let meta = options.caller_meta(&connection.negotiated.client_meta, &route.public_name)?;
    let scanner = route.scanner.as_ref();
    let verdict = scanner.and_then(|scanner| scanner.scan_arguments(&values));
    if let Some(findings) = connection.report_findings(ItemKind::Tool, &route.name, verdict) {
        let problems = findings.iter().map(argument_problem).collect();
        return Err(CallError::Validation { item: route.public_name.clone(), problems });
    }
    let timeout = options.timeout.unwrap_or(route.timeout);
    let sent = arguments.to_send(&values);
    let task = match &options.task {
        TaskMode::Await => route.as_task.then(|| {
            TaskParam::Host(TaskMetadata::new(connection.limits.max_total_timeout.max(timeout)))
        }),
        TaskMode::PassThrough { params } if connection.negotiated.revision.era() == Era::Legacy => {
            params.as_deref().map(TaskParam::Application)
        }
        // A server of the modern era decides itself.
        TaskMode::PassThrough { .. } => None,
    };
    let params = |id, RoundTripParams { responses, state, trace_context }: RoundTripParams| {
        ItemParams {
            name: &route.name,
            arguments: Some(&sent),
            // Progress extends the deadline, so the host requests progress even if the caller
            // does not listen.
            meta: connection.negotiated.client_meta.meta_with_trace(Some(id), trace_context, &meta),
            responses,
            state,
            task,
        }
    };
    let headers = sent.headers(&route.param_headers);
    let caller = options.caller(&route.public_name)?;
    let spec = RequestSpec {
        method: method::TOOLS_CALL.into(),
        item: &route.name,
        name: Some(&route.name),
        params,
        headers: &headers,
        timeout,
        progress: options.progress.as_ref(),
        retries: options.retries,
        retry_safe: route.retry_safe,
        as_task: task.is_some(),
        callback: options.callback.as_ref(),
        caller: caller.as_ref(),
        pass_through: options.pass_through_of_tool(),
        task_id: None,
    };
    let mut is_error = false;
    let report = |verdict| connection.report_findings(ItemKind::Tool, &route.name, verdict);
    let mut result_type = ResultType::Complete;
    // An error response can also contain text for a model.
    let response = connection
        .request_scanned(
            &spec,
            |raw, kind| {
                result_type = kind;
                if kind == ResultType::Complete {
                    is_error = check_tool_result(raw)?;
                }
                match report(scanner.and_then(|scanner| scanner.scan_result(raw))) {
                    Some(findings) => Err(ResultRejection::Withheld(findings)),
                    None if is_error => Ok(CallOutcome::ToolError),
                    None => Ok(CallOutcome::Ok),
                }
            },
            |error| report(scanner.and_then(|scanner| scan_request_error(scanner, error))),
        )
        .await;
    let FetchedResult { result: raw, .. } =
        response.map_err(|error| error.with_called_name(&route.public_name))?;
    let is_checkable = result_type == ResultType::Complete && !is_error;
    let output_schema = route.result_schema.clone().filter(|_| is_checkable);
    Ok(ToolResult { raw, is_error, result_type, output_schema })
}

/// Reads the arguments and checks them against the rules and the schema of the tool.
fn read_arguments<'a>(
    route: &ToolRoute,
    arguments: &'a Arguments,
) -> Result<Cow<'a, Value>, CallError> {
    let invalid = |problems| CallError::Validation { item: route.public_name.clone(), problems };
    let values = arguments
        .values()
        .map_err(|problem| invalid(vec![route.argument_rules.unreadable(problem)]))?;
    let problems = if let Some(violation) = route.argument_rules.check(&values) {
        if let Some(rule) = &violation.rule {
            let server = &*route.connection.server;
            let tool = &*route.name;
            AuditEvent::ArgumentsRefused { tool, rule }.emit(server);
        }
        vec![violation.problem]
    } else if values.is_object() {
        let problems = route.argument_schema.check(&values);
        if let Some(reason) = route.argument_schema.first_unusable_reason() {
            let server = &*route.connection.server;
            let tool = &*route.name;
            tracing::warn!(server, tool, reason, "unusable input schema");
        }
        problems
    } else {
        // The protocol requires an object, whatever the schema allows.
        let message = "expected object: tool arguments are named".to_owned();
        vec![Violation { pointer: String::new(), message }]
    };
    if !problems.is_empty() {
        return Err(invalid(problems));
    }
    Ok(values)
}

/// Converts a finding of the guard into a problem of an argument.
fn argument_problem(finding: &Finding) -> Violation {
    let pointer = finding.place.strip_prefix("arguments ").unwrap_or_default().to_owned();
    let message = format!("{}; set `guard.arguments` to `flag` to allow", finding.reason);
    Violation { pointer, message }
}

/// Scans the server's text in an error response or a protocol error.
fn scan_request_error(scanner: &Scanner, request_error: &RequestError) -> Option<Verdict> {
    match request_error {
        RequestError::ErrorResponse(error) => {
            scanner.scan_error(&error.message, error.data.as_deref())
        }
        RequestError::Protocol(protocol_error) => {
            let source = std::error::Error::source(protocol_error);
            let source = source.map(ToString::to_string).unwrap_or_default();
            scanner.scan_error(&format!("{protocol_error}\n{source}"), None)
        }
        RequestError::TooLarge { .. }
        | RequestError::Unavailable { .. }
        | RequestError::Timeout => None,
    }
}

/// Sends a request that is safe to retry and has only these parameters.
async fn request_with_params(
    connection: &Connection,
    method: &'static str,
    item: &str,
    params: Value,
    timeout: Duration,
    options: &CallOptions,
) -> Result<Box<RawValue>, CallError> {
    #[derive(Serialize)]
    struct ParamsWithMeta<'a> {
        #[serde(flatten)]
        params: &'a Value,
        #[serde(flatten)]
        further: RoundTripParams,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Meta<'a>>,
    }
    let caller_meta = options.caller_meta(&connection.negotiated.client_meta, item)?;
    let meta = |id, further: &RoundTripParams| {
        connection.negotiated.client_meta.meta_with_trace(
            options.progress_token(id),
            further.trace_context.clone(),
            &caller_meta,
        )
    };
    let caller = options.caller(item)?;
    let spec = RequestSpec {
        method: method.into(),
        item,
        name: Some(item),
        params: |id, further| ParamsWithMeta { params: &params, meta: meta(id, &further), further },
        headers: &[],
        timeout: options.timeout.unwrap_or(timeout),
        progress: options.progress.as_ref(),
        retries: options.retries,
        retry_safe: true,
        as_task: false,
        callback: options.callback.as_ref(),
        caller: caller.as_ref(),
        pass_through: PassThrough::default(),
        task_id: None,
    };
    let FetchedResult { result, .. } =
        connection.request(&spec, |_, _| Ok(CallOutcome::Ok)).await?;
    Ok(result)
}

#[cfg(test)]
mod tests;

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

use crate::connection::TaskUse;
use crate::session::HeaderValues;
use std::borrow::Cow;
use std::time::Duration;

use innkeeper_protocol::view::check_tool_result;
use innkeeper_protocol::{Era, method};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::audit::AuditEvent;
use crate::cache::FetchedResult;
use crate::catalog::{Catalog, ToolRoute};
use crate::connection::pass_through::PassThrough;
use crate::connection::result_type::ResultType;
use crate::connection::{
    Connection, Member, RequestMeta, RequestOptions, RequestParams, RequestSpec, ResultRejection,
};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{CallError, Violation};
use crate::event::CallOutcome;
use crate::guard::{Finding, ItemKind, Scanner, Verdict};
use crate::session::RequestError;

pub use arguments::Arguments;
pub use completion::CompletionReference;
pub(crate) use completion::complete;
pub(crate) use contents::{get_prompt, read_resource};
pub use options::{CallOptions, RemoteClient};
pub(crate) use raw_request::{notify, request};
pub use round_trip_mode::RoundTripMode;
pub(crate) use subscription::subscribe;
pub use task_mode::TaskMode;
pub use tool_result::{StructuredContentError, ToolResult};

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
        TaskMode::Await => route.hints.as_task.then(|| {
            TaskParam::Host(TaskMetadata::new(connection.limits.max_total_timeout.max(timeout)))
        }),
        TaskMode::PassThrough { params } if connection.negotiated.revision.era() == Era::Legacy => {
            params.as_deref().map(TaskParam::Application)
        }
        // A server of the modern era decides itself.
        TaskMode::PassThrough { .. } => None,
    };
    let members: [Member<'_>; 3] = [("name", &route.name), ("arguments", &sent), ("task", &task)];
    let members = if task.is_some() { &members[..] } else { &members[..2] };
    let meta = RequestMeta {
        client: &connection.negotiated.client_meta,
        caller: &meta,
        // Progress extends the deadline, so the host requests it even if the caller does not listen.
        requests_progress: true,
    };
    let headers = sent.headers(&route.arguments.headers);
    let caller = options.caller(&route.public_name)?;
    let params = RequestParams::Members(members, meta);
    let spec = RequestSpec {
        headers: HeaderValues { name: Some(&route.name), arguments: &headers },
        retry_safe: route.hints.retry_safe,
        task: if task.is_some() { TaskUse::Creates } else { TaskUse::None },
        options: RequestOptions {
            pass_through: options.pass_through_of_tool(),
            ..options.for_request(caller.as_ref())
        },
        ..RequestSpec::new(method::TOOLS_CALL, &route.name, params, timeout)
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
    let values = arguments.values().map_err(|problem| CallError::Validation {
        item: route.public_name.clone(),
        problems: vec![route.arguments.rules.unreadable(problem)],
    })?;
    let problems = if let Some(violation) = route.arguments.rules.check(&values) {
        if let Some(rule) = &violation.rule {
            let server = &*route.connection.server;
            let tool = &*route.name;
            AuditEvent::ArgumentsRefused { tool, rule }.emit(server);
        }
        vec![violation.problem]
    } else if values.is_object() {
        let problems = route.arguments.schema.check(&values);
        if let Some(reason) = route.arguments.schema.first_unusable_reason() {
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
        return Err(CallError::Validation { item: route.public_name.clone(), problems });
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
    members: &[Member<'_>],
    timeout: Duration,
    options: &CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let client_meta = &connection.negotiated.client_meta;
    let caller_meta = options.caller_meta(client_meta, item)?;
    let caller = options.caller(item)?;
    let meta = options.meta_for_request(client_meta, &caller_meta);
    let params = RequestParams::Members(members, meta);
    let spec = RequestSpec {
        options: RequestOptions {
            pass_through: PassThrough::default(),
            ..options.for_request(caller.as_ref())
        },
        ..RequestSpec::new(method, item, params, options.timeout.unwrap_or(timeout))
    };
    let FetchedResult { result, .. } =
        connection.request(&spec, |_, _| Ok(CallOutcome::Ok)).await?;
    Ok(result)
}

#[cfg(test)]
mod tests;

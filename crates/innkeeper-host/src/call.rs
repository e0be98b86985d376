//! The steps of one call: resolve, validate, send, scan, record.

mod arguments;
mod contents;
mod raw_request;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::check_tool_result;
use innkeeper_protocol::{Era, ViewError, method, skim};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::audit::AuditEvent;
use crate::cache::FetchedResult;
use crate::callback::Callback;
use crate::catalog::Catalog;
use crate::connection::meta::{CallerMeta, ClientMeta, Meta};
use crate::connection::round_trips::RoundTripParams;
use crate::connection::subscriptions::{MAX_SUBSCRIPTIONS, SubscribeOutcome};
use crate::connection::{Connection, RequestSpec, ResultRejection};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{CallError, Violation};
use crate::event::CallOutcome;
use crate::guard::{Finding, ItemKind, Scanner, Verdict};
use crate::schema::ResultSchema;
use crate::session::{Progress, RequestError};

pub use arguments::Arguments;
pub(crate) use contents::{get_prompt, read_resource};
pub(crate) use raw_request::{notify, request};

/// Options of one call that override the configuration.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The maximum time without a response or progress. Default: the tool's time in
    /// `tools.timeouts`, else the server's `timeout`. Progress, and a request of the server to the
    /// application, restart the timeout, up to the server's `maxTotalTimeout`.
    pub timeout: Option<Duration>,
    /// The channel for progress notifications, in the order of the server. The host drops a
    /// notification when the channel is full. Without a channel the host does no work for progress.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The maximum number of retries when the request is lost, at most 10. Use 0 for a caller that
    /// repeats calls itself. Default: the server's `retry.max`.
    pub retries: Option<u32>,
    /// Whether the host requests a prompt or resource although a cached result exists. The new
    /// result replaces the cached result, and the call returns no stale result when the server is
    /// unavailable. Default: `false`. Results of tools are never cached.
    pub fresh: bool,
    /// The callback for requests of the server that belong to this call, in place of the host's
    /// callback. Default: `None`.
    ///
    /// Requests whose call is [`Unknown`](crate::CallReference::Unknown) go to the host's callback.
    /// The host's callbacks declare the capabilities, so the host rejects a request without a
    /// callback of the host. The end of the call drops the callback's running futures, and the
    /// server receives an error. The cache does not store a result after a request to this
    /// callback.
    pub callback: Option<Arc<dyn Callback>>,
    /// Members that the host adds to the `_meta` of the request, byte for byte: an object of at
    /// most 64 KiB without members that the host writes itself, for example `progressToken`. A
    /// prompt or resource with own members is always requested, as with [`Self::fresh`]. Default:
    /// none.
    pub meta: Option<Box<RawValue>>,
}

/// Maximum size in bytes of the `_meta` members of a caller: many trace contexts fit.
const MAX_META_BYTES: usize = 64 << 10;

impl CallOptions {
    /// Returns the progress token, if the caller listens for progress.
    fn progress_token(&self, id: u64) -> Option<u64> {
        self.progress.as_ref().map(|_| id)
    }

    /// Returns whether the call needs a result of its own.
    fn bypasses_cache(&self) -> bool {
        self.fresh || self.meta.is_some()
    }

    /// Returns the `_meta` members of the caller for a request with these members of the host.
    fn caller_meta(&self, client_meta: &ClientMeta, item: &str) -> Result<CallerMeta, CallError> {
        let Some(meta) = &self.meta else { return Ok(CallerMeta::default()) };
        let invalid = |pointer: &str, message: String| {
            let violation = Violation::new(format!("/_meta{pointer}"), message);
            CallError::Validation { item: item.into(), problems: vec![violation] }
        };
        if meta.get().len() > MAX_META_BYTES {
            return Err(invalid("", format!("longer than {MAX_META_BYTES} bytes")));
        }
        let values = arguments::parse_unique(meta)
            .map_err(|violation| invalid(&violation.pointer, violation.message))?;
        if !values.is_object() {
            return Err(invalid("", "expected object".to_owned()));
        }
        let members = CallerMeta::from_object(meta)
            .map_err(|error| invalid("", format!("expected object: {error}")))?;
        if let Some(key) = members.keys().find(|key| client_meta.contains(key)) {
            return Err(invalid("", format!("`{key}` is set by the host")));
        }
        Ok(members)
    }
}

/// The result of a tool call, exactly as the server sent it.
#[derive(Clone, Debug)]
pub struct ToolResult {
    raw: Box<RawValue>,
    is_error: bool,
    /// The `outputSchema` of the tool, if the tool has one.
    output_schema: Option<Arc<ResultSchema>>,
}

impl ToolResult {
    /// Returns the result object, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Returns the result object as an owned value.
    pub fn into_raw(self) -> Box<RawValue> {
        self.raw
    }

    /// Returns whether the tool itself reports a failure (`isError`). Such a failure is input for
    /// the model, not an error of the host.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns the first violation of the tool's `outputSchema` in the structured content. The
    /// pointer is relative to that content.
    ///
    /// Returns `None` without a check for a tool without `outputSchema`, for a failed tool, for
    /// content of more than 256 KiB, and for a schema that the host cannot use.
    ///
    /// The check runs here and not during the call because the check parses the content as values,
    /// and a hostile schema can make the check take about a second.
    pub fn output_schema_violation(&self) -> Option<Violation> {
        self.output_schema.as_ref()?.check(&self.raw)
    }

    /// Returns the structured content of the result as a value of the application.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has no `structuredContent`, or if its JSON does not have the
    /// shape of `T`.
    pub fn structured_content<T: DeserializeOwned>(&self) -> Result<T, StructuredContentError> {
        let content = skim::member(self.raw.get(), "structuredContent");
        Ok(serde_json::from_str(content.ok_or(StructuredContentError::Missing)?)?)
    }

    /// Returns the typed view of the result.
    ///
    /// # Errors
    ///
    /// Returns an error if the result does not have the shape of a tool result in a part that the
    /// call did not check.
    pub fn view(&self) -> Result<innkeeper_protocol::view::ToolResult, ViewError> {
        innkeeper_protocol::view::ToolResult::from_raw(&self.raw)
    }
}

/// The reason why a result has no structured content of the requested type.
#[derive(Debug, thiserror::Error)]
pub enum StructuredContentError {
    /// The result has only content for a model or a person.
    #[error("the result has no `structuredContent`")]
    Missing,
    /// The JSON does not have the shape of the type.
    #[error("`structuredContent` does not have the expected shape")]
    Shape(#[from] serde_json::Error),
}

impl Serialize for ToolResult {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

#[derive(Serialize)]
struct ItemParams<'a, T> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a T>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    responses: Option<Arc<RawValue>>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    state: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskMetadata>,
}

/// The `task` parameter of a call that runs as a task.
#[derive(Serialize)]
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
    let invalid = |problems| CallError::Validation { item: route.public_name.clone(), problems };
    let values = arguments.values().map_err(|violation| invalid(vec![violation]))?;
    let problems = if let Some(violation) = route.argument_rules.check(&values) {
        if let Some(rule) = &violation.rule {
            let (server, tool) = (&*route.connection.server, &*route.name);
            AuditEvent::ArgumentsRefused { tool, rule }.emit(server);
        }
        vec![violation.problem]
    } else if values.is_object() {
        route.argument_schema.check(&values)
    } else {
        // The protocol requires an object, whatever the schema allows.
        let message = "expected object: tool arguments are named".to_owned();
        vec![Violation { pointer: String::new(), message }]
    };
    if !problems.is_empty() {
        return Err(invalid(problems));
    }
    let connection = &*route.connection;
    let meta = options.caller_meta(&connection.negotiated.client_meta, &route.public_name)?;
    let scanner = route.scanner.as_ref();
    let verdict = scanner.and_then(|scanner| scanner.scan_arguments(&values));
    if let Some(findings) = connection.report_findings(ItemKind::Tool, &route.name, verdict) {
        return Err(invalid(findings.iter().map(argument_problem).collect()));
    }
    let timeout = options.timeout.unwrap_or(route.timeout);
    let sent = arguments.to_send(&values);
    let params = |id, RoundTripParams { responses, state, trace_context }: RoundTripParams| {
        ItemParams {
            name: &route.name,
            arguments: Some(&sent),
            // Progress extends the deadline, so the host requests progress even if the caller
            // does not listen.
            meta: connection.negotiated.client_meta.meta_with_trace(Some(id), trace_context, &meta),
            responses,
            state,
            task: route
                .as_task
                .then(|| TaskMetadata::new(connection.limits.max_total_timeout.max(timeout))),
        }
    };
    let headers = sent.headers(&route.param_headers);
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
        as_task: route.as_task,
        callback: options.callback.as_ref(),
    };
    let mut is_error = false;
    let report = |verdict| connection.report_findings(ItemKind::Tool, &route.name, verdict);
    let check_result = |raw: &RawValue| {
        is_error = check_tool_result(raw)?;
        match report(scanner.and_then(|scanner| scanner.scan_result(raw))) {
            Some(findings) => Err(ResultRejection::Withheld(findings)),
            None if is_error => Ok(CallOutcome::ToolError),
            None => Ok(CallOutcome::Ok),
        }
    };
    // An error response can also contain text for a model.
    let check_error = |error: &RequestError| {
        report(scanner.and_then(|scanner| scan_request_error(scanner, error)))
    };
    let response = connection.request_scanned(&spec, check_result, check_error).await;
    let FetchedResult { result: raw, .. } =
        response.map_err(|error| error.with_called_name(&route.public_name))?;
    let output_schema = route.result_schema.clone().filter(|_| !is_error);
    Ok(ToolResult { raw, is_error, output_schema })
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

/// The prompt or resource template of an argument to complete (MCP `ref`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionReference<'a> {
    /// The prompt with this public name.
    Prompt(&'a str),
    /// A resource template, as its server lists the template.
    Template {
        /// The URI template.
        uri: &'a str,
        /// The name of the server that lists the template.
        server: &'a str,
    },
}

/// Requests completions for an argument.
pub(crate) async fn complete(
    catalog: &Catalog,
    target: CompletionReference<'_>,
    argument: (&str, &str),
    context_arguments: &Map<String, Value>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let prompt;
    let template;
    let (connection, item, reference, timeout) = match target {
        CompletionReference::Prompt(name) => {
            prompt = catalog.prompt(name)?;
            let reference = json!({ "type": "ref/prompt", "name": prompt.name });
            (&*prompt.connection, &*prompt.name, reference, prompt.timeout)
        }
        CompletionReference::Template { uri, server } => {
            template = catalog.resource(uri, Some(server))?;
            let reference = json!({ "type": "ref/resource", "uri": uri });
            (&*template.connection, uri, reference, template.timeout)
        }
    };
    let (name, value) = argument;
    let mut params = json!({ "ref": reference, "argument": { "name": name, "value": value } });
    if !context_arguments.is_empty() {
        params["context"] = json!({ "arguments": context_arguments });
    }
    request_with_params(connection, method::COMPLETION_COMPLETE, item, params, timeout, &options)
        .await
}

/// Subscribes to the changes of a resource or removes the subscription.
pub(crate) async fn subscribe(
    catalog: &Catalog,
    uri: &str,
    server: Option<&str>,
    subscribed: bool,
    options: CallOptions,
) -> Result<(), CallError> {
    let route = catalog.resource(uri, server)?;
    let connection = &*route.connection;
    let outcome = connection.subscriptions.set(uri, subscribed);
    if outcome == SubscribeOutcome::TooMany {
        let message = format!("too many resource subscriptions: maximum is {MAX_SUBSCRIPTIONS}");
        let problems = vec![Violation { pointer: String::new(), message }];
        return Err(CallError::Validation { item: uri.into(), problems });
    }
    if connection.negotiated.revision.era() == Era::Modern {
        return Ok(());
    }
    let method =
        if subscribed { method::RESOURCES_SUBSCRIBE } else { method::RESOURCES_UNSUBSCRIBE };
    let result = request_with_params(
        connection,
        method,
        uri,
        json!({ "uri": uri }),
        route.timeout,
        &options,
    )
    .await;
    if result.is_err() && subscribed && outcome == SubscribeOutcome::Changed {
        connection.subscriptions.set(uri, false);
    }
    result.map(drop)
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
    };
    let FetchedResult { result, .. } = connection.request(&spec, |_| Ok(CallOutcome::Ok)).await?;
    Ok(result)
}

#[cfg(test)]
mod tests;

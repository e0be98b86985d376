//! The steps of one call: resolve, validate, send, scan, record.

mod arguments;
mod contents;
mod raw_request;
mod round_trip_mode;
mod task_mode;
mod tool_result;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::check_tool_result;
use innkeeper_protocol::{Era, JsonText, method, write_member};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::audit::AuditEvent;
use crate::cache::FetchedResult;
use crate::callback::{Callback, ClientCapabilities};
use crate::catalog::{Catalog, ToolRoute};
use crate::connection::meta::{CallerMeta, ClientMeta, Meta};
use crate::connection::pass_through::PassThrough;
use crate::connection::result_type::ResultType;
use crate::connection::round_trips::RoundTripParams;
use crate::connection::subscriptions::{MAX_SUBSCRIPTIONS, SubscribeOutcome};
use crate::connection::{Connection, RequestSpec, ResultRejection};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{CallError, Violation};
use crate::event::CallOutcome;
use crate::guard::{Finding, ItemKind, Scanner, Verdict};
use crate::session::{CallHold, CallNotification, Caller, Progress, RequestError, SendCheck};

pub use arguments::Arguments;
pub(crate) use contents::{get_prompt, read_resource};
pub(crate) use raw_request::{notify, request};
pub use round_trip_mode::RoundTripMode;
pub use task_mode::TaskMode;
pub use tool_result::{StructuredContentError, ToolResult};

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
    /// The channel for all notifications that belong to this call, progress included, in the order
    /// of the server and with the parameters as the server sent them. Default: none.
    ///
    /// [`CallReference`](crate::CallReference) says which notifications belong to a call. The host
    /// drops a notification when the channel is full, a notification of more than 64 KiB, and
    /// `notifications/cancelled`, because the host cancels the requests of the server itself.
    pub notifications: Option<mpsc::Sender<CallNotification>>,
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
    /// The remote client on whose behalf the application calls.
    ///
    /// The cache gives a result of a prompt or resource only to calls with the same principal; calls
    /// without a principal share their results in the same way. All calls share a result with
    /// `cacheScope: "public"`. A server gets no principal. Default: none.
    pub principal: Option<Arc<str>>,
    /// Whether the calls of the principal leave a part of the server's `maxConcurrent` for other
    /// principals: a call waits if the principal then had more than three times as many calls as
    /// remain free. The first call of a principal never waits for this. Default: `false`.
    ///
    /// Among principals whose calls wait, the principal with the fewest running calls is next.
    pub has_limited_share: bool,
    /// Members that the host adds to the `_meta` of the request, byte for byte: an object of at
    /// most 64 KiB without members that the host writes itself, for example `progressToken`. A
    /// prompt or resource with own members is always requested, as with [`Self::fresh`]. Default:
    /// none.
    pub meta: Option<Box<RawValue>>,
    /// How the call handles a request for input of the modern era. Default: with callbacks.
    pub round_trips: RoundTripMode,
    /// How a call of a tool handles a created task. Default: the host polls the task.
    pub task: TaskMode,
    /// The capabilities of the remote client, an object of at most 64 KiB. Default: those of the
    /// host.
    ///
    /// A request of the modern era contains these capabilities in place of those of the host. In
    /// both eras the host refuses a request of the server that belongs to the call and needs a
    /// capability, for example `elicitation.url`, that is not among them.
    pub client_capabilities: Option<Arc<RawValue>>,
    /// Decides immediately before each attempt whether the host sends the request. Default: the host
    /// sends every request.
    pub send_check: Option<Arc<dyn SendCheck>>,
    /// A value that the host holds while the server may process the call, also after a timeout or a
    /// cancellation. Default: none.
    pub hold: Option<Arc<dyn CallHold>>,
}

/// Maximum size in bytes of the `_meta` members of a caller: many trace contexts fit.
const MAX_META_BYTES: usize = 64 << 10;

impl CallOptions {
    /// Returns the progress token, if the caller listens for progress.
    fn progress_token(&self, id: u64) -> Option<u64> {
        (self.progress.is_some() || self.notifications.is_some()).then_some(id)
    }

    /// Returns the remote client, for messages of the server about the call.
    fn caller(&self, item: &str) -> Result<Option<Arc<Caller>>, CallError> {
        let notifications = self.notifications.clone();
        let capabilities = self.client_capabilities.as_deref().map(ClientCapabilities::from_raw);
        let capabilities = capabilities.transpose().map_err(|message| {
            let problems = vec![Violation::new("/clientCapabilities".to_owned(), message)];
            CallError::Validation { item: item.into(), problems }
        })?;
        let (principal, has_limited_share) = (self.principal.clone(), self.has_limited_share);
        let (send_check, hold) = (self.send_check.clone(), self.hold.clone());
        let is_needed = notifications.is_some()
            || capabilities.is_some()
            || principal.is_some()
            || send_check.is_some()
            || hold.is_some();
        let caller =
            Caller { notifications, capabilities, principal, has_limited_share, send_check, hold };
        Ok(is_needed.then(|| Arc::new(caller)))
    }

    /// Returns whether the call needs a result of its own.
    fn bypasses_cache(&self) -> bool {
        self.fresh || self.meta.is_some() || !self.pass_through().responses.is_first()
    }

    /// Returns the incomplete results that the call returns.
    fn pass_through(&self) -> PassThrough {
        match &self.round_trips {
            RoundTripMode::Callback => PassThrough::default(),
            RoundTripMode::PassThrough { input_responses, request_state } => {
                let shared = |member: &Option<Box<RawValue>>| member.clone().map(Arc::from);
                let (responses, state) = (shared(input_responses), shared(request_state));
                let responses = RoundTripParams { responses, state, trace_context: None };
                PassThrough { input_required: true, responses, ..PassThrough::default() }
            }
        }
    }

    /// Returns the incomplete results that a call of a tool returns.
    fn pass_through_of_tool(&self) -> PassThrough {
        let task = matches!(self.task, TaskMode::PassThrough { .. });
        PassThrough { task, ..self.pass_through() }
    }

    /// Returns the `_meta` members of the caller for a request with these members of the host.
    fn caller_meta(&self, client_meta: &ClientMeta, item: &str) -> Result<CallerMeta, CallError> {
        let capabilities = self.client_capabilities.clone();
        let Some(meta) = &self.meta else {
            return Ok(CallerMeta::default().with_capabilities(capabilities));
        };
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
        Ok(members.with_capabilities(capabilities))
    }
}

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
    let check_result = |raw: &RawValue, kind: ResultType| {
        result_type = kind;
        if kind == ResultType::Complete {
            is_error = check_tool_result(raw)?;
        }
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
    let unreadable = |problem| invalid(vec![route.argument_rules.unreadable(problem)]);
    let values = arguments.values().map_err(unreadable)?;
    let problems = if let Some(violation) = route.argument_rules.check(&values) {
        if let Some(rule) = &violation.rule {
            let (server, tool) = (&*route.connection.server, &*route.name);
            AuditEvent::ArgumentsRefused { tool, rule }.emit(server);
        }
        vec![violation.problem]
    } else if values.is_object() {
        let problems = route.argument_schema.check(&values);
        if let Some(reason) = route.argument_schema.first_unusable_reason() {
            let (server, tool) = (&*route.connection.server, &*route.name);
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

//! The life of one call: resolve, validate, permit, send, outcome, record.

mod contents;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::check_tool_result;
use innkeeper_protocol::{Era, ViewError, method};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::audit::Fact;
use crate::cache::Reply;
use crate::catalog::Catalog;
use crate::error::{ArgumentProblem, CallError};
use crate::event::CallOutcome;
use crate::guard::{Attention, Finding, Of, Told};
use crate::schema::ResultSchema;
use crate::server::connection::{Ask, Connection, LONGEST, Unfit};
use crate::server::meta::Meta;
use crate::server::rounds::Further;
use crate::server::session::{Fault, Progress};
use crate::server::wishes::{WISHES, Wished};

pub(crate) use contents::{prompt, resource};

/// How one call differs from the configuration.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// How long the server may go without an answer or progress. Default: its `timeout`. Progress,
    /// and the application being asked, begin it anew, up to the server's `maxTotalTimeout`.
    pub timeout: Option<Duration>,
    /// Where progress goes, in the order the server sends it. Reports that find the channel full
    /// are dropped; asking for none costs nothing.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// How often the request may be sent again when it is lost, at most 10; 0 for a caller that
    /// repeats calls itself. Default: the server's `retry.max`.
    pub retries: Option<u32>,
    /// Whether a prompt or resource is asked for although a copy is kept; what the server says is
    /// kept instead, and no old copy is given if it is away. Default: no. Results of tools are never
    /// kept.
    pub fresh: bool,
}

impl CallOptions {
    /// The token of a request whose progress the caller listens to.
    fn token(&self, id: u64) -> Option<u64> {
        self.progress.as_ref().map(|_| id)
    }
}

/// What a tool answered: the result object exactly as the server sent it.
#[derive(Clone, Debug)]
pub struct ToolResult {
    raw: Box<RawValue>,
    is_error: bool,
    /// What its tool promised of it, if anything.
    promised: Option<Arc<ResultSchema>>,
}

impl ToolResult {
    /// The result object, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The result object, to keep.
    pub fn into_raw(self) -> Box<RawValue> {
        self.raw
    }

    /// Whether the tool itself reports a failure: for the model to read, not an error of the host.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The first thing in its structured content that is not as the tool's `outputSchema` promised;
    /// the pointer leads into that content. `None` for a tool that promised nothing or failed, for
    /// content of more than 256 KiB, and for a schema that cannot be used: none of these is checked.
    ///
    /// The check is made here and not during the call: it reads the content as values, and a hostile
    /// schema can make it take about a second.
    pub fn misfit(&self) -> Option<ArgumentProblem> {
        self.promised.as_ref()?.check(&self.raw)
    }

    /// The typed view of the result.
    ///
    /// # Errors
    ///
    /// Where the result has not the shape of a tool result beyond what the call already checked.
    pub fn view(&self) -> Result<innkeeper_protocol::view::ToolResult, ViewError> {
        innkeeper_protocol::view::ToolResult::read(&self.raw)
    }
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
    task: Option<TaskWish>,
}

/// Asks a server to make a task of a call.
#[derive(Serialize)]
struct TaskWish {
    /// How long it should be kept, in milliseconds: as long as the call may take.
    ttl: u64,
}

impl TaskWish {
    fn of(most: Duration) -> Self {
        // No longer than a year, so it can always be counted.
        Self { ttl: u64::try_from(most.min(LONGEST).as_millis()).unwrap_or_default() }
    }
}

/// Calls a tool by its public name.
pub(crate) async fn tool(
    catalog: &Catalog,
    name: &str,
    arguments: Value,
    options: CallOptions,
) -> Result<ToolResult, CallError> {
    let route = catalog.tool(name).inspect_err(|_| {
        if let Some((server, tool, why)) = catalog.kept_out(name) {
            Fact::ToolRefused { tool, why }.tell(server);
        }
    })?;
    let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
    let problems = if let Some(broken) = route.rules.check(&arguments) {
        if let Some(rule) = &broken.rule {
            let (server, tool) = (&*route.connection.server, &*route.tool);
            Fact::ArgumentsRefused { tool, rule }.tell(server);
        }
        vec![broken.problem]
    } else if arguments.is_object() {
        route.arguments.check(&arguments)
    } else {
        // The protocol wants an object, whatever the schema says.
        let message = "expected an object: arguments have names".to_owned();
        vec![ArgumentProblem { pointer: String::new(), message }]
    };
    if !problems.is_empty() {
        return Err(CallError::Validation { item: route.public.clone(), problems });
    }
    let connection = &*route.connection;
    let attention = route.attention.as_ref();
    let told = attention.and_then(|attention| attention.arguments(&arguments));
    if let Some(findings) = connection.tell_found(Of::Tool, &route.tool, told) {
        let problems = findings.iter().map(argument_problem).collect();
        return Err(CallError::Validation { item: route.public.clone(), problems });
    }
    let timeout = options.timeout.unwrap_or(route.timeout);
    let params = |id, Further { responses, state, carried }: Further| ItemParams {
        name: &route.tool,
        arguments: Some(&arguments),
        // Progress moves the deadline, so it is asked for whether or not the caller listens.
        meta: connection.identity.carrying(Some(id), carried),
        responses,
        state,
        task: route.as_task.then(|| TaskWish::of(connection.most.max(timeout))),
    };
    let shown = route.headers.of(&arguments);
    let ask = Ask {
        method: method::TOOLS_CALL,
        item: &route.tool,
        params,
        headers: &shown,
        timeout,
        progress: options.progress.as_ref(),
        retries: options.retries,
        harmless: route.harmless,
        as_task: route.as_task,
    };
    let mut is_error = false;
    let refused = |told| connection.tell_found(Of::Tool, &route.tool, told);
    let judge = |raw: &RawValue| {
        is_error = check_tool_result(raw)?;
        match refused(attention.and_then(|attention| attention.result(raw))) {
            Some(findings) => Err(Unfit::Suspicious(findings)),
            None if is_error => Ok(CallOutcome::ToolError),
            None => Ok(CallOutcome::Ok),
        }
    };
    // What is said in place of a result says something to a model, too.
    let suspect =
        |fault: &Fault| refused(attention.and_then(|attention| in_fault(attention, fault)));
    let Reply { result: raw, .. } = connection.ask_wary(ask, judge, suspect).await?;
    let promised = route.results.clone().filter(|_| !is_error);
    Ok(ToolResult { raw, is_error, promised })
}

/// What the guard refuses of arguments, as a misfit of theirs.
fn argument_problem(finding: &Finding) -> ArgumentProblem {
    let pointer = finding.place.strip_prefix("arguments ").unwrap_or_default().to_owned();
    let message = format!("{}; `guard.arguments` as `flag` lets it pass", finding.reason);
    ArgumentProblem { pointer, message }
}

/// What the guard finds in what a server said in place of a result.
fn in_fault(attention: &Attention, fault: &Fault) -> Option<Told> {
    match fault {
        Fault::Answer(error) => attention.error(&error.message, error.data.as_deref()),
        Fault::Protocol(fault) => {
            let source = std::error::Error::source(fault);
            let source = source.map(ToString::to_string).unwrap_or_default();
            attention.error(&format!("{fault}\n{source}"), None)
        }
        Fault::Lost { .. } | Fault::Late => None,
    }
}

/// What an argument to be completed belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionOf<'a> {
    /// The prompt of this public name.
    Prompt(&'a str),
    /// The resource template, as its server lists it.
    Template {
        /// The template.
        uri: &'a str,
        /// The server that lists it.
        server: &'a str,
    },
}

/// Asks a server what values an argument may have.
pub(crate) async fn complete(
    catalog: &Catalog,
    of: CompletionOf<'_>,
    argument: (&str, &str),
    given: &Map<String, Value>,
    options: CallOptions,
) -> Result<Box<RawValue>, CallError> {
    let prompt;
    let template;
    let (connection, item, reference, timeout) = match of {
        CompletionOf::Prompt(name) => {
            prompt = catalog.prompt(name)?;
            let reference = json!({ "type": "ref/prompt", "name": prompt.prompt });
            (&*prompt.connection, &*prompt.prompt, reference, prompt.timeout)
        }
        CompletionOf::Template { uri, server } => {
            template = catalog.resource(uri, Some(server))?;
            let reference = json!({ "type": "ref/resource", "uri": uri });
            (&*template.connection, uri, reference, template.timeout)
        }
    };
    let (name, value) = argument;
    let mut params = json!({ "ref": reference, "argument": { "name": name, "value": value } });
    if !given.is_empty() {
        params["context"] = json!({ "arguments": given });
    }
    own(connection, method::COMPLETION_COMPLETE, item, params, timeout, &options).await
}

/// Asks a server to tell of changes of a resource, or to stop telling.
pub(crate) async fn subscribe(
    catalog: &Catalog,
    uri: &str,
    server: Option<&str>,
    wanted: bool,
    options: CallOptions,
) -> Result<(), CallError> {
    let route = catalog.resource(uri, server)?;
    let connection = &*route.connection;
    let wished = connection.wishes.set(uri, wanted);
    if wished == Wished::TooMany {
        let message = format!("more than {WISHES} resources are subscribed to");
        let problems = vec![ArgumentProblem { pointer: String::new(), message }];
        return Err(CallError::Validation { item: uri.into(), problems });
    }
    if connection.revision.era() == Era::Modern {
        return Ok(());
    }
    let method = if wanted { method::RESOURCES_SUBSCRIBE } else { method::RESOURCES_UNSUBSCRIBE };
    let asked = own(connection, method, uri, json!({ "uri": uri }), route.timeout, &options).await;
    if asked.is_err() && wanted && wished == Wished::Anew {
        connection.wishes.set(uri, false);
    }
    asked.map(drop)
}

/// A request with parameters of no other kind, that may run twice.
async fn own(
    connection: &Connection,
    method: &'static str,
    item: &str,
    params: Value,
    timeout: Duration,
    options: &CallOptions,
) -> Result<Box<RawValue>, CallError> {
    #[derive(Serialize)]
    struct Params<'a> {
        #[serde(flatten)]
        own: &'a Value,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    }
    let meta = |id, further: Further| {
        let meta = connection.identity.carrying(options.token(id), further.carried);
        meta.map(|meta| json!(meta))
    };
    let ask = Ask {
        method,
        item,
        params: |id, further| Params { own: &params, meta: meta(id, further) },
        headers: &[],
        timeout: options.timeout.unwrap_or(timeout),
        progress: options.progress.as_ref(),
        retries: options.retries,
        harmless: true,
        as_task: false,
    };
    let Reply { result, .. } = connection.ask(ask, |_| Ok(CallOutcome::Ok)).await?;
    Ok(result)
}

#[cfg(test)]
mod tests;

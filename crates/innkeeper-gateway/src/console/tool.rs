//! The page of one tool: its form, and the start of a call.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::console_calls::{CallOutcome, caller};
use super::html::{FieldValue, Html, Link, html};
use super::reply::{Page, Reply};
use super::request::{ConsoleRequest, Fields};
use super::tool_form::{FieldProblem, ToolForm, json};
use crate::error::ErrorKind;
use crate::offering::ListKind;

/// Time in which most calls end: their result is on the first page, and so are the problems of arguments.
const FIRST_WAIT: Duration = Duration::from_millis(400);

/// The field with all arguments as JSON.
const JSON_FIELD: &str = "json";

/// A tool that the operator may call.
struct FoundTool {
    name: String,
    server: String,
    definition: Value,
    form: Option<ToolForm>,
}

/// What the form contains.
#[derive(Default)]
struct FormState<'a> {
    values: Fields,
    problems: Vec<FieldProblem>,
    /// The text of the field with JSON, if the operator used it.
    json: Option<&'a str>,
    /// A problem of the whole form.
    problem: Option<String>,
}

impl FormState<'_> {
    fn has_problem(&self) -> bool {
        self.problem.is_some() || !self.problems.is_empty()
    }
}

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    match find(request).await {
        Ok(tool) => {
            let values = tool.form.as_ref().map(ToolForm::defaults).unwrap_or_default();
            page(request, &tool, &FormState { values, ..FormState::default() }).into()
        }
        Err(page) => page.into(),
    }
}

/// Starts a call with the arguments of the form.
pub(super) async fn call(request: &ConsoleRequest<'_>) -> Reply {
    let tool = match find(request).await {
        Ok(tool) => tool,
        Err(page) => return page.into(),
    };
    let mut state = FormState { values: request.form.clone(), ..FormState::default() };
    state.json = request.form.get(JSON_FIELD);
    let arguments = match (state.json, &tool.form) {
        (Some(text), _) => json_object(text).map_err(|problem| state.problem = Some(problem)),
        (None, Some(form)) => {
            form.read(&request.form).map_err(|problems| state.problems = problems)
        }
        (None, None) => {
            state.problem = Some("enter the arguments as JSON".to_owned());
            Err(())
        }
    };
    let Ok(arguments) = arguments else { return page(request, &tool, &state).into() };
    let principal = &request.visitor.principal;
    let call = match request.calls.start(request.gateway, principal, &tool.name, arguments) {
        Ok(call) => call,
        Err(error) => {
            state.problem = Some(error.to_string());
            return page(request, &tool, &state).into();
        }
    };
    // A call that runs longer shows its progress on its page.
    let _ = timeout(FIRST_WAIT, call.ended()).await;
    match call.outcome() {
        Some((CallOutcome::Error(error), _)) if matches!(error.kind, ErrorKind::Request) => {
            state.problem = Some(error.message.clone());
            page(request, &tool, &state).into()
        }
        _ => Reply::Redirect(Link::to("call").with("number", &call.number.to_string())),
    }
}

fn json_object(text: &str) -> Result<Box<RawValue>, String> {
    let text = json(text)?;
    if !text.starts_with('{') {
        return Err("the arguments must be a JSON object".to_owned());
    }
    RawValue::from_string(text).map_err(|error| error.to_string())
}

/// Returns the tool of the query. A tool that the operator may not call does not exist.
async fn find(request: &ConsoleRequest<'_>) -> Result<FoundTool, Page> {
    let name = request.query.get("name").unwrap_or_default();
    let principal = &request.visitor.principal;
    let offering = request.gateway.offers.offering(&caller(principal)).await;
    let offering =
        offering.map_err(|error| Page::message(StatusCode::BAD_GATEWAY, "Tool", &error.message))?;
    let unknown = || Page::not_found("No tool has this name.");
    let found = request.gateway.offers.permitted_tool(principal, &offering, name);
    let server = found.ok_or_else(unknown)?.server.name.to_string();
    let mut items = offering.list(ListKind::Tools).items().iter();
    let item = items.find(|item| *item.name == *name).ok_or_else(unknown)?;
    let definition: Value = serde_json::from_str(&item.text).unwrap_or_default();
    let form = definition.get("inputSchema").and_then(ToolForm::from_schema);
    Ok(FoundTool { name: name.to_owned(), server, definition, form })
}

fn page(request: &ConsoleRequest<'_>, tool: &FoundTool, state: &FormState<'_>) -> Page {
    let mut out = Html::new();
    html!(out, "<p><a href=\"{}\">All tools</a></p>\n", Link::to("tools"));
    html!(
        out,
        "<p class=\"dim\">Server <a href=\"{}\">{}</a></p>\n",
        Link::to("server").with("name", &tool.server),
        tool.server
    );
    if let Some(description) = tool.definition.get("description").and_then(Value::as_str) {
        html!(out, "<p class=\"text\">{}</p>\n", description);
    }
    write_hints(&mut out, &tool.definition);
    if state.has_problem() {
        let message = state.problem.as_deref().unwrap_or("Some arguments are not valid.");
        html!(out, "<p class=\"problem\" role=\"alert\">{}</p>\n", message);
    }
    let action = Link::to("tool").with("name", &tool.name);
    if let Some(form) = &tool.form {
        html!(out, "<h2>Arguments</h2><div class=\"card\">{}", request.form(&action));
        form.write(&mut out, &state.values, &state.problems);
        html!(out, "<button>Call the tool</button></form></div>\n");
    }
    let is_open = state.json.is_some() || tool.form.is_none();
    if is_open {
        html!(out, "<details open>");
    } else {
        html!(out, "<details>");
    }
    html!(
        out,
        "<summary>Arguments as JSON</summary><div class=\"card\">{}<label for=\"json\">JSON object</label>\
         <textarea id=\"json\" name=\"json\" rows=\"8\" spellcheck=\"false\" autocomplete=\"off\">\n{}\
         </textarea><button>Call the tool with this JSON</button></form></div></details>\n",
        request.form(&action),
        FieldValue(state.json.unwrap_or("{}"))
    );
    let definition = serde_json::to_string_pretty(&tool.definition).unwrap_or_default();
    html!(out, "<details><summary>Definition</summary><pre>{}</pre></details>", definition);
    let status =
        if state.has_problem() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Page { status, ..Page::new(format!("Tool {}", tool.name), out) }
}

/// Writes what the server says about the behaviour of the tool.
fn write_hints(out: &mut Html, definition: &Value) {
    let hints = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "reaches other systems"),
    ];
    let annotations = definition.get("annotations");
    let set = hints.iter().filter(|(key, _)| {
        annotations.and_then(|annotations| annotations.get(key)) == Some(&Value::Bool(true))
    });
    let set: Vec<&str> = set.map(|(_, text)| *text).collect();
    if !set.is_empty() {
        html!(out, "<p class=\"hint\">The server says: {}.</p>\n", set.join(", "));
    }
}

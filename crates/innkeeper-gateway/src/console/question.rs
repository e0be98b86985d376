//! The page of one question: what it is about, its answer, and the forms that answer it.

use http::StatusCode;
use innkeeper_protocol::skim;
use serde_json::{Map, Value};

use super::html::{FieldValue, Html, Link, MAX_TEXT_CHARS, Time, html};
use super::questions::{kind_text, state, write_error};
use super::reply::{Page, Reply};
use super::request::{ConsoleRequest, Fields};
use super::tool_form::{FieldProblem, ToolForm};
use crate::calls::{AnswerOutcome, OperatorAnswer};
use crate::error::shown_name;
use crate::pending_questions::{Question, QuestionKind, QuestionState};

/// The field with the values of a form as JSON.
const JSON_FIELD: &str = "json";

/// The first whole number without a floating-point number for itself and the next one, 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// What a form contains, and why it was not accepted.
#[derive(Default)]
struct FormState {
    values: Fields,
    problems: Vec<FieldProblem>,
    problem: Option<String>,
}

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    match find(request).await {
        Ok(question) => {
            let form = requested_form(&question);
            let values = form.as_ref().map(ToolForm::defaults).unwrap_or_default();
            page(request, &question, &FormState { values, ..FormState::default() }).into()
        }
        Err(page) => page.into(),
    }
}

/// Answers a question with the form of its page.
pub(super) async fn answer(request: &ConsoleRequest<'_>) -> Reply {
    let question = match find(request).await {
        Ok(question) => question,
        Err(page) => return page.into(),
    };
    let mut form = FormState { values: request.form.clone(), ..FormState::default() };
    let Some(answer) = read_answer(request, &question, &mut form) else {
        return page(request, &question, &form).into();
    };
    let operator = request.visitor.principal.id();
    let outcome = request.gateway.calls.answer_question(question.id, operator, answer).await;
    let (question, problem) = match outcome {
        Ok(AnswerOutcome::Won(_)) => {
            return Reply::Redirect(Link::to("question").with("id", &question.id.to_string()));
        }
        Ok(AnswerOutcome::Lost(current)) => {
            let problem = lost_text(&current);
            (*current, problem)
        }
        Ok(AnswerOutcome::Invalid(problem) | AnswerOutcome::NotNow(problem)) => (question, problem),
        Ok(AnswerOutcome::Unknown) => return unknown().into(),
        Err(error) => (question, error.to_string()),
    };
    form.problem = Some(problem);
    page(request, &question, &form).into()
}

/// Returns the answer of the form; `None` with the problems in `form`.
fn read_answer(
    request: &ConsoleRequest<'_>,
    question: &Question,
    form: &mut FormState,
) -> Option<OperatorAnswer> {
    match request.form.get("answer") {
        Some("approve") => Some(OperatorAnswer::Approve),
        Some("decline") => {
            let reason = request.form.get("reason").filter(|reason| !reason.is_empty());
            Some(OperatorAnswer::Decline { reason: reason.map(ToOwned::to_owned) })
        }
        Some("fill") => {
            let text = match (request.form.get(JSON_FIELD), requested_form(question)) {
                (Some(json), _) => json.to_owned(),
                (None, Some(requested)) => match requested.read(&request.form) {
                    Ok(values) => values.get().to_owned(),
                    Err(problems) => {
                        form.problem = Some("Some values are not valid.".to_owned());
                        form.problems = problems;
                        return None;
                    }
                },
                (None, None) => String::new(),
            };
            let values = parse_values(&text).map_err(|problem| form.problem = Some(problem));
            values.ok().map(OperatorAnswer::Fill)
        }
        _ => {
            form.problem = Some("the form has no answer: use one of its buttons".to_owned());
            None
        }
    }
}

/// Parses the values of a form. A number that would lose digits is refused: the server must get what the
/// operator entered.
fn parse_values(text: &str) -> Result<Map<String, Value>, String> {
    let values: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| format!("the values are no JSON object: {error}"))?;
    match values.iter().find(|(_, value)| is_rounded(value)) {
        Some((name, _)) => {
            let name = shown_name(name);
            Err(format!("`{name}` has a number with more digits than a form can send"))
        }
        None => Ok(values),
    }
}

/// Returns whether a value has a whole number of more than 64 bits, which is an approximation.
fn is_rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|number| number.abs() >= MAX_EXACT)
        }
        Value::Array(items) => items.iter().any(is_rounded),
        Value::Object(members) => members.values().any(is_rounded),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

async fn find(request: &ConsoleRequest<'_>) -> Result<Question, Page> {
    let questions = request.gateway.calls.questions().ok_or_else(unknown)?;
    let id = request.query.get("id").and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
    match questions.store().find(id).await {
        Ok(found) => found.ok_or_else(unknown),
        Err(error) => {
            let mut out = Html::new();
            write_error(&mut out, &error);
            Err(Page { status: StatusCode::BAD_GATEWAY, ..Page::new("Question", out) })
        }
    }
}

fn unknown() -> Page {
    Page::not_found("No question has this id. Answered questions are kept for a day.")
}

/// Says who was first.
fn lost_text(question: &Question) -> String {
    match (&question.answer.by, question.state) {
        (Some(by), state) => format!("Your answer came too late: {by} answered before ({state})."),
        (None, QuestionState::Ended) => {
            let reason = question.answer.reason.as_deref().unwrap_or("nobody needs the answer");
            format!("The question has ended: {reason}.")
        }
        (None, state) => format!("The question cannot be answered any more ({state})."),
    }
}

/// Returns the fields of an elicitation; `None` if its schema has none that a form can show.
fn requested_form(question: &Question) -> Option<ToolForm> {
    let schema = skim::member(question.content.params.get(), "requestedSchema")?;
    ToolForm::from_schema(&serde_json::from_str(schema).ok()?)
}

fn page(request: &ConsoleRequest<'_>, question: &Question, form: &FormState) -> Page {
    let mut out = Html::new();
    html!(out, "<p><a href=\"{}\">All questions</a></p>\n", Link::to("questions"));
    if let Some(problem) = &form.problem {
        html!(out, "<p class=\"problem\" role=\"alert\">{}</p>\n", problem);
    }
    write_facts(&mut out, question);
    match question.content.kind {
        QuestionKind::Approval => write_call(&mut out, question),
        QuestionKind::Elicitation => write_message(&mut out, question),
    }
    if question.state == QuestionState::Waiting {
        write_forms(&mut out, request, question, form);
    }
    if let Some(response) = &question.answer.response {
        html!(out, "<h2>Answer</h2>\n");
        write_whole(&mut out, response.get());
    }
    let status = match form.problem {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let title = format!("{} {}", kind_text(question), question.content.tool.host_name);
    Page { status, ..Page::new(title, out) }
}

fn write_facts(out: &mut Html, question: &Question) {
    let content = &question.content;
    if question.state.is_open() {
        html!(out, "<section id=\"facts\" data-refresh=\"2\" aria-label=\"State\">\n");
    } else {
        html!(out, "<section id=\"facts\" aria-label=\"State\">\n");
    }
    html!(
        out,
        "<p>{} asked at {}, until {}</p>\n<p>Client <code>{}</code> ({}), server <code>{}</code>, \
         item <code>{}</code></p>\n",
        state(question.state),
        Time(question.times.created),
        Time(question.times.expires),
        content.asker.principal,
        content.asker.client,
        content.tool.server,
        content.tool.item
    );
    if let Some(by) = &question.answer.by {
        html!(out, "<p>Answered by <code>{}</code> at {}</p>\n", by, Time(question.times.changed));
    }
    if let Some(reason) = &question.answer.reason {
        html!(out, "<p class=\"text\">Reason: {}</p>\n", reason);
    }
    if let Some(process) = &question.claimed_by {
        html!(out, "<p class=\"hint\">Run by the gateway process <code>{}</code>.</p>\n", process);
    }
    html!(out, "</section>\n");
}

fn write_call(out: &mut Html, question: &Question) {
    html!(out, "<h2>Arguments</h2>\n");
    write_whole(out, question.content.params.get());
    let Some(definition) = &question.content.tool.definition else {
        html!(
            out,
            "<p class=\"hint\">The definition of the tool is too large for this page.</p>\n"
        );
        return;
    };
    let description = skim::member(definition.get(), "description").and_then(skim::decode_string);
    if let Some(description) = description {
        html!(out, "<h2>What the server says about the tool</h2>\n");
        html!(out, "<p class=\"text\">{}</p>\n", description);
    }
    html!(out, "<details><summary>Definition</summary>");
    write_whole(out, definition.get());
    html!(out, "</details>\n");
}

fn write_message(out: &mut Html, question: &Question) {
    let message = skim::member(question.content.params.get(), "message");
    let message = message.and_then(skim::decode_string).unwrap_or_default();
    html!(out, "<h2>What the server asks</h2><p class=\"text\">{}</p>\n", message);
    html!(out, "<details><summary>Request</summary>");
    write_whole(out, question.content.params.get());
    html!(out, "</details>\n");
}

/// Writes a JSON text completely: what an operator approves must not be cut.
fn write_whole(out: &mut Html, text: &str) {
    html!(out, "<pre>");
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(MAX_TEXT_CHARS).map_or(rest.len(), |(end, _)| end);
        let (part, after) = rest.split_at(end);
        html!(out, "{}", part);
        rest = after;
    }
    html!(out, "</pre>\n");
}

fn write_forms(
    out: &mut Html,
    request: &ConsoleRequest<'_>,
    question: &Question,
    form: &FormState,
) {
    let start = || request.form(&Link::to("question").with("id", &question.id.to_string()));
    html!(out, "<h2>Your answer</h2><div class=\"card\">{}", start());
    match question.content.kind {
        QuestionKind::Approval => html!(
            out,
            "<input type=\"hidden\" name=\"answer\" value=\"approve\">\
             <button>Approve: the call runs once</button></form></div>\n"
        ),
        QuestionKind::Elicitation => {
            html!(out, "<input type=\"hidden\" name=\"answer\" value=\"fill\">");
            match requested_form(question) {
                Some(requested) => requested.write(out, &form.values, &form.problems),
                None => html!(
                    out,
                    "<label for=\"json\">JSON object</label><textarea id=\"json\" name=\"json\" \
                     rows=\"8\" spellcheck=\"false\" autocomplete=\"off\">\n{}</textarea>",
                    FieldValue(form.values.get(JSON_FIELD).unwrap_or("{}"))
                ),
            }
            html!(out, "<button>Send the values</button></form></div>\n");
        }
    }
    html!(
        out,
        "<div class=\"card\">{}<input type=\"hidden\" name=\"answer\" value=\"decline\">\
         <label for=\"reason\">Reason, for the client (optional)</label>\
         <input id=\"reason\" name=\"reason\" maxlength=\"500\" value=\"{}\" autocomplete=\"off\">\
         <button class=\"danger\">Decline</button></form></div>\n",
        start(),
        FieldValue(form.values.get("reason").unwrap_or_default())
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_would_lose_digits_is_refused() {
        for exact in ["18446744073709551615", "-9223372036854775808", "0.1", "1.5e3"] {
            let values = parse_values(&format!(r#"{{"n":{exact}}}"#)).unwrap();
            assert_eq!(values["n"].as_f64(), exact.parse().ok(), "{exact}");
        }
        for rounded in ["12345678901234567890123", "[18446744073709551617]", r#"{"a":-1e20}"#] {
            let problem = parse_values(&format!(r#"{{"n":{rounded}}}"#)).unwrap_err();
            assert!(problem.contains("`n`"), "{problem}");
        }
    }
}

//! The page of the questions that wait for an operator, and of the answered ones.

use super::html::{Html, Link, Name, Time, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use crate::pending_questions::store::{QuestionList, StoreError};
use crate::pending_questions::{PendingQuestions, Question, QuestionState};

/// Number of questions of a table.
const ROWS: usize = 50;

/// The parameters with the position from which a table goes on.
const BEFORE: [&str; 2] = ["open", "final"];

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let mut out = Html::new();
    let Some(questions) = request.gateway.calls.questions() else {
        html!(
            out,
            "<p class=\"empty\">Nothing waits for an operator: <code>serve.approval</code> in the \
             configuration names the tools whose calls do.</p>"
        );
        return Page::new("Questions", out).into();
    };
    html!(out, "<section id=\"open\" data-refresh=\"2\" aria-label=\"Open questions\">\n");
    html!(out, "<h2>Open</h2>\n");
    write_list(&mut out, request, questions, QuestionList::Open).await;
    html!(out, "</section>\n<section id=\"final\" data-refresh=\"2\" aria-label=\"Answered\">\n");
    html!(out, "<h2>Answered and ended</h2>\n");
    write_list(&mut out, request, questions, QuestionList::Final).await;
    html!(out, "</section>\n");
    Page::new("Questions", out).into()
}

async fn write_list(
    out: &mut Html,
    request: &ConsoleRequest<'_>,
    questions: &PendingQuestions,
    list: QuestionList,
) {
    let parameter = match list {
        QuestionList::Open => BEFORE[0],
        QuestionList::Final => BEFORE[1],
    };
    let before = request.query.get(parameter).and_then(|before| before.parse().ok());
    match questions.store().list(list, before, ROWS).await {
        Ok(page) => write_table(out, &page, parameter),
        Err(error) => write_error(out, &error),
    }
}

/// Writes why questions cannot be shown.
pub(super) fn write_error(out: &mut Html, error: &StoreError) {
    html!(out, "<p class=\"problem\" role=\"alert\">{}</p>\n", error.to_string());
}

fn write_table(out: &mut Html, questions: &[Question], parameter: &'static str) {
    if questions.is_empty() {
        html!(out, "<p class=\"empty\">None.</p>\n");
        return;
    }
    html!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of questions\">\
         <table><thead><tr><th scope=\"col\">Asked</th><th scope=\"col\">Until</th>\
         <th scope=\"col\">Client</th><th scope=\"col\">Question</th><th scope=\"col\">State</th>\
         <th scope=\"col\">By</th></tr></thead><tbody>\n"
    );
    for question in questions {
        html!(
            out,
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td>\
             <th scope=\"row\"><a href=\"{}\">{} <code>{}</code></a></th><td>{}</td><td>{}</td></tr>\n",
            Time(question.times.created),
            Time(question.times.expires),
            Name(&question.content.asker.principal),
            Link::to("question").with("id", &question.id.to_string()),
            kind_text(question),
            Name(&question.content.tool.host_name),
            state(question.state),
            Name(question.answer.by.as_deref().unwrap_or("–"))
        );
    }
    html!(out, "</tbody></table></div>\n");
    if let Some(last) = questions.last().filter(|_| questions.len() == ROWS) {
        let link = Link::to("questions").with(parameter, &last.position.to_string());
        html!(out, "<p><a href=\"{}\">Older</a></p>\n", link);
    }
}

/// Returns what a question asks for.
pub(super) fn kind_text(question: &Question) -> &'static str {
    use crate::pending_questions::QuestionKind;
    match question.content.kind {
        QuestionKind::Approval => "Call of",
        QuestionKind::Elicitation => "Form of",
    }
}

pub(super) fn state(state: QuestionState) -> Html {
    let mut out = Html::new();
    match state {
        QuestionState::Waiting => html!(out, "<span class=\"state busy\">waiting</span>"),
        QuestionState::Running => html!(out, "<span class=\"state busy\">running</span>"),
        QuestionState::Done => html!(out, "<span class=\"state good\">done</span>"),
        QuestionState::Answered => html!(out, "<span class=\"state good\">answered</span>"),
        QuestionState::Declined => html!(out, "<span class=\"state muted\">declined</span>"),
        QuestionState::Expired => html!(out, "<span class=\"state muted\">expired</span>"),
        QuestionState::Ended => html!(out, "<span class=\"state muted\">ended</span>"),
        QuestionState::OutcomeUnknown => {
            html!(out, "<span class=\"state bad\">outcome unknown</span>");
        }
    }
    out
}

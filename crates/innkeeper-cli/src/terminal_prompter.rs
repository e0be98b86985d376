//! Asks the user on the terminal about requests of servers.

use std::fmt::Write as _;
use std::io;

use innkeeper_agent::conversation::Message;
use innkeeper_agent::safety::{ApprovalDecision, ApprovalPolicy};
use innkeeper_agent::server_requests::form::{ChoiceOption, FieldKind, Form, FormField};
use innkeeper_agent::server_requests::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest,
    ServerRequestHandler, ServerRequestSettings, UserPrompter,
};
use serde_json::{Map, Value};

use crate::cli::ApprovalArg;
use crate::output::{escape_block, escape_inline, shorten};
use crate::terminal_questions::{QuestionSource, TerminalQuestions, is_yes};

/// Maximum number of characters shown of one text of a server; the user can judge no longer text.
const MAX_SHOWN_CHARS: usize = 4000;

/// Maximum number of characters shown of a label or a default.
const MAX_LABEL_CHARS: usize = 200;

/// Maximum number of options listed for a field.
const MAX_SHOWN_OPTIONS: usize = 40;

/// Returns the handler of server requests for `--approve` and `--sampling`; `None` if no request is
/// answered.
pub(crate) fn server_request_handler(
    approve: ApprovalArg,
    allows_sampling: bool,
    terminal: Option<&TerminalQuestions>,
) -> Option<ServerRequestHandler> {
    let sampling = match approve {
        ApprovalArg::Never => return None,
        ApprovalArg::All | ApprovalArg::Ask if !allows_sampling => ApprovalPolicy::DenyAll,
        ApprovalArg::All => ApprovalPolicy::AllowAll,
        ApprovalArg::Ask => ApprovalPolicy::Ask,
    };
    let mut settings = ServerRequestSettings { sampling, ..ServerRequestSettings::default() };
    if let Some(terminal) = terminal {
        settings.prompter = Some(std::sync::Arc::new(TerminalPrompter(terminal.clone())));
    }
    Some(ServerRequestHandler::new(settings))
}

/// Asks for consent, and for the values of forms line by line.
pub(crate) struct TerminalPrompter<Q>(pub(crate) Q);

#[async_trait::async_trait]
impl<Q: QuestionSource> UserPrompter for TerminalPrompter<Q> {
    async fn approve_sampling(&self, request: SamplingRequest<'_>) -> ApprovalDecision {
        let denied = |reason: &str| ApprovalDecision::Deny(reason.to_owned());
        match self.0.prompt(&describe_sampling(&request)).await {
            Ok(Some(reply)) if is_yes(&reply) => ApprovalDecision::Approve,
            Ok(_) => denied("the user denied the request"),
            Err(_) => denied("the question failed"),
        }
    }

    async fn answer_elicitation(&self, request: ElicitationRequest<'_>) -> ElicitationResponse {
        let answered = match request.mode {
            ElicitationMode::Form(form) => self.fill_in(&request, form).await,
            ElicitationMode::Url { url, host } => self.offer_url(&request, url, host).await,
        };
        match answered {
            Ok(Some(response)) => response,
            // The input ended.
            Ok(None) | Err(_) => ElicitationResponse::Cancel,
        }
    }
}

/// The answer of the user; `None` at the end of the input.
type Answered = io::Result<Option<ElicitationResponse>>;

impl<Q: QuestionSource> TerminalPrompter<Q> {
    async fn offer_url(&self, request: &ElicitationRequest<'_>, url: &str, host: &str) -> Answered {
        let mut question = heading(request);
        let url = escape_inline(url);
        let host = escape_inline(host);
        question.push_str(&format!(
            "The server asks you to open this page at `{host}` yourself:\n  {url}\n\
             Do you agree? [y/N] "
        ));
        let reply = self.0.prompt(&question).await?;
        Ok(reply.map(|reply| match is_yes(&reply) {
            true => ElicitationResponse::Accept(Map::new()),
            false => ElicitationResponse::Decline,
        }))
    }

    async fn fill_in(&self, request: &ElicitationRequest<'_>, form: &Form) -> Answered {
        let mut question = heading(request);
        question.push_str("Answer? [y/N] ");
        let Some(reply) = self.0.prompt(&question).await? else { return Ok(None) };
        if !is_yes(&reply) {
            return Ok(Some(ElicitationResponse::Decline));
        }
        let mut values = Map::new();
        for field in form.fields() {
            let Some(value) = self.ask_field(field).await? else { return Ok(None) };
            values.extend(value.map(|value| (field.name.clone(), value)));
        }
        if form.fields().is_empty() {
            return Ok(Some(ElicitationResponse::Accept(values)));
        }
        let question = format!("Send to `{}`? [y/N] ", escape_inline(request.server));
        let reply = self.0.prompt(&question).await?;
        Ok(reply.map(|reply| match is_yes(&reply) {
            true => ElicitationResponse::Accept(values),
            false => ElicitationResponse::Decline,
        }))
    }

    /// Asks for one value until the value is valid; `None` at the end of the input.
    async fn ask_field(&self, field: &FormField) -> io::Result<Option<Option<Value>>> {
        let mut question = describe_field(field);
        loop {
            let Some(input) = self.0.prompt(&question).await? else { return Ok(None) };
            match field.parse_input(&input) {
                Ok(value) => return Ok(Some(value)),
                Err(error) => question = format!("  {error}: "),
            }
        }
    }
}

fn describe_sampling(request: &SamplingRequest<'_>) -> String {
    let SamplingRequest { server, provider, model, system, messages, max_tokens, .. } = *request;
    let mut text = format!(
        "Server `{}` requests a message of the model `{}` of {} with at most {max_tokens} tokens:\n",
        escape_inline(server),
        escape_inline(model),
        escape_inline(provider),
    );
    if !system.is_empty() {
        push_quoted(&mut text, "system", system);
    }
    for message in messages {
        match message {
            Message::User(content) => push_quoted(&mut text, "user", &content.to_text()),
            Message::Assistant(message) => {
                push_quoted(&mut text, "assistant", &message.visible_text());
            }
            Message::ToolResults(_) => {}
        }
    }
    text.push_str("Send to the model, and the response to the server? [y/N] ");
    text
}

fn heading(request: &ElicitationRequest<'_>) -> String {
    let mut text = format!("Server `{}` asks:\n", escape_inline(request.server));
    push_quoted(&mut text, "", request.message);
    text
}

/// Adds a text of a server. Each line begins with a bar, so that no line looks like a line of this
/// program.
fn push_quoted(text: &mut String, label: &str, quoted: &str) {
    let end = quoted.char_indices().nth(MAX_SHOWN_CHARS).map_or(quoted.len(), |(at, _)| at);
    if !label.is_empty() {
        text.push_str(&format!("  {label}:\n"));
    }
    for line in escape_block(&quoted[..end]).lines() {
        text.push_str(&format!("  | {line}\n"));
    }
    let hidden = quoted[end..].chars().count();
    if hidden > 0 {
        text.push_str(&format!("  {hidden} more characters are not shown\n"));
    }
}

/// Returns the question for a field: description, options, label, hint, default.
fn describe_field(field: &FormField) -> String {
    let mut text = String::new();
    if let Some(description) = &field.description {
        push_quoted(&mut text, "", description);
    }
    let hint = match &field.kind {
        FieldKind::Text { format: Some(format), .. } => format!(" ({format})"),
        FieldKind::Text { format: None, .. } => String::new(),
        FieldKind::Number { is_integer: true, .. } => " (an integer)".to_owned(),
        FieldKind::Number { is_integer: false, .. } => " (a number)".to_owned(),
        FieldKind::Boolean => " (yes or no)".to_owned(),
        FieldKind::SingleChoice { options } => {
            push_options(&mut text, options);
            " (one option)".to_owned()
        }
        FieldKind::MultiChoice { options, .. } => {
            push_options(&mut text, options);
            " (options with commas between them)".to_owned()
        }
    };
    let default = match &field.default {
        Some(Value::Bool(true)) => " [yes]".to_owned(),
        Some(Value::Bool(false)) => " [no]".to_owned(),
        Some(Value::String(default)) => format!(" [{}]", shorten(default, MAX_LABEL_CHARS)),
        Some(default) => format!(" [{}]", shorten(&default.to_string(), MAX_LABEL_CHARS)),
        None if field.is_required => String::new(),
        None => " [none]".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "{}{hint}{default}: ", shorten(field.label(), MAX_LABEL_CHARS));
    text
}

fn push_options(text: &mut String, options: &[ChoiceOption]) {
    for (index, option) in options.iter().take(MAX_SHOWN_OPTIONS).enumerate() {
        text.push_str(&format!("  {}. {}\n", index + 1, shorten(option.label(), MAX_LABEL_CHARS)));
    }
    if let Some(hidden) = options.len().checked_sub(MAX_SHOWN_OPTIONS).filter(|hidden| *hidden > 0)
    {
        text.push_str(&format!("  {hidden} more options are not shown\n"));
    }
}

#[cfg(test)]
mod tests;

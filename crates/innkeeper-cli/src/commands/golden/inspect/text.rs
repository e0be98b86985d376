//! A recorded run as text for a person.

use std::io;

use innkeeper_agent::golden::{Answer, Category, QuestionRecord, on_one_line};

use super::super::plural;
use super::super::run_view::{AttemptsView, TokenView, duration_text};
use super::steps::{Call, CallOutcome, Iteration, Request};
use super::{Decisions, Inspection, Prompts, Setup};
use crate::exit::CliError;
use crate::output::{Output, Style, escape_inline, shorten, wrap};

/// Maximum number of characters of a text, such as a result; `--json` prints all of it.
const MAX_TEXT_CHARS: usize = 400;

const LABEL_WIDTH: usize = 8;

/// The label of every failure.
const FAILURE_LABEL: &str = "FAILED";

pub(super) fn print(inspection: &Inspection<'_>, output: &mut Output) -> Result<(), CliError> {
    let mut page = Page { output };
    page.print_header(inspection)?;
    for iteration in &inspection.iterations {
        page.print_iteration(iteration)?;
    }
    page.print_decisions(&inspection.decisions)?;
    page.print_end(inspection)?;
    Ok(())
}

/// The lines of the text: a heading, and below it a label with a text each.
struct Page<'o> {
    output: &'o mut Output,
}

impl Page<'_> {
    fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.output.paint(Style::Strong, &escape_inline(text));
        self.output.print_data(&text)
    }

    /// Prints a shortened text with its label.
    fn line(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.styled_line(label, None, text)
    }

    fn failure(&mut self, text: &str) -> io::Result<()> {
        self.styled_line(FAILURE_LABEL, Some(Style::Error), text)
    }

    fn styled_line(&mut self, label: &str, style: Option<Style>, text: &str) -> io::Result<()> {
        let padded = format!("{label:<LABEL_WIDTH$}");
        let first = match style {
            Some(style) => format!("  {}  ", self.output.paint(style, &padded)),
            None => format!("  {padded}  "),
        };
        let rest = " ".repeat(LABEL_WIDTH + 4);
        let text = shorten(text, MAX_TEXT_CHARS);
        let text = wrap(&text, self.output.columns(), &first, &rest);
        self.output.print_data(&text)
    }

    fn print_header(&mut self, inspection: &Inspection<'_>) -> io::Result<()> {
        let recording = &inspection.recording;
        let category = recording.category.map_or("no category", Category::as_str);
        let origin = recording.origin.as_str();
        self.heading(&format!("{} ({origin}, {category})", recording.test_name))?;
        self.line("date", &format!("{} by {}", recording.recorded_at, recording.program))?;
        let Setup { provider, model, api, streaming, servers } = inspection.setup;
        let streamed = if streaming { ", streamed" } else { "" };
        let api = if api.is_empty() { "unknown APIs" } else { api };
        self.line("model", &format!("{provider} {model} over {api}{streamed}"))?;
        for (name, server) in servers {
            match (server.ready, &server.reason) {
                (true, _) => self.line("server", &format!("{name} is ready"))?,
                (false, reason) => {
                    let reason = reason.as_deref().unwrap_or("no reason was recorded");
                    self.failure(&format!("server {name} is unavailable: {reason}"))?;
                }
            }
        }
        let Prompts { system_prompt, user_prompt, further_prompts } = inspection.prompts;
        if !system_prompt.is_empty() {
            self.line("system", system_prompt)?;
        }
        self.line("user", user_prompt)?;
        for prompt in further_prompts {
            self.line("then", prompt)?;
        }
        Ok(())
    }

    fn print_iteration(&mut self, iteration: &Iteration<'_>) -> io::Result<()> {
        self.output.print_data("")?;
        match iteration.iteration {
            0 => self.heading("before the first request")?,
            number => self.heading(&format!("iteration {number}"))?,
        }
        for request in &iteration.requests {
            self.print_request(request)?;
        }
        if let Some(text) = iteration.text {
            self.line("model", text)?;
        }
        for call in &iteration.calls {
            self.print_call(call)?;
        }
        for error in &iteration.errors {
            self.failure(error)?;
        }
        Ok(())
    }

    fn print_request(&mut self, request: &Request<'_>) -> io::Result<()> {
        let Request { method, path, status, chunks, .. } = request;
        self.line("request", &format!("{method} {path}"))?;
        let mut parts = Vec::new();
        parts.extend(request.ms.map(|ms| format!("in {}", duration_text(ms))));
        if status.is_some() {
            parts.push(format!("{chunks} chunk{}", plural(*chunks)));
        }
        parts.extend(request.reported.map(tokens_text));
        let facts = parts.join(", ");
        match (&request.failure, status) {
            (Some(failure), _) if facts.is_empty() => self.failure(failure),
            (Some(failure), _) => self.failure(&format!("{failure} ({facts})")),
            (None, Some(status)) => self.line("response", &format!("status {status} {facts}")),
            (None, None) => Ok(()),
        }
    }

    fn print_call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let origin = match call.mechanism {
            "" | "native" => String::new(),
            mechanism => format!(" ({mechanism})"),
        };
        self.line("call", &format!("{}{origin} {}", call.tool, on_one_line(call.arguments)))?;
        let CallOutcome { success, result, error, ms } = call.outcome;
        let ms = duration_text(ms);
        let AttemptsView { cached, retry_attempt, failed_attempts } = call.attempts;
        let mut notes = String::new();
        if cached {
            notes.push_str(", from the cache");
        }
        if retry_attempt > 0 {
            notes.push_str(&format!(", retry {retry_attempt}"));
        }
        if failed_attempts > 0 {
            notes.push_str(&format!(", malformed before: {failed_attempts}"));
        }
        let result = result.map_or_else(|| "no result".to_owned(), on_one_line);
        match (success, error) {
            (true, _) => self.line("result", &format!("in {ms}{notes}: {result}"))?,
            (false, Some(error)) => self.failure(&format!("in {ms}{notes}: {error}"))?,
            (false, None) => self.failure(&format!("in {ms}{notes}: {result}"))?,
        }
        call.recovery_action.map_or(Ok(()), |action| self.line("recovery", action))
    }

    /// Prints the decisions of people and the questions of servers.
    fn print_decisions(&mut self, decisions: &Decisions<'_>) -> io::Result<()> {
        if decisions.approvals.is_empty() && decisions.questions.is_empty() {
            return Ok(());
        }
        self.output.print_data("")?;
        self.heading("decisions")?;
        for approval in decisions.approvals {
            let tool = &approval.tool;
            match &approval.answer {
                Answer::Approved {} => self.line("approved", tool)?,
                Answer::Changed(arguments) => {
                    self.line("changed", &format!("{tool} {}", on_one_line(arguments)))?;
                }
                Answer::Denied(reason) => self.line("denied", &format!("{tool}: {reason}"))?,
            }
        }
        for question in decisions.questions {
            let QuestionRecord { server, method, params, answer, .. } = question;
            self.line("question", &format!("{method} of {server}: {}", on_one_line(params)))?;
            let answer = answer.as_deref().map_or_else(|| "none".to_owned(), on_one_line);
            self.line("answer", &answer)?;
        }
        Ok(())
    }

    fn print_end(&mut self, inspection: &Inspection<'_>) -> io::Result<()> {
        let end = &inspection.result;
        let totals = &inspection.totals;
        self.output.print_data("")?;
        self.heading("result")?;
        if let Some(error) = end.error {
            let iteration = end.failed_iteration.unwrap_or_default();
            self.failure(&format!("in iteration {iteration}: {error}"))?;
        }
        if let Some(text) = end.final_result {
            self.line("text", text)?;
        }
        let calls = format!("{} call{}", totals.calls, plural(totals.calls));
        self.line("calls", &format!("{calls}, {} failed", totals.failed_calls))?;
        let requests = format!("{} request{}", totals.requests, plural(totals.requests));
        self.line("requests", &format!("{requests}, {} failed", totals.failed_requests))?;
        self.line("tokens", &tokens_text(totals.tokens))?;
        self.line("time", &duration_text(totals.ms))?;
        for acceptance in inspection.judgements.accepted {
            let text = format!("{} by {}: {}", acceptance.when, acceptance.who, acceptance.why);
            self.line("accepted", &text)?;
        }
        for review in inspection.judgements.reviews {
            self.line("review", &review.to_line())?;
        }
        Ok(())
    }
}

fn tokens_text(tokens: TokenView) -> String {
    let TokenView { prompt_tokens, completion_tokens, total_tokens } = tokens;
    format!("{total_tokens} tokens ({prompt_tokens} in, {completion_tokens} out)")
}

//! Prints what happens in a run.

use std::io;
use std::path::Path;

use innkeeper_agent::agent::{AgentEvent, RunResult, ToolCallRecord};
use innkeeper_agent::provider::Usage;
use innkeeper_agent::run_json::RunJson;
use innkeeper_agent::transport::Endpoint;
use serde_json::json;

use super::super::run_recording::append_private;
use super::{MAX_SHOWN_CHARS, MIN_SHOWN_CHARS, RESULT_INDENT, plan_line, usage_text, waiting_line};
use crate::activity::ActivityLine;
use crate::cli::ApprovalArg;
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style, shorten};

pub(super) struct EventPrinter<'o> {
    output: &'o mut Output,
    approve: ApprovalArg,
    /// Whether the text of the model is printed as the model writes the text.
    streams_text: bool,
    /// The sum of the reported usage.
    usage: Usage,
    /// Shown while neither text nor a call is printed.
    activity: Option<ActivityLine>,
    /// Whether the last text has no newline at its end.
    has_open_line: bool,
}

impl<'o> EventPrinter<'o> {
    pub(super) fn new(output: &'o mut Output, approve: ApprovalArg) -> Self {
        let activity = Some(waiting_line(output, approve));
        let streams_text = output.is_terminal() && !output.is_json();
        Self {
            output,
            approve,
            streams_text,
            usage: Usage::default(),
            activity,
            has_open_line: false,
        }
    }

    /// Prints a line about the run itself.
    fn print_note(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.output.labelled_status(Style::Note, label, text)?;
        self.activity = Some(waiting_line(self.output, self.approve));
        Ok(())
    }

    pub(super) fn print(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::Text(text) if text.is_empty() || !self.streams_text => Ok(()),
            AgentEvent::Text(text) => {
                self.activity = None;
                self.has_open_line = !text.ends_with('\n');
                self.output.print_chunk(text)
            }
            AgentEvent::ToolCallStarted { tool, .. } => {
                self.end_line()?;
                if matches!(self.approve, ApprovalArg::All | ApprovalArg::Never) {
                    self.activity =
                        Some(ActivityLine::show(self.output, &format!("calling {tool}")));
                }
                Ok(())
            }
            AgentEvent::ToolCallProgress { tool, progress, .. } => {
                if let Some(activity) = &self.activity {
                    activity.show_progress(&format!("calling {tool}"), progress);
                }
                Ok(())
            }
            AgentEvent::ToolCallFinished(call) => {
                self.end_line()?;
                print_call(call, self.output)?;
                self.activity = Some(waiting_line(self.output, self.approve));
                Ok(())
            }
            AgentEvent::Planned(steps) => {
                self.end_line()?;
                for step in steps {
                    self.output.labelled_status(Style::Note, "plan", &plan_line(step))?;
                }
                self.activity = Some(waiting_line(self.output, self.approve));
                Ok(())
            }
            AgentEvent::Warned(warning) => self.print_note("warning", &warning.text),
            AgentEvent::ToolsOmitted(tools) => self.print_note("warning", &tools.to_string()),
            AgentEvent::ResponseFinished { usage } => {
                self.usage = self.usage.saturating_add(usage.unwrap_or_default());
                Ok(())
            }
            AgentEvent::HistorySummaryStarted { messages } => {
                self.print_note("history", &format!("the model summarizes {messages} old messages"))
            }
            AgentEvent::HistoryShortened { messages, is_summarized } => {
                let summary = if *is_summarized { "with" } else { "without" };
                let text = format!("requests omit {messages} old messages, {summary} a summary");
                self.print_note("history", &text)
            }
            AgentEvent::Retrying { delay } => {
                self.print_note("retry", &format!("in {:.1} s", delay.as_secs_f64()))
            }
            AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => Ok(()),
        }
    }

    /// Prints the reported usage, and removes the activity line.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        if self.usage == Usage::default() {
            return Ok(());
        }
        self.output.labelled_status(Style::Note, "usage", &usage_text(self.usage))
    }

    /// Ends the line of the text, and removes the activity line.
    fn end_line(&mut self) -> io::Result<()> {
        self.activity = None;
        if std::mem::take(&mut self.has_open_line) {
            self.output.print_data("")?;
        }
        Ok(())
    }
}

/// Prints one call to stderr, with one line each for the call and for its result.
fn print_call(call: &ToolCallRecord, output: &mut Output) -> io::Result<()> {
    let (tone, sign) =
        if call.outcome.success { (Style::Good, "called") } else { (Style::Error, "failed") };
    let columns = output.err_columns().unwrap_or(usize::MAX);
    let room = |used: usize| columns.saturating_sub(used).clamp(MIN_SHOWN_CHARS, MAX_SHOWN_CHARS);
    let name = format!("`{}` ", call.tool);
    let room_for_arguments = room(RESULT_INDENT.len() + name.chars().count());
    let arguments = shorten(&call.arguments.to_string(), room_for_arguments);
    output.labelled_status(tone, sign, &format!("{name}{arguments}"))?;
    let result = shorten(&call.result_text, room(RESULT_INDENT.len()));
    output.status(&format!("{RESULT_INDENT}{result}"))
}

/// Prints the result; returns an error if the run failed.
pub(super) fn print_outcome(outcome: &RunJson<'_>, output: &mut Output) -> Result<(), CliError> {
    if output.is_json() {
        output.print_json(outcome)?;
        return if outcome.success {
            Ok(())
        } else {
            Err(CliError::without_message(CliExitCode::Failed))
        };
    }
    if let Some(text) = outcome.final_result.filter(|_| !output.is_terminal()) {
        output.print_untrusted(text)?;
    }
    match &outcome.error {
        None => Ok(()),
        Some(error) => Err(CliError::failure(error.clone())),
    }
}

/// Appends the corrected calls, one line each. Skips lines that contain the API key. A new file is
/// readable by its owner only.
pub(super) fn append_corrections(
    file: &Path,
    model: &str,
    report: &RunResult,
    endpoint: Option<&Endpoint>,
) -> Result<(), CliError> {
    if report.correction_examples.is_empty() {
        return Ok(());
    }
    let lines = correction_lines(model, report, endpoint);
    append_private(file, &lines).map_err(|error| CliError::cannot_write(file, error))
}

/// Returns the corrected calls without the API key.
fn correction_lines(model: &str, report: &RunResult, endpoint: Option<&Endpoint>) -> String {
    let without_key = |text: &str| match endpoint {
        Some(endpoint) => endpoint.redact(text.to_owned()),
        None => text.to_owned(),
    };
    let mut lines = String::new();
    for lesson in &report.correction_examples {
        let attempts: Vec<_> = lesson
            .attempts
            .iter()
            .map(|(text, problem)| {
                json!({"text": without_key(text), "problem": without_key(problem)})
            })
            .collect();
        let line = json!({
            "model": model,
            "asked": without_key(&lesson.user_message),
            "attempts": attempts,
            "corrected": without_key(&lesson.corrected_text),
        });
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

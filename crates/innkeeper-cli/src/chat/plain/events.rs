//! Prints the events of a run, as lines or as JSON.

use std::sync::Arc;

use innkeeper_agent::agent::{AgentEvent, ToolCallRecord};

use super::json_event::JsonEvent;
use super::progress_filter::ProgressFilter;
use super::repeated_text::RepeatedText;
use super::{MAX_SHOWN_CHARS, PlainChat};
use crate::chat::call_text;
use crate::chat::terminal::outcome_text;
use crate::exit::CliError;
use crate::output::{Style, shorten};

/// What of a run's events is printed.
#[derive(Default)]
pub(super) struct RunText {
    progress: ProgressFilter,
    repeated: RepeatedText,
}

impl PlainChat<'_> {
    pub(super) fn print_event(&mut self, event: &AgentEvent) -> Result<(), CliError> {
        if let AgentEvent::Finished(result) = event {
            self.has_failed |= !result.is_completed();
        }
        if self.output.is_json() {
            return match JsonEvent::from_event(event) {
                Some(event) => Ok(self.output.print_json_line(&event)?),
                None => Ok(()),
            };
        }
        match event {
            AgentEvent::Text(text) => {
                let text = self.run_text.repeated.add(text);
                self.print_text(&text)?;
            }
            AgentEvent::ToolCallStarted { tool, arguments, .. } => {
                self.run_text.repeated.clear();
                self.end_line()?;
                let arguments = shorten(arguments, MAX_SHOWN_CHARS);
                let line = format!("`{tool}` {arguments}");
                self.output.labelled_status(Style::Dim, "calling", &line)?;
            }
            AgentEvent::ToolCallProgress { id, tool, progress }
                if self.run_text.progress.is_due(id) =>
            {
                self.end_line()?;
                let progress = shorten(&call_text::progress(progress), MAX_SHOWN_CHARS);
                let line = format!("`{tool}` {progress}");
                self.output.labelled_status(Style::Dim, "progress", &line)?;
            }
            AgentEvent::ToolCallFinished(record) => self.print_call(record)?,
            AgentEvent::Retrying { delay } => {
                self.run_text.repeated.on_retry();
                if !delay.is_zero() {
                    let delay = delay.as_secs_f64();
                    self.note(&format!("the request is sent again in {delay:.1} s"))?;
                }
            }
            AgentEvent::Warned(warning) => {
                self.note(&format!("{}: {}", warning.tool, warning.text))?;
            }
            AgentEvent::ToolsOmitted(tools) => self.note(&tools.to_string())?,
            AgentEvent::HistorySummaryStarted { messages } => {
                self.note(&format!("the model summarizes {messages} old messages"))?;
            }
            AgentEvent::HistoryShortened { messages, is_summarized: false } => {
                self.note(&format!("requests leave out the first {messages} messages"))?;
            }
            AgentEvent::Finished(result) => {
                let text = self.run_text.repeated.finish();
                self.print_text(&text)?;
                self.end_line()?;
                if let Some(problem) = outcome_text(&result.outcome) {
                    self.note(&problem)?;
                }
            }
            AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ToolCallProgress { .. }
            | AgentEvent::Planned(_)
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::MessagesAdded(_) => {}
        }
        Ok(())
    }

    fn print_text(&mut self, text: &str) -> Result<(), CliError> {
        if !text.is_empty() {
            self.has_open_line = !text.ends_with('\n');
            self.output.print_chunk(text)?;
        }
        Ok(())
    }

    fn print_call(&mut self, record: &Arc<ToolCallRecord>) -> Result<(), CliError> {
        self.run_text.progress.remove(&record.id);
        self.end_line()?;
        let (style, sign) = match record.outcome.success {
            true => (Style::Good, "called"),
            false => (Style::Error, "failed"),
        };
        let arguments = shorten(&record.arguments.to_string(), MAX_SHOWN_CHARS);
        let elapsed = record.elapsed.as_millis();
        let facts = call_text::facts(record);
        let line = format!("`{}` {arguments} in {elapsed} ms{facts}", record.tool);
        self.output.labelled_status(style, sign, &line)?;
        let result = shorten(&record.result_text, MAX_SHOWN_CHARS);
        Ok(self.output.status(&format!("        {result}"))?)
    }
}

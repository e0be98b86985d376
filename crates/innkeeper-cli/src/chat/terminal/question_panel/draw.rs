//! Draws the panel of a question.

use std::ops::Range;

use innkeeper_agent::server_requests::form::{FieldKind, FormField};
use ratatui::text::{Line, Span};

use super::super::block::indented_json;
use super::super::theme::{Role, Theme};
use super::super::wrap::{wrap_spans, wrap_text};
use super::{ApprovalInput, QuestionPanel, input_text};
use crate::chat::question::{
    ApprovalQuestion, ElicitationQuestion, Question, RequestedInput, SamplingQuestion,
};

/// Maximum number of bytes of arguments or of a message that a panel shows.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// Maximum number of bytes of a field's label or value.
const MAX_LINE_BYTES: usize = 1 << 10;

/// Maximum number of lines of a problem of the input.
const MAX_PROBLEM_LINES: usize = 3;

pub(crate) struct DrawnPanel {
    /// The lines above the editor, which may be more than fit.
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) current_field: Range<usize>,
    /// Why the input is not accepted.
    pub(crate) problem: Vec<Line<'static>>,
    pub(crate) keys: &'static str,
}

impl QuestionPanel {
    pub(crate) fn draw(&self, width: usize, theme: Theme) -> DrawnPanel {
        let (lines, current_field) = match &self.question {
            Question::Approval(question, _) => (self.draw_approval(question, width, theme), 0..0),
            Question::Sampling(question, _) => (draw_sampling(question, width, theme), 0..0),
            Question::Elicitation(question, _) => self.draw_elicitation(question, width, theme),
        };
        let problem = self.problem.iter();
        let problem =
            problem.flat_map(|text| wrap_text(text, theme.style(Role::Error), width, &[]));
        let problem = problem.take(MAX_PROBLEM_LINES).collect();
        DrawnPanel { lines, current_field, problem, keys: self.keys() }
    }

    fn keys(&self) -> &'static str {
        match &self.question {
            Question::Approval(..) if self.editor.is_some() => match self.input {
                ApprovalInput::Arguments => "Enter run with these arguments · Esc back",
                ApprovalInput::DenialReason => "Enter deny with this reason · Esc back",
            },
            Question::Approval(..) => match self.permanent_obstacle() {
                None => {
                    "y once · t this tool · s this server · a always this tool · n no · \
                     r no, reason · N never this tool · e edit"
                }
                Some(_) => {
                    "y once · t this tool · s this server · n no · r no, reason · \
                     N never this tool · e edit"
                }
            },
            Question::Sampling(..) => "y let the model answer · n no",
            Question::Elicitation(question, _) => match &question.input {
                RequestedInput::Form(_) => {
                    "Enter next · Shift-Tab back · Ctrl-D decline · Esc close"
                }
                RequestedInput::Url { .. } => "y I will open it · n decline · Esc close",
            },
        }
    }

    fn draw_approval(
        &self,
        question: &ApprovalQuestion,
        width: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let text = |text: &str, role| Span::styled(text.to_owned(), theme.style(role));
        let server = question.server.as_deref().unwrap_or("this program");
        let heading = [
            text("Run ", Role::Warning),
            text(&question.tool, Role::Strong),
            text(&format!(" on {server}?"), Role::Warning),
        ];
        let mut lines = wrap_spans(&heading, width, &[], &[]);
        let facts = question.facts();
        lines.extend(wrap_text(&facts, theme.style(Role::Dim), width, &[]));
        if self.editor.is_none() || self.input == ApprovalInput::DenialReason {
            let arguments = indented_json(&question.arguments, MAX_SHOWN_BYTES);
            let indent = [Span::raw("  ")];
            lines.extend(wrap_text(&arguments, theme.style(Role::Code), width, &indent));
        }
        if let Some(description) = &question.description {
            let said = format!("The tool says: {}", shown_start(description));
            lines.extend(wrap_text(&said, theme.style(Role::Text), width, &[]));
        }
        lines
    }

    fn draw_elicitation(
        &self,
        question: &ElicitationQuestion,
        width: usize,
        theme: Theme,
    ) -> (Vec<Line<'static>>, Range<usize>) {
        let mut current_field = 0..0;
        let asks = match &question.input {
            RequestedInput::Form(_) => "asks",
            RequestedInput::Url { .. } => "asks you to open an address",
        };
        let mut lines = draw_asker(&question.server, question.call.as_deref(), asks, width, theme);
        lines.extend(wrap_text(
            shown_start(&question.message),
            theme.style(Role::Text),
            width,
            &[],
        ));
        match &question.input {
            RequestedInput::Form(form) => {
                for (index, field) in form.fields().iter().enumerate() {
                    let start = lines.len();
                    lines.extend(self.draw_field(index, field, width, theme));
                    if index == self.form.field {
                        current_field = start..lines.len();
                    }
                }
            }
            RequestedInput::Url { url, host } => {
                let host = format!("host: {host}");
                lines.extend(wrap_text(&host, theme.style(Role::Strong), width, &[]));
                lines.extend(wrap_text(shown_start(url), theme.style(Role::Link), width, &[]));
                let note = "This program opens nothing. Open the address yourself if you trust it.";
                lines.extend(wrap_text(note, theme.style(Role::Dim), width, &[]));
            }
        }
        (lines, current_field)
    }

    fn draw_field(
        &self,
        index: usize,
        field: &FormField,
        width: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let is_current = index == self.form.field;
        let mark = if is_current { "> " } else { "  " };
        let required = if field.is_required { "" } else { " (optional)" };
        let value = self.form.values.get(&field.name).map(input_text).unwrap_or_default();
        let role = if is_current { Role::Strong } else { Role::Text };
        let line = format!("{}{required}: {}", shown_line(field.label()), shown_line(&value));
        let indent = [Span::raw("  ")];
        let first = [Span::raw(mark)];
        let mut lines =
            wrap_spans(&[Span::styled(line, theme.style(role))], width, &first, &indent);
        if is_current {
            let description = field.description.as_deref().map(|text| shown_start(text).to_owned());
            let default = field.default.as_ref();
            let default = default.map(|value| format!("default: {}", input_text(value)));
            let notes = [description, Some(permitted_values(&field.kind)), default];
            for note in notes.into_iter().flatten() {
                lines.extend(wrap_text(shown_start(&note), theme.style(Role::Dim), width, &indent));
            }
        }
        lines
    }
}

fn draw_sampling(question: &SamplingQuestion, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let asks =
        format!("asks {} for a message of at most {} tokens", question.model, question.max_tokens);
    let mut lines = draw_asker(&question.server, question.call.as_deref(), &asks, width, theme);
    let texts = question.messages.iter().map(|(role, text)| format!("{role}: {text}"));
    let mut room = MAX_SHOWN_BYTES;
    let mut omitted = 0;
    for text in texts {
        let end = text.floor_char_boundary(room);
        lines.extend(wrap_text(&text[..end], theme.style(Role::Text), width, &[Span::raw("  ")]));
        (room, omitted) = (room - end, omitted + text.len() - end);
    }
    if omitted > 0 {
        let note = format!("… {omitted} bytes more");
        lines.extend(wrap_text(&note, theme.style(Role::Warning), width, &[]));
    }
    lines
}

/// Returns the line that names the server and the call of a question.
fn draw_asker(
    server: &str,
    call: Option<&str>,
    asks: &str,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let call = match call {
        Some(tool) => format!(" during {tool}"),
        None => String::new(),
    };
    let spans = [
        Span::styled("Server ", theme.style(Role::Warning)),
        Span::styled(server.to_owned(), theme.style(Role::Strong)),
        Span::styled(format!("{call} {asks}"), theme.style(Role::Warning)),
    ];
    wrap_spans(&spans, width, &[], &[])
}

fn permitted_values(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text { format: Some(format), .. } => format.to_string(),
        FieldKind::Text { .. } => "text".to_owned(),
        FieldKind::Number { is_integer: true, .. } => "a whole number".to_owned(),
        FieldKind::Number { .. } => "a number".to_owned(),
        FieldKind::Boolean => "yes or no".to_owned(),
        FieldKind::SingleChoice { options } | FieldKind::MultiChoice { options, .. } => {
            let labels = options.iter().enumerate();
            let labels = labels.map(|(index, option)| format!("{} {}", index + 1, option.label()));
            let labels = labels.collect::<Vec<_>>().join(", ");
            let several = matches!(kind, FieldKind::MultiChoice { .. });
            if several { format!("several of {labels}") } else { format!("one of {labels}") }
        }
    }
}

/// Returns the start of a label or a value.
fn shown_line(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINE_BYTES)]
}

fn shown_start(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)]
}

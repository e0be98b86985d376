//! The panel of a question in place of the editor: an approval, a request for the model, a form.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use innkeeper_agent::safety::DecisionScope;
use innkeeper_agent::server_requests::ElicitationResponse;
use innkeeper_agent::server_requests::form::{FieldKind, Form, FormField};
use ratatui::text::{Line, Span};
use serde_json::{Map, Value};

use super::editor::Editor;
use super::theme::{Role, Theme};
use super::wrap::{wrap_spans, wrap_text};
use crate::chat::question::{ApprovalAnswer, ApprovalQuestion, Question, RequestedInput};
use crate::chat::question::{ElicitationQuestion, SamplingQuestion};
use crate::output::IndentedJson;

/// Maximum number of bytes of arguments or of a message that a panel shows.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// The panel of one question.
pub(crate) struct QuestionPanel {
    question: Question,
    /// The editor of changed arguments, or of a field.
    editor: Option<Editor>,
    problem: Option<String>,
    form: FormState,
    /// Number of lines above the shown lines.
    pub(crate) scroll: usize,
}

/// The values of a form so far.
#[derive(Default)]
struct FormState {
    /// The index of the field that the editor shows.
    field: usize,
    values: Map<String, Value>,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PanelOutcome {
    /// The question is open.
    Open,
    /// The question is answered; the transcript shows the text.
    Answered(String),
}

impl std::fmt::Debug for QuestionPanel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuestionPanel").field("question", &self.question).finish_non_exhaustive()
    }
}

impl QuestionPanel {
    pub(crate) fn new(question: Question) -> Self {
        let has_fields = match &question {
            Question::Elicitation(
                ElicitationQuestion { input: RequestedInput::Form(form), .. },
                _,
            ) => !form.fields().is_empty(),
            Question::Elicitation(..) | Question::Approval(..) | Question::Sampling(..) => false,
        };
        let editor = has_fields.then(Editor::new);
        Self { question, editor, problem: None, form: FormState::default(), scroll: 0 }
    }

    /// Returns whether nobody waits for the answer any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.question.is_withdrawn()
    }

    /// Returns the editor, if the panel has one.
    pub(crate) fn editor_mut(&mut self) -> Option<&mut Editor> {
        self.editor.as_mut()
    }

    /// Handles a key. An answered panel must be dropped.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> PanelOutcome {
        match (key.code, self.editor.is_some()) {
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(5),
            (KeyCode::PageDown, _) => self.scroll += 5,
            (KeyCode::Up, false) => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::Down, false) => self.scroll += 1,
            _ => return self.on_answer_key(key),
        }
        PanelOutcome::Open
    }

    fn on_answer_key(&mut self, key: KeyEvent) -> PanelOutcome {
        match &self.question {
            Question::Approval(..) if self.editor.is_some() => self.on_arguments_key(key),
            Question::Approval(..) => self.on_approval_key(key),
            Question::Sampling(..) => match key.code {
                KeyCode::Char('y') => self.answer_sampling(true),
                KeyCode::Char('n') | KeyCode::Esc => self.answer_sampling(false),
                _ => PanelOutcome::Open,
            },
            Question::Elicitation(question, _) => match &question.input {
                RequestedInput::Form(form) => {
                    let form = form.clone();
                    self.on_form_key(&form, key)
                }
                RequestedInput::Url { .. } => match key.code {
                    KeyCode::Char('y') => self.answer_elicitation(
                        ElicitationResponse::Accept(Map::new()),
                        "agreed to open the address",
                    ),
                    KeyCode::Char('n') => {
                        self.answer_elicitation(ElicitationResponse::Decline, "declined")
                    }
                    KeyCode::Esc => {
                        self.answer_elicitation(ElicitationResponse::Cancel, "closed the question")
                    }
                    _ => PanelOutcome::Open,
                },
            },
        }
    }

    fn on_approval_key(&mut self, key: KeyEvent) -> PanelOutcome {
        let (answer, text) = match key.code {
            KeyCode::Char('y') => (ApprovalAnswer::Allow(DecisionScope::Call), "allowed once"),
            KeyCode::Char('t') => {
                (ApprovalAnswer::Allow(DecisionScope::Tool), "allowed for this tool")
            }
            KeyCode::Char('s') => {
                (ApprovalAnswer::Allow(DecisionScope::Server), "allowed for this server")
            }
            KeyCode::Char('n') | KeyCode::Esc => {
                (ApprovalAnswer::Deny(DecisionScope::Call), "denied")
            }
            KeyCode::Char('N') => {
                (ApprovalAnswer::Deny(DecisionScope::Tool), "denied for this tool")
            }
            KeyCode::Char('e') => {
                if let Question::Approval(question, _) = &self.question {
                    let mut editor = Editor::new();
                    editor.set_text(&IndentedJson(&question.arguments).to_string());
                    self.editor = Some(editor);
                }
                return PanelOutcome::Open;
            }
            _ => return PanelOutcome::Open,
        };
        self.answer_approval(answer, text)
    }

    fn on_arguments_key(&mut self, key: KeyEvent) -> PanelOutcome {
        match key.code {
            KeyCode::Esc => {
                (self.editor, self.problem) = (None, None);
                PanelOutcome::Open
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = self.editor.as_ref().map(Editor::text).unwrap_or_default();
                match serde_json::from_str::<Map<String, Value>>(&text) {
                    Ok(_) => self.answer_approval(
                        ApprovalAnswer::AllowWith(text),
                        "allowed with changed arguments",
                    ),
                    Err(error) => {
                        self.problem = Some(format!("the arguments are no JSON object: {error}"));
                        PanelOutcome::Open
                    }
                }
            }
            _ => self.edit(key),
        }
    }

    fn on_form_key(&mut self, form: &Form, key: KeyEvent) -> PanelOutcome {
        match key.code {
            KeyCode::Esc => self.answer_elicitation(ElicitationResponse::Cancel, "closed the form"),
            KeyCode::Char('d') if key.modifiers == KeyModifiers::CONTROL => {
                self.answer_elicitation(ElicitationResponse::Decline, "declined")
            }
            KeyCode::BackTab => {
                self.form.field = self.form.field.saturating_sub(1);
                self.show_field(form);
                PanelOutcome::Open
            }
            KeyCode::Enter | KeyCode::Tab if key.modifiers.is_empty() => self.next_field(form),
            _ => self.edit(key),
        }
    }

    /// Checks the input of the current field, and goes to the next field or sends the form.
    fn next_field(&mut self, form: &Form) -> PanelOutcome {
        if let Some(field) = form.fields().get(self.form.field) {
            let input = self.editor.as_ref().map(Editor::text).unwrap_or_default();
            match field.parse_input(&input) {
                Ok(Some(value)) => drop(self.form.values.insert(field.name.clone(), value)),
                Ok(None) => drop(self.form.values.remove(&field.name)),
                Err(error) => {
                    self.problem = Some(error.to_string());
                    return PanelOutcome::Open;
                }
            }
            self.form.field += 1;
        }
        if self.form.field < form.fields().len() {
            self.show_field(form);
            return PanelOutcome::Open;
        }
        let values = std::mem::take(&mut self.form.values);
        self.answer_elicitation(ElicitationResponse::Accept(values), "sent the form")
    }

    fn show_field(&mut self, form: &Form) {
        self.problem = None;
        let mut editor = Editor::new();
        if let Some(value) =
            form.fields().get(self.form.field).and_then(|field| self.form.values.get(&field.name))
        {
            editor.set_text(&input_text(value));
        }
        self.editor = Some(editor);
    }

    fn edit(&mut self, key: KeyEvent) -> PanelOutcome {
        self.problem = None;
        if let Some(editor) = &mut self.editor {
            editor.on_key(key);
        }
        PanelOutcome::Open
    }

    fn answer_approval(&mut self, answer: ApprovalAnswer, text: &str) -> PanelOutcome {
        let (question, sent) = match &mut self.question {
            Question::Approval(question, reply) => {
                (question.tool.clone(), take(reply).send(answer))
            }
            Question::Sampling(..) | Question::Elicitation(..) => return PanelOutcome::Open,
        };
        answered(sent.is_ok(), &format!("{question}: {text}"))
    }

    fn answer_sampling(&mut self, is_allowed: bool) -> PanelOutcome {
        let (server, sent) = match &mut self.question {
            Question::Sampling(question, reply) => {
                (question.server.clone(), take(reply).send(is_allowed).is_ok())
            }
            Question::Approval(..) | Question::Elicitation(..) => return PanelOutcome::Open,
        };
        let text = if is_allowed { "the model answers the server" } else { "denied" };
        answered(sent, &format!("{server}: {text}"))
    }

    fn answer_elicitation(&mut self, answer: ElicitationResponse, text: &str) -> PanelOutcome {
        let (server, sent) = match &mut self.question {
            Question::Elicitation(question, reply) => {
                (question.server.clone(), take(reply).send(answer).is_ok())
            }
            Question::Approval(..) | Question::Sampling(..) => return PanelOutcome::Open,
        };
        answered(sent, &format!("{server}: {text}"))
    }

    /// Returns the lines above the editor, and the line of keys.
    pub(crate) fn draw(&self, width: usize, theme: Theme) -> (Vec<Line<'static>>, String) {
        let mut lines = match &self.question {
            Question::Approval(question, _) => self.draw_approval(question, width, theme),
            Question::Sampling(question, _) => draw_sampling(question, width, theme),
            Question::Elicitation(question, _) => self.draw_elicitation(question, width, theme),
        };
        if let Some(problem) = &self.problem {
            lines.extend(wrap_text(problem, theme.style(Role::Error), width, &[]));
        }
        (lines, self.keys().to_owned())
    }

    fn keys(&self) -> &'static str {
        match &self.question {
            Question::Approval(..) if self.editor.is_some() => {
                "Enter run with these arguments · Esc back"
            }
            Question::Approval(..) => {
                "y once · t this tool · s this server · n no · N never this tool · e edit"
            }
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
        let hints = &question.annotations;
        let effect = match (hints.read_only, hints.destructive) {
            (true, _) => "says that it only reads",
            (false, true) => "may change or delete something",
            (false, false) => "says that it deletes nothing",
        };
        let reach = if hints.open_world { ", may reach other systems" } else { "" };
        let pin = if question.is_pinned { "pinned" } else { "not pinned" };
        let facts = format!("{effect}{reach}; {pin}");
        lines.extend(wrap_text(&facts, theme.style(Role::Dim), width, &[]));
        if let Some(description) = &question.description {
            let said = format!("The tool says: {}", shown(description));
            lines.extend(wrap_text(&said, theme.style(Role::Text), width, &[]));
        }
        if self.editor.is_none() {
            let arguments = IndentedJson(&question.arguments).to_string();
            let indent = [Span::raw("  ")];
            lines.extend(wrap_text(shown(&arguments), theme.style(Role::Code), width, &indent));
        }
        lines
    }

    fn draw_elicitation(
        &self,
        question: &ElicitationQuestion,
        width: usize,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let asks = match &question.input {
            RequestedInput::Form(_) => "asks",
            RequestedInput::Url { .. } => "asks you to open an address",
        };
        let mut lines = draw_asker(&question.server, question.call.as_deref(), asks, width, theme);
        lines.extend(wrap_text(shown(&question.message), theme.style(Role::Text), width, &[]));
        match &question.input {
            RequestedInput::Form(form) => {
                for (index, field) in form.fields().iter().enumerate() {
                    lines.extend(self.draw_field(index, field, width, theme));
                }
            }
            RequestedInput::Url { url, host } => {
                let host = format!("host: {host}");
                lines.extend(wrap_text(&host, theme.style(Role::Strong), width, &[]));
                lines.extend(wrap_text(shown(url), theme.style(Role::Link), width, &[]));
                let note = "This program opens nothing. Open the address yourself if you trust it.";
                lines.extend(wrap_text(note, theme.style(Role::Dim), width, &[]));
            }
        }
        lines
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
        let line = format!("{}{required}: {}", field.label(), shown(&value));
        let indent = [Span::raw("  ")];
        let first = [Span::raw(mark)];
        let mut lines =
            wrap_spans(&[Span::styled(line, theme.style(role))], width, &first, &indent);
        if is_current {
            let description = field.description.as_deref().map(|text| shown(text).to_owned());
            let default = field.default.as_ref();
            let default = default.map(|value| format!("default: {}", input_text(value)));
            let notes = [description, Some(permitted_values(&field.kind)), default];
            for note in notes.into_iter().flatten() {
                lines.extend(wrap_text(&note, theme.style(Role::Dim), width, &indent));
            }
        }
        lines
    }
}

fn draw_sampling(question: &SamplingQuestion, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let asks =
        format!("asks {} for a message of at most {} tokens", question.model, question.max_tokens);
    let mut lines = draw_asker(&question.server, question.call.as_deref(), &asks, width, theme);
    for (role, text) in &question.messages {
        let text = format!("{role}: {}", shown(text));
        lines.extend(wrap_text(&text, theme.style(Role::Text), width, &[Span::raw("  ")]));
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

/// Returns the text for a value in the editor.
fn input_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(input_text).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
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

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)]
}

fn answered(is_sent: bool, text: &str) -> PanelOutcome {
    PanelOutcome::Answered(match is_sent {
        true => text.to_owned(),
        false => "the question was withdrawn".to_owned(),
    })
}

/// Takes the sender of the only answer; a second answer has no receiver.
fn take<T>(reply: &mut tokio::sync::oneshot::Sender<T>) -> tokio::sync::oneshot::Sender<T> {
    std::mem::replace(reply, tokio::sync::oneshot::channel().0)
}

//! The panel of a question in place of the editor: an approval, a request for the model, a form.

mod approval;
mod draw;

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use innkeeper_agent::server_requests::ElicitationResponse;
use innkeeper_agent::server_requests::form::Form;
use serde_json::{Map, Value};

use super::editor::Editor;
use crate::chat::question::{ApprovalAnswer, ElicitationQuestion, Question, RequestedInput};

pub(crate) struct QuestionPanel {
    question: Question,
    /// The editor of changed arguments, of the reason for a denial, or of a field.
    editor: Option<Editor>,
    /// What the editor of an approval writes.
    input: ApprovalInput,
    problem: Option<String>,
    form: FormState,
    /// Number of lines above the shown lines.
    pub(crate) scroll: usize,
    /// Whether the next frame scrolls to the current field.
    scrolls_to_field: bool,
    /// Whether a frame has shown the last line.
    has_shown_end: bool,
}

/// The values of a form so far.
#[derive(Default)]
struct FormState {
    /// The index of the field that the editor shows.
    field: usize,
    values: Map<String, Value>,
}

/// What the editor of an approval writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ApprovalInput {
    /// The arguments of the call.
    #[default]
    Arguments,
    /// The reason for a denial, for the model.
    DenialReason,
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
        Self {
            question,
            editor,
            input: ApprovalInput::default(),
            problem: None,
            form: FormState::default(),
            scroll: 0,
            scrolls_to_field: true,
            has_shown_end: false,
        }
    }

    /// Returns whether nobody waits for the answer any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.question.is_withdrawn()
    }

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

    /// Records that a frame has shown the last line.
    pub(crate) fn set_end_shown(&mut self) {
        if !std::mem::replace(&mut self.has_shown_end, true) {
            self.problem = None;
        }
    }

    /// Whether a key agrees to a question whose last lines nobody has seen.
    fn is_too_early(&self, key: KeyEvent) -> bool {
        let agrees = match &self.question {
            Question::Approval(..) => matches!(key.code, KeyCode::Char('y' | 't' | 's' | 'a')),
            Question::Sampling(..) | Question::Elicitation(..) => key.code == KeyCode::Char('y'),
        };
        agrees && self.editor.is_none() && !self.has_shown_end
    }

    fn on_answer_key(&mut self, key: KeyEvent) -> PanelOutcome {
        if self.is_too_early(key) {
            self.problem = Some("read the question to its end first: PageDown".to_owned());
            return PanelOutcome::Open;
        }
        match &self.question {
            Question::Approval(..) if self.editor.is_some() => self.on_input_key(key),
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
        self.scrolls_to_field = true;
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

    /// Scrolls to the current field after its change.
    pub(crate) fn show_current_field(&mut self, field: Range<usize>, height: usize) {
        if std::mem::take(&mut self.scrolls_to_field) && !field.is_empty() {
            let first = field.end.saturating_sub(height).min(field.start);
            let last = field.start;
            self.scroll = self.scroll.clamp(first, last);
        }
    }
}

fn input_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(input_text).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
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

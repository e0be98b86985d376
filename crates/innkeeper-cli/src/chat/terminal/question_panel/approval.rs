//! The keys of an approval: decisions, changed arguments, and the reason for a denial.

use crossterm::event::{KeyCode, KeyEvent};
use innkeeper_agent::safety::DecisionScope;
use serde_json::{Map, Value};

use super::super::editor::Editor;
use super::{ApprovalInput, PanelOutcome, QuestionPanel};
use crate::chat::question::{ApprovalAnswer, Question};
use crate::output::IndentedJson;

impl QuestionPanel {
    pub(super) fn on_approval_key(&mut self, key: KeyEvent) -> PanelOutcome {
        let (answer, text) = match key.code {
            KeyCode::Char('y') => (ApprovalAnswer::Allow(DecisionScope::Call), "allowed once"),
            KeyCode::Char('t') => {
                (ApprovalAnswer::Allow(DecisionScope::Tool), "allowed for this tool")
            }
            KeyCode::Char('s') => {
                (ApprovalAnswer::Allow(DecisionScope::Server), "allowed for this server")
            }
            KeyCode::Char('a') => match self.permanent_obstacle() {
                Some(obstacle) => {
                    self.problem = Some(obstacle.to_owned());
                    return PanelOutcome::Open;
                }
                None => (ApprovalAnswer::AllowAlways, "allowed always for this tool"),
            },
            KeyCode::Char('n') | KeyCode::Esc => {
                (ApprovalAnswer::Deny(DecisionScope::Call, None), "denied")
            }
            KeyCode::Char('N') => {
                (ApprovalAnswer::Deny(DecisionScope::Tool, None), "denied for this tool")
            }
            KeyCode::Char('e') => {
                if let Question::Approval(question, _) = &self.question {
                    let arguments = IndentedJson(&question.arguments).to_string();
                    self.open_editor(ApprovalInput::Arguments, &arguments);
                }
                return PanelOutcome::Open;
            }
            KeyCode::Char('r') => {
                self.open_editor(ApprovalInput::DenialReason, "");
                return PanelOutcome::Open;
            }
            _ => return PanelOutcome::Open,
        };
        self.answer_approval(answer, text)
    }

    /// Returns why no rule for later conversations can be stored.
    pub(super) fn permanent_obstacle(&self) -> Option<&'static str> {
        match &self.question {
            Question::Approval(question, _) => question.permanent_obstacle,
            Question::Sampling(..) | Question::Elicitation(..) => None,
        }
    }

    fn open_editor(&mut self, input: ApprovalInput, text: &str) {
        let mut editor = Editor::new();
        editor.set_text(text);
        (self.editor, self.input) = (Some(editor), input);
    }

    /// Handles a key while the person changes the arguments, or writes a reason.
    pub(super) fn on_input_key(&mut self, key: KeyEvent) -> PanelOutcome {
        match key.code {
            KeyCode::Esc => {
                (self.editor, self.problem) = (None, None);
                PanelOutcome::Open
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = self.editor.as_ref().map(Editor::text).unwrap_or_default();
                match self.input {
                    ApprovalInput::Arguments => self.send_arguments(text),
                    ApprovalInput::DenialReason => self.send_reason(&text),
                }
            }
            _ => self.edit(key),
        }
    }

    fn send_arguments(&mut self, text: String) -> PanelOutcome {
        match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(_) => self
                .answer_approval(ApprovalAnswer::AllowWith(text), "allowed with changed arguments"),
            Err(error) => {
                self.problem = Some(format!("the arguments are no JSON object: {error}"));
                PanelOutcome::Open
            }
        }
    }

    /// Denies the call with a reason of one line; without a text, with none.
    fn send_reason(&mut self, text: &str) -> PanelOutcome {
        let reason = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match reason.is_empty() {
            true => self.answer_approval(ApprovalAnswer::Deny(DecisionScope::Call, None), "denied"),
            false => {
                let text = format!("denied: {reason}");
                let answer = ApprovalAnswer::Deny(DecisionScope::Call, Some(reason));
                self.answer_approval(answer, &text)
            }
        }
    }
}

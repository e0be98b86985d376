//! What each key does.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::Instant;

use super::super::theme::Role;
use super::suggestions::Suggestions;
use super::{Action, HistorySearch, LEAVE_DELAY, MAX_QUEUED_MESSAGES, Screen};
use crate::chat::completion::{Completions, mentioned_name};
use crate::chat::slash_command::{SlashCommand, TypedLine, parse_line};

impl Screen {
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.hint = None;
        if is_control(key, 'c') {
            return self.on_interrupt_key(now);
        }
        self.last_interrupt = None;
        self.questions.note_key(now);
        if self.questions.is_shown() {
            if let Some(answer) = self.questions.on_key(key) {
                self.transcript.notice(Role::Dim, answer);
            }
            return None;
        }
        if self.search.is_some() {
            self.on_search_key(key);
            return None;
        }
        if let Some(action) = self.on_view_key(key) {
            return action;
        }
        if self.transcript.has_selection() {
            return self.on_selection_key(key);
        }
        let text = self.editor.text_before_cursor();
        self.suggestions.take_if(|suggestions| !suggestions.complete(&text));
        if let Some(action) = self.on_suggestion_key(key) {
            return action;
        }
        self.on_editor_key(key)
    }

    fn on_interrupt_key(&mut self, now: Instant) -> Option<Action> {
        let is_second = self.last_interrupt.is_some_and(|first| now - first <= LEAVE_DELAY);
        if is_second {
            return Some(Action::Quit);
        }
        self.last_interrupt = Some(now);
        self.hint = Some("press Ctrl-C again to leave".to_owned());
        if self.run.is_some() {
            return Some(Action::Interrupt);
        }
        if !self.questions.is_shown() {
            self.editor.set_text("");
            (self.suggestions, self.search) = (None, None);
        }
        None
    }

    /// Handles the keys of the transcript, which work in each state. `None` for other keys.
    fn on_view_key(&mut self, key: KeyEvent) -> Option<Option<Action>> {
        match key.code {
            KeyCode::PageUp => self.transcript.scroll(10),
            KeyCode::PageDown => self.transcript.scroll(-10),
            KeyCode::Home if key.modifiers == KeyModifiers::CONTROL => {
                self.transcript.scroll_to_start();
            }
            KeyCode::End if key.modifiers == KeyModifiers::CONTROL => {
                self.transcript.scroll_to_end();
            }
            KeyCode::Char('o') if is_control(key, 'o') => self.transcript.toggle_all_details(),
            KeyCode::Char('r') if is_control(key, 'r') => {
                self.search = Some(HistorySearch { text: String::new(), found: None });
                self.editor.want_earlier_messages();
            }
            KeyCode::Char('x') if is_control(key, 'x') => {
                return Some(Some(Action::Command(SlashCommand::Edit, String::new())));
            }
            _ => return None,
        }
        Some(None)
    }

    fn on_selection_key(&mut self, key: KeyEvent) -> Option<Action> {
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.transcript.select(false),
            KeyCode::Down | KeyCode::Char('j') => self.transcript.select(true),
            KeyCode::Enter | KeyCode::Char(' ') => self.transcript.toggle_selected(),
            KeyCode::Char('y' | 'c') => {
                return Some(Action::Command(SlashCommand::Copy, String::new()));
            }
            KeyCode::Esc | KeyCode::Tab | KeyCode::Char('q') => {
                self.transcript.unselect();
                self.transcript.scroll_to_end();
            }
            _ => {}
        }
        None
    }

    /// Handles the keys of the suggestions; `None` for other keys. Enter takes a value only if Up or
    /// Down selected the value, so that Enter else sends the text as the person typed it.
    fn on_suggestion_key(&mut self, key: KeyEvent) -> Option<Option<Action>> {
        let suggestions = self.suggestions.as_mut()?;
        match key.code {
            KeyCode::Up => suggestions.select(false),
            KeyCode::Down => suggestions.select(true),
            KeyCode::Esc => self.suggestions = None,
            KeyCode::Tab => return Some(self.accept_suggestion()),
            KeyCode::Enter if key.modifiers.is_empty() && suggestions.has_selection() => {
                return Some(self.accept_suggestion());
            }
            _ => return None,
        }
        Some(None)
    }

    /// Inserts the selected or the first value.
    fn accept_suggestion(&mut self) -> Option<Action> {
        let (replaced, value) = self.suggestions.take()?.into_value();
        self.editor.replace_before_cursor(replaced.chars().count(), &value.text);
        match value.attachment {
            Some(name) => Some(Action::Command(SlashCommand::Attach, name)),
            None => self.complete_mention(),
        }
    }

    /// Looks for values of a name behind `@`.
    fn complete_mention(&self) -> Option<Action> {
        let text = self.editor.text_before_cursor();
        let is_mention = !text.starts_with('/') && mentioned_name(&text).is_some();
        is_mention.then_some(Action::Complete { text, is_automatic: true })
    }

    fn on_editor_key(&mut self, key: KeyEvent) -> Option<Action> {
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return self.on_enter(),
            KeyCode::Enter => self.editor.insert_newline(),
            KeyCode::Esc if self.run.is_some() => return Some(Action::Interrupt),
            KeyCode::Esc => self.transcript.scroll_to_end(),
            KeyCode::Tab => {
                let text = self.editor.text_before_cursor();
                if text.starts_with('/') || mentioned_name(&text).is_some() {
                    return Some(Action::Complete { text, is_automatic: false });
                }
                self.transcript.select(true);
            }
            KeyCode::Char('d') if is_control(key, 'd') && self.editor.is_empty() => {
                return Some(Action::Command(SlashCommand::Quit, String::new()));
            }
            _ => {
                self.editor.on_key(key);
                if key.code == KeyCode::Up {
                    self.editor.want_earlier_messages();
                }
                let before = self.editor.text_before_cursor();
                let is_at_end = before.len() == self.editor.shown_text().len();
                self.suggestions = Some(before)
                    .filter(|_| is_at_end)
                    .as_deref()
                    .and_then(Suggestions::of_commands);
                return self.complete_mention();
            }
        }
        None
    }

    /// Sends the text of the editor, or runs its command.
    fn on_enter(&mut self) -> Option<Action> {
        self.suggestions = None;
        if self.editor.text().trim().is_empty() {
            return None;
        }
        match parse_line(self.editor.text().trim()) {
            TypedLine::UnknownCommand(name) => {
                self.hint = Some(format!("no command /{name}; /help lists the commands"));
                None
            }
            TypedLine::Command(command, argument) => {
                self.editor.take();
                Some(Action::Command(command, argument))
            }
            TypedLine::Message(_) if self.run.is_some() || self.work.is_some() => {
                if self.queued.len() >= MAX_QUEUED_MESSAGES {
                    self.hint = Some("too many messages wait for the end of the run".to_owned());
                    return None;
                }
                let text = self.editor.take();
                self.queued.push_back(text);
                None
            }
            TypedLine::Message(text) => {
                self.editor.take();
                Some(Action::Send(text))
            }
        }
    }

    fn on_search_key(&mut self, key: KeyEvent) {
        let Some(search) = &mut self.search else { return };
        match key.code {
            KeyCode::Char('r') if is_control(key, 'r') => {
                let before = search.found.unwrap_or(self.editor.history_len());
                let found = self.editor.search(&search.text, before).map(|(at, _)| at);
                search.found = found.or(search.found);
            }
            KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.extend_search(character.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => {
                search.text.pop();
                self.extend_search("");
            }
            KeyCode::Esc => self.search = None,
            _ => {
                // Any other key takes the found message.
                let found = search.found;
                let message = found.and_then(|at| self.editor.search("", at + 1));
                let message = message.map(|(_, message)| message.to_owned());
                self.search = None;
                if let Some(message) = message {
                    self.editor.set_text(&message);
                }
            }
        }
    }

    /// Searches the newest message with a longer text. Returns whether there is a search.
    pub(super) fn extend_search(&mut self, text: &str) -> bool {
        let Some(search) = &mut self.search else { return false };
        search.text.push_str(text);
        let all = self.editor.history_len();
        search.found = self.editor.search(&search.text, all).map(|(at, _)| at);
        true
    }

    /// Shows values for the end of the text before the cursor. If a person asked for values, one
    /// value replaces the end at once.
    pub(crate) fn on_completions(
        &mut self,
        text: &str,
        completions: Completions,
        is_automatic: bool,
    ) -> Option<Action> {
        if self.editor.text_before_cursor() != text {
            return None;
        }
        self.suggestions = Suggestions::new(text, completions);
        if !is_automatic {
            self.hint = None;
        }
        match &self.suggestions {
            _ if is_automatic => None,
            None => {
                self.hint = Some("no value completes the text".to_owned());
                None
            }
            Some(one) if one.len() == 1 => self.accept_suggestion(),
            Some(_) => None,
        }
    }
}

fn is_control(key: KeyEvent, character: char) -> bool {
    key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char(character)
}

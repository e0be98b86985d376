//! The values that complete the text of the editor.

use crate::chat::slash_command::SlashCommand;

/// Maximum number of shown values.
pub(super) const MAX_SHOWN: usize = 6;

/// The values that complete the last word of a text.
#[derive(Debug)]
pub(super) struct Suggestions {
    /// The text that the values complete.
    text: String,
    /// The text before the last word.
    before: String,
    /// Each value with its purpose.
    values: Vec<(String, String)>,
    selected: usize,
}

impl Suggestions {
    /// Returns the commands that start with a text; `None` without such a command.
    pub(super) fn of_commands(text: &str) -> Option<Self> {
        let word = text.strip_prefix('/').filter(|word| !word.contains(char::is_whitespace))?;
        let matching = SlashCommand::ALL.iter().filter(|(_, name, ..)| name.starts_with(word));
        let values = matching.map(|(_, name, arguments, purpose)| {
            let space = if arguments.is_empty() { "" } else { " " };
            (format!("/{name}{space}"), (*purpose).to_owned())
        });
        Self::new(text, String::new(), values.collect())
    }

    /// Returns the values that start with the last word of a text, or, without such a value, those
    /// that contain the word.
    pub(super) fn of_values(text: &str, values: &[String]) -> Option<Self> {
        let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
        let before = &text[..text.len() - word.len()];
        let select = |keep: &dyn Fn(&str) -> bool| -> Vec<(String, String)> {
            let kept = values.iter().filter(|value| keep(value));
            kept.map(|value| (value.clone(), String::new())).collect()
        };
        let mut matching = select(&|value| value.starts_with(word));
        if matching.is_empty() {
            matching = select(&|value| value.contains(word));
        }
        Self::new(text, before.to_owned(), matching)
    }

    fn new(text: &str, before: String, values: Vec<(String, String)>) -> Option<Self> {
        let text = text.to_owned();
        (!values.is_empty()).then_some(Self { text, before, values, selected: 0 })
    }

    /// Returns whether the values complete this text.
    pub(super) fn complete(&self, text: &str) -> bool {
        self.text == text
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn select(&mut self, is_next: bool) {
        let last = self.values.len() - 1;
        self.selected = match is_next {
            true => (self.selected + 1).min(last),
            false => self.selected.saturating_sub(1),
        };
    }

    /// Returns the text with the selected value.
    pub(super) fn completed_text(&self) -> String {
        let value = self.values.get(self.selected).map_or("", |(value, _)| value);
        format!("{}{value}", self.before)
    }

    /// Returns the shown values with their purposes, and whether a value is selected.
    pub(super) fn visible_values(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let first = self.selected.saturating_sub(MAX_SHOWN - 1);
        let values = self.values.iter().enumerate().skip(first).take(MAX_SHOWN);
        values.map(|(at, (value, purpose))| (&**value, &**purpose, at == self.selected))
    }
}

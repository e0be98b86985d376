//! The values that complete the text of the editor.

use crate::chat::completion::{CompletionValue, Completions};
use crate::chat::slash_command::SlashCommand;

/// Maximum number of shown values.
pub(super) const MAX_SHOWN: usize = 6;

/// The values that complete the text before the cursor.
#[derive(Debug)]
pub(super) struct Suggestions {
    /// The text before the cursor that the values complete.
    text: String,
    /// The end of the text that a value replaces.
    replaced: String,
    values: Vec<CompletionValue>,
    /// The value that Up or Down selected.
    selected: Option<usize>,
}

impl Suggestions {
    /// Returns the commands that start with a text; `None` without such a command.
    pub(super) fn of_commands(text: &str) -> Option<Self> {
        let word = text.strip_prefix('/').filter(|word| !word.contains(char::is_whitespace))?;
        let matching = SlashCommand::ALL.iter().filter(|(_, name, ..)| name.starts_with(word));
        let values = matching.map(|(_, name, arguments, purpose)| {
            let space = if arguments.is_empty() { "" } else { " " };
            CompletionValue::new(format!("/{name}{space}"), *purpose)
        });
        let values = values.collect();
        Self::new(text, Completions { replaced: text.to_owned(), values })
    }

    /// Returns the suggestions for the text before the cursor; `None` without a value.
    pub(super) fn new(text: &str, completions: Completions) -> Option<Self> {
        let Completions { replaced, values } = completions;
        let has_values = !values.is_empty() && text.ends_with(&replaced);
        has_values.then(|| Self { text: text.to_owned(), replaced, values, selected: None })
    }

    /// Returns whether the values complete this text before the cursor.
    pub(super) fn complete(&self, text: &str) -> bool {
        self.text == text
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether Up or Down selected a value.
    pub(super) fn has_selection(&self) -> bool {
        self.selected.is_some()
    }

    /// Selects the next value, or the value before.
    pub(super) fn select(&mut self, is_next: bool) {
        let last = self.values.len() - 1;
        self.selected = Some(match (self.selected, is_next) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => (at + 1).min(last),
            (Some(at), false) => at.saturating_sub(1),
        });
    }

    /// Returns the end of the text that a value replaces, and the selected or the first value.
    pub(super) fn into_value(mut self) -> (String, CompletionValue) {
        let value = self.values.swap_remove(self.selected.unwrap_or(0));
        (self.replaced, value)
    }

    /// Returns the shown values with their purposes, and whether a value is selected.
    pub(super) fn visible_values(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let first = self.selected.unwrap_or(0).saturating_sub(MAX_SHOWN - 1);
        let values = self.values.iter().enumerate().skip(first).take(MAX_SHOWN);
        values.map(|(at, value)| (&*value.label, &*value.purpose, Some(at) == self.selected))
    }
}

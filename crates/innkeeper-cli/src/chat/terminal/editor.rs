//! The editor of a message: several lines, history, and long pasted texts as one word.

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget as _;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};

use super::theme::{Role, Theme};

/// A pasted text of more bytes or lines is one word in the editor.
const MAX_INLINE_PASTE_BYTES: usize = 2 << 10;
const MAX_INLINE_PASTE_LINES: usize = 12;

/// A set text of more bytes, such as a recalled message, is one word in the editor, so that a frame
/// and a key cost no more than this number of bytes.
const MAX_EDITED_BYTES: usize = 16 << 10;

/// Maximum number of messages in the history.
const MAX_HISTORY: usize = 1_000;

pub(crate) struct Editor {
    area: TextArea<'static>,
    pastes: Vec<PastedText>,
    /// The messages, oldest first, each once.
    history: Vec<String>,
    /// The message of the history that the editor shows, and the text before.
    recalled: Option<(usize, String)>,
    /// Whether the history has the messages of earlier conversations.
    has_earlier_messages: bool,
    /// Whether a key needs the messages of earlier conversations.
    wants_earlier_messages: bool,
    /// Whether the last key asked for a message that is older than the history.
    wants_older: bool,
}

/// A text that the editor shows as one word.
struct PastedText {
    placeholder: String,
    text: String,
}

impl std::fmt::Debug for Editor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor").field("lines", &self.area.lines()).finish_non_exhaustive()
    }
}

impl Editor {
    pub(crate) fn new() -> Self {
        Self {
            area: text_area(""),
            pastes: Vec::new(),
            history: Vec::new(),
            recalled: None,
            has_earlier_messages: false,
            wants_earlier_messages: false,
            wants_older: false,
        }
    }

    pub(crate) fn shown_text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Returns the shown text before the cursor.
    pub(crate) fn text_before_cursor(&self) -> String {
        let (row, column) = self.cursor();
        let lines = self.area.lines();
        let mut text: String = lines.iter().take(row).flat_map(|line| [line, "\n"]).collect();
        text.extend(lines.get(row).into_iter().flat_map(|line| line.chars().take(column)));
        text
    }

    /// Replaces this number of characters before the cursor.
    pub(crate) fn replace_before_cursor(&mut self, characters: usize, text: &str) {
        self.remove_before_cursor(characters);
        self.area.insert_str(text);
    }

    fn remove_before_cursor(&mut self, characters: usize) {
        (0..characters).for_each(|_| self.area.move_cursor(CursorMove::Back));
        self.area.delete_str(characters);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Returns the text with the pasted texts in place of their words.
    pub(crate) fn text(&self) -> String {
        let shown = self.shown_text();
        let mut text = String::new();
        let mut rest = &*shown;
        // A pasted text is not searched for words: another paste may contain the same characters.
        while let Some((at, paste)) = self.first_paste(rest) {
            text.push_str(&rest[..at]);
            text.push_str(&paste.text);
            rest = &rest[at + paste.placeholder.len()..];
        }
        text + rest
    }

    /// Returns the first word of a pasted text, and its position.
    fn first_paste(&self, text: &str) -> Option<(usize, &PastedText)> {
        let found =
            self.pastes.iter().filter_map(|paste| Some((text.find(&paste.placeholder)?, paste)));
        found.min_by_key(|(at, _)| *at)
    }

    /// Replaces the text; the cursor is at its end.
    pub(crate) fn set_text(&mut self, text: &str) {
        if text.len() > MAX_EDITED_BYTES {
            self.set_shown_text("");
            self.insert_pasted_word(text.to_owned());
        } else {
            self.set_shown_text(text);
        }
    }

    fn set_shown_text(&mut self, text: &str) {
        self.area = text_area(text);
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.recalled = None;
    }

    /// Empties the editor and returns the text, which the history keeps.
    pub(crate) fn take(&mut self) -> String {
        let text = self.text();
        if !text.trim().is_empty() {
            self.remember([text.clone()]);
        }
        self.set_text("");
        self.pastes.clear();
        text
    }

    /// Adds messages at the end of the history, which keeps each message once.
    pub(crate) fn remember(&mut self, messages: impl IntoIterator<Item = String>) {
        self.history.extend(messages);
        self.remove_duplicates();
    }

    /// Keeps the newest place of each message, and the newest messages.
    fn remove_duplicates(&mut self) {
        let mut known = HashSet::new();
        let mut newest: Vec<String> = std::mem::take(&mut self.history)
            .into_iter()
            .rev()
            .filter(|message| known.insert(message.clone()))
            .take(MAX_HISTORY)
            .collect();
        newest.reverse();
        self.history = newest;
    }

    /// Asks for the messages of earlier conversations.
    pub(crate) fn want_earlier_messages(&mut self) {
        self.wants_earlier_messages = true;
    }

    /// Returns whether a key needs the messages of earlier conversations for the first time.
    pub(crate) fn take_wish_for_earlier_messages(&mut self) -> bool {
        std::mem::take(&mut self.wants_earlier_messages) && !self.has_earlier_messages
    }

    /// Adds messages of earlier conversations, newest first, before the history; returns the number
    /// of added messages. A recall that waits for an older message shows the newest of them.
    pub(crate) fn add_earlier_messages(&mut self, messages: Vec<String>) -> usize {
        let before = self.history.len();
        let own: HashSet<&String> = self.history.iter().collect();
        let mut known = HashSet::new();
        let room = MAX_HISTORY.saturating_sub(before);
        let mut added: Vec<String> = messages
            .into_iter()
            .filter(|message| !own.contains(message) && known.insert(message.clone()))
            .take(room)
            .collect();
        added.reverse();
        self.history.splice(..0, added);
        self.has_earlier_messages = true;
        let count = self.history.len() - before;
        if let Some((at, _)) = &mut self.recalled {
            *at += count;
        }
        if std::mem::take(&mut self.wants_older) {
            self.recall_older();
        }
        count
    }

    /// Inserts a pasted text at the cursor.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let edited = self.area.lines().iter().map(String::len).sum::<usize>();
        let is_long = text.len() > MAX_INLINE_PASTE_BYTES
            || text.lines().count() > MAX_INLINE_PASTE_LINES
            || edited + text.len() > MAX_EDITED_BYTES;
        if !is_long {
            self.area.insert_str(&text);
            return;
        }
        self.insert_pasted_word(text);
    }

    fn insert_pasted_word(&mut self, text: String) {
        let number = self.pastes.len() + 1;
        let placeholder = format!("[pasted text {number}: {} bytes]", text.len());
        self.area.insert_str(&placeholder);
        self.pastes.push(PastedText { placeholder, text });
    }

    /// Removes the word of a pasted text before the cursor. Returns whether there is one.
    fn remove_pasted_word(&mut self) -> bool {
        let (row, column) = self.cursor();
        let before: String = self
            .area
            .lines()
            .get(row)
            .map(|line| line.chars().take(column).collect())
            .unwrap_or_default();
        let word = self.pastes.iter().find(|paste| before.ends_with(&paste.placeholder));
        let Some(characters) = word.map(|paste| paste.placeholder.chars().count()) else {
            return false;
        };
        (0..characters).for_each(|_| {
            self.area.delete_char();
        });
        true
    }

    /// Removes the word before the cursor, up to a space, or the word of a pasted text. Returns
    /// whether the line has text before the cursor.
    fn remove_word(&mut self) -> bool {
        let before = self.text_before_cursor();
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.is_empty() || self.remove_pasted_word() {
            return !line.is_empty();
        }
        let word = line.trim_end().trim_end_matches(|c: char| !c.is_whitespace());
        self.remove_before_cursor(line[word.len()..].chars().count());
        true
    }

    pub(crate) fn insert_newline(&mut self) {
        self.area.insert_newline();
    }

    /// Handles a key of the editor. Returns whether the key changed something.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> bool {
        let (row, _) = self.cursor();
        let plain = key.modifiers.is_empty();
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        self.wants_older = false;
        match key.code {
            KeyCode::Up if plain && row == 0 => self.recall_older(),
            KeyCode::Down if plain && row + 1 == self.area.lines().len() => self.recall_newer(),
            KeyCode::Backspace if plain && self.remove_pasted_word() => true,
            KeyCode::Char('u') if is_control => self.area.delete_line_by_head(),
            KeyCode::Char('w') if is_control && self.remove_word() => true,
            KeyCode::Char('m' | 'j') if key.modifiers == KeyModifiers::CONTROL => {
                self.insert_newline();
                true
            }
            _ => {
                let before = self.area.cursor();
                self.area.input(key) || self.area.cursor() != before
            }
        }
    }

    fn cursor(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    fn recall_older(&mut self) -> bool {
        let (at, before) = match self.recalled.take() {
            None => (self.history.len(), self.shown_text()),
            Some(recalled) => recalled,
        };
        let Some(older) = at.checked_sub(1) else {
            self.wants_older = !self.has_earlier_messages;
            self.recalled = (!self.history.is_empty()).then_some((at, before));
            return false;
        };
        let text = self.history[older].clone();
        self.set_text(&text);
        self.recalled = Some((older, before));
        true
    }

    fn recall_newer(&mut self) -> bool {
        let Some((at, before)) = self.recalled.take() else { return false };
        match self.history.get(at + 1).cloned() {
            Some(text) => {
                self.set_text(&text);
                self.recalled = Some((at + 1, before));
            }
            None => self.set_shown_text(&before),
        }
        true
    }

    /// Returns the newest message of the history that contains a text, before the message `before`.
    pub(crate) fn search(&self, text: &str, before: usize) -> Option<(usize, &str)> {
        let older = self.history.iter().enumerate().take(before).rev();
        older.map(|(at, message)| (at, &**message)).find(|(_, message)| message.contains(text))
    }

    /// Returns the number of messages in the history.
    pub(crate) fn history_len(&self) -> usize {
        self.history.len()
    }

    /// Returns the number of rows that the text needs at this width.
    pub(crate) fn rows(&self, width: u16) -> u16 {
        let columns = usize::from(width.max(1));
        let rows = self.area.lines().iter().map(|line| {
            let width = crate::output::display_width(line) + 1;
            width.div_ceil(columns).max(1)
        });
        u16::try_from(rows.sum::<usize>()).unwrap_or(u16::MAX)
    }

    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        theme: Theme,
        placeholder: &str,
    ) {
        self.area.set_placeholder_text(placeholder);
        self.area.set_placeholder_style(theme.style(Role::Dim));
        self.area.set_cursor_style(theme.style(Role::Selected));
        self.area.set_style(theme.style(Role::Text));
        self.area.render(area, buffer);
    }
}

fn text_area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area
}

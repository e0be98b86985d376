//! The questions to the person, of which one is on the screen.
//!
//! A question appears only when nobody types, and takes keys only after a person had the time to see
//! it, so that no letter of a message answers a question.

use std::collections::VecDeque;

use crossterm::event::KeyEvent;
use tokio::time::{Duration, Instant};

use super::super::question_panel::{PanelOutcome, QuestionPanel};
use crate::chat::question::Question;

/// Time without a key after which a question appears: while a message is in the editor, and else.
const TYPING_PAUSE: Duration = Duration::from_secs(1);
const KEY_PAUSE: Duration = Duration::from_millis(300);

/// Time in which nobody can have read a question: the question takes no keys.
const READING_TIME: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(super) struct QuestionQueue {
    shown: Option<ShownQuestion>,
    waiting: VecDeque<Question>,
    last_key: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct ShownQuestion {
    pub(super) panel: QuestionPanel,
    /// The time of the first frame.
    start: Instant,
    /// Whether the panel takes keys, and says which.
    pub(super) is_ready: bool,
}

impl QuestionQueue {
    pub(super) fn add(&mut self, question: Question) {
        self.waiting.push_back(question);
    }

    pub(super) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    pub(super) fn shown_mut(&mut self) -> Option<&mut ShownQuestion> {
        self.shown.as_mut()
    }

    /// Returns the panel if it takes keys.
    pub(super) fn ready_panel(&mut self) -> Option<&mut QuestionPanel> {
        let shown = self.shown.as_mut().filter(|shown| shown.is_ready)?;
        Some(&mut shown.panel)
    }

    /// Returns the number of questions behind the shown one.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a question appears or becomes ready with the time.
    pub(super) fn is_changing(&self) -> bool {
        !self.waiting.is_empty() || self.shown.as_ref().is_some_and(|shown| !shown.is_ready)
    }

    pub(super) fn note_key(&mut self, now: Instant) {
        self.last_key = Some(now);
    }

    /// Handles a key of the shown question. Returns the text of an answer.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> Option<String> {
        match self.ready_panel()?.on_key(key) {
            PanelOutcome::Answered(text) => {
                self.shown = None;
                Some(text)
            }
            PanelOutcome::Open => None,
        }
    }

    /// Removes questions for whose answer nobody waits. Returns whether the shown one is among them.
    pub(super) fn drop_withdrawn(&mut self) -> bool {
        self.waiting.retain(|question| !question.is_withdrawn());
        self.shown.take_if(|shown| shown.panel.is_withdrawn()).is_some()
    }

    /// Shows the next question if nobody types, or makes the shown one ready.
    pub(super) fn update(&mut self, has_draft: bool, now: Instant) {
        if let Some(shown) = &mut self.shown {
            shown.is_ready |= now.saturating_duration_since(shown.start) >= READING_TIME;
            return;
        }
        let pause = if has_draft { TYPING_PAUSE } else { KEY_PAUSE };
        if self.last_key.is_some_and(|last| now.saturating_duration_since(last) < pause) {
            return;
        }
        self.shown = self.waiting.pop_front().map(|question| ShownQuestion {
            panel: QuestionPanel::new(question),
            start: now,
            is_ready: false,
        });
    }
}

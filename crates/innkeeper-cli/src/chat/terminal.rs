//! The chat on the whole screen of a terminal.

pub(crate) mod app;
mod block;
mod editor;
mod markdown;
mod question_panel;
mod screen;
mod theme;
mod transcript;
mod wrap;

pub(crate) use screen::outcome_text;
pub(crate) use theme::Theme;

//! Prompts: tools put into words for models that know no tools of their own.
//!
//! A [`Template`] makes the system text ([`Template::enhance`]) or a whole prompt with its history
//! ([`Template::conversation`]); [`streaming()`] makes the system text of chats; [`retry()`] says what
//! was wrong and how to do it right. What servers say of their tools is foreign: names, descriptions
//! and schemas stand on one line each, as JSON, with line breaks, hidden characters and the beginnings
//! of markup written by number, so that they can neither close what they are in nor begin another
//! section or turn.

mod example;
mod retry;
mod shown;
mod streaming;
mod template;
mod turn;

pub use retry::{Attempt, retry};
pub use streaming::{RULES, streaming};
pub use template::{Template, TemplateError};
pub use turn::{Role, Turn};

#[cfg(test)]
mod tests;

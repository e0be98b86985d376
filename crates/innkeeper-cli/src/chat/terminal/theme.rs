//! The colours of the chat, from the sixteen colours of the terminal, or none.

use ratatui::style::{Color, Modifier, Style};

/// The background of the terminal, which determines the readable colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Light text on a dark background.
    Dark,
    /// Dark text on a light background.
    Light,
    /// No colours: bold, dimmed and reversed text only.
    Plain,
}

/// The meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ordinary text.
    Text,
    /// Text of less importance.
    Dim,
    /// Emphasized text.
    Strong,
    /// The text of the user.
    User,
    /// A heading of the model's text.
    Heading,
    /// Code in the model's text.
    Code,
    /// The address of a link.
    Link,
    /// Something that succeeded.
    Success,
    /// Something that needs attention.
    Warning,
    /// Something that failed.
    Error,
    /// Something that runs.
    Running,
    /// The selected item.
    Selected,
}

impl Theme {
    pub(crate) fn style(self, role: Role) -> Style {
        let colour = |dark, light| match self {
            Self::Dark => Style::new().fg(dark),
            Self::Light => Style::new().fg(light),
            Self::Plain => Style::new(),
        };
        match role {
            Role::Text => Style::new(),
            Role::Dim => Style::new().add_modifier(Modifier::DIM),
            Role::Strong => Style::new().add_modifier(Modifier::BOLD),
            Role::User => colour(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD),
            Role::Heading => colour(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD),
            Role::Code => colour(Color::Yellow, Color::Magenta),
            Role::Link => colour(Color::Blue, Color::Blue).add_modifier(Modifier::UNDERLINED),
            Role::Success => colour(Color::Green, Color::Green),
            Role::Warning => colour(Color::Yellow, Color::Magenta).add_modifier(Modifier::BOLD),
            Role::Error => colour(Color::Red, Color::Red).add_modifier(Modifier::BOLD),
            Role::Running => colour(Color::Cyan, Color::Blue),
            Role::Selected => Style::new().add_modifier(Modifier::REVERSED),
        }
    }
}

//! Messages of a conversation in a prompt that is a single text.

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool. The text is untrusted.
    Tool,
}

impl Role {
    /// Returns the name that precedes a message in a prompt.
    pub fn label(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::Tool => "Tool",
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub text: String,
}

impl PromptMessage {
    /// Creates a message.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }

    /// Returns the text for a prompt. Lines that look like the start of a message or section are
    /// indented. The text of a tool becomes a JSON string.
    pub(super) fn to_prompt_text(&self) -> String {
        match self.role {
            Role::Tool => crate::sanitize::quote_for_prompt(&self.text),
            Role::User | Role::Assistant => {
                let mut lines = self.text.split_inclusive('\n');
                let first = lines.next().unwrap_or_default().to_owned();
                lines.fold(first, |text, line| {
                    text + if looks_like_header(line) { "  " } else { "" } + line
                })
            }
        }
    }
}

/// Whether a line looks like the first line of a message or section.
fn looks_like_header(line: &str) -> bool {
    let prefix =
        line.split(':').next().filter(|candidate| candidate.len() < line.len()).unwrap_or_default();
    let speaker = ["user", "assistant", "tool", "system"]
        .iter()
        .any(|label| prefix.trim().eq_ignore_ascii_case(label));
    speaker && !line.starts_with("  ") || line.starts_with('#')
}

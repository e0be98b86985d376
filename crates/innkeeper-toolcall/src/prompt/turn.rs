//! The turns of a conversation, as they stand in a prompt that is one text.

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool, whose words are foreign.
    Tool,
}

impl Role {
    /// Its name in front of a turn.
    pub fn label(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::Tool => "Tool",
        }
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
}

impl Turn {
    /// A turn from its parts.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }

    /// The text, in which no line can be taken for the beginning of another turn or section: those
    /// that could are indented. What a tool said is a JSON string.
    pub(super) fn written(&self) -> String {
        match self.role {
            Role::Tool => crate::safe::quoted(&self.text),
            Role::User | Role::Assistant => {
                let mut lines = self.text.split_inclusive('\n');
                let first = lines.next().unwrap_or_default().to_owned();
                lines.fold(first, |text, line| text + if opens(line) { "  " } else { "" } + line)
            }
        }
    }
}

/// Whether a line looks like the first of a turn or a section.
fn opens(line: &str) -> bool {
    let word = line.split(':').next().filter(|word| word.len() < line.len()).unwrap_or_default();
    let speaker = ["user", "assistant", "tool", "system"]
        .iter()
        .any(|it| word.trim().eq_ignore_ascii_case(it));
    speaker && !line.starts_with("  ") || line.starts_with('#')
}

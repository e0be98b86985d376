//! What a definition or an answer is of, and how its place begins.

/// What a definition or an answer is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Of {
    /// The word for one in messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }

    /// The name of a tool, or that of something else.
    pub(crate) fn split<T>(item: Option<(Self, T)>) -> (Option<T>, Option<T>) {
        match item {
            Some((Self::Tool, tool)) => (Some(tool), None),
            Some((Self::Prompt | Self::Resource | Self::Template, item)) => (None, Some(item)),
            None => (None, None),
        }
    }

    pub(super) fn definition(self) -> &'static str {
        match self {
            Self::Tool => "definition",
            Self::Prompt => "prompt definition",
            Self::Resource => "resource definition",
            Self::Template => "template definition",
        }
    }

    pub(super) fn result(self) -> &'static str {
        match self {
            Self::Tool => "result",
            Self::Prompt => "prompt result",
            // What a template stands for is a resource.
            Self::Resource | Self::Template => "resource result",
        }
    }

    pub(super) fn error(self) -> &'static str {
        match self {
            Self::Tool => "error",
            Self::Prompt => "prompt error",
            Self::Resource | Self::Template => "resource error",
        }
    }
}

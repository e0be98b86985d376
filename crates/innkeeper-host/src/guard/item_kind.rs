//! The kind of a scanned item, and its name in places.

/// The kind of item that a definition or a result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ItemKind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl ItemKind {
    /// Returns the name in messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }

    /// Separates the name of a tool from the name of another item.
    pub(crate) fn split<T>(item: Option<(Self, T)>) -> (Option<T>, Option<T>) {
        match item {
            Some((Self::Tool, tool)) => (Some(tool), None),
            Some((Self::Prompt | Self::Resource | Self::Template, item)) => (None, Some(item)),
            None => (None, None),
        }
    }

    pub(super) fn definition_place(self) -> &'static str {
        match self {
            Self::Tool => "definition",
            Self::Prompt => "prompt definition",
            Self::Resource => "resource definition",
            Self::Template => "template definition",
        }
    }

    pub(super) fn result_place(self) -> &'static str {
        match self {
            Self::Tool => "result",
            Self::Prompt => "prompt result",
            // A template expands to a resource.
            Self::Resource | Self::Template => "resource result",
        }
    }

    pub(super) fn error_place(self) -> &'static str {
        match self {
            Self::Tool => "error",
            Self::Prompt => "prompt error",
            Self::Resource | Self::Template => "resource error",
        }
    }
}

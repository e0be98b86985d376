//! A change between pinned and current definitions.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The severity of a change for users of the tool; later variants are more severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// Existing calls still work, and no pinned place has new text for a model.
    Compatible,
    /// Existing calls may fail, or their results may differ.
    Breaking,
    /// The change affects text for a model, questions to a user, or the identity of the server.
    Suspicious,
}

impl ChangeClass {
    /// Returns the name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Breaking => "breaking",
            Self::Suspicious => "suspicious",
        }
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One change. All strings may come from a server: escape them for a terminal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PinChange {
    /// Name of the server.
    pub server: String,
    /// Name of the tool; `None` for a change of the server itself.
    pub tool: Option<String>,
    /// Severity of the change.
    pub class: ChangeClass,
    /// Description of the change, with its place in the definition.
    #[serde(rename = "what")]
    pub description: String,
    /// Pinned value, if any.
    pub before: Option<Value>,
    /// Current value, if any.
    pub after: Option<Value>,
}

/// Collects the changes of one server or tool.
#[derive(Debug)]
pub(super) struct ChangeCollector<'c> {
    pub(super) server: &'c str,
    pub(super) tool: Option<&'c str>,
    pub(super) list: Vec<PinChange>,
}

impl ChangeCollector<'_> {
    pub(super) fn add(
        &mut self,
        change_class: ChangeClass,
        text: impl Into<String>,
        before: Option<Value>,
        after: Option<Value>,
    ) {
        let server = self.server.to_owned();
        let tool = self.tool.map(str::to_owned);
        self.list.push(PinChange {
            server,
            tool,
            class: change_class,
            description: text.into(),
            before,
            after,
        });
    }

    /// Returns the changes, the most severe first, otherwise in order of detection.
    pub(super) fn into_sorted(mut self) -> Vec<PinChange> {
        self.list.sort_by_key(|change| Reverse(change.class));
        self.list
    }
}

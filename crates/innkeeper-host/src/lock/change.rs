//! One difference between what is pinned and what was found.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// What a change means for whoever uses the tool. Later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeClass {
    /// Calls made before still work, and nothing new is said to a model in a place that was pinned.
    Compatible,
    /// Calls that worked may fail now, or the answer is not what it was.
    Breaking,
    /// It changes what a model is told, what a person is asked, or who is at the other end.
    Suspicious,
}

impl ChangeClass {
    /// The word used in output.
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

/// One difference. All texts may come from a server: escape them for a terminal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The server.
    pub server: String,
    /// The tool; `None` where the server itself changed.
    pub tool: Option<String>,
    /// How bad it is.
    pub class: ChangeClass,
    /// What changed, with its place in the definition.
    pub what: String,
    /// What was pinned there, if anything.
    pub before: Option<Value>,
    /// What is there now, if anything.
    pub after: Option<Value>,
}

/// The changes of one server or tool while they are collected.
#[derive(Debug)]
pub(super) struct Changes<'c> {
    pub(super) server: &'c str,
    pub(super) tool: Option<&'c str>,
    pub(super) list: Vec<Change>,
}

impl Changes<'_> {
    pub(super) fn tell(
        &mut self,
        class: ChangeClass,
        what: impl Into<String>,
        before: Option<Value>,
        after: Option<Value>,
    ) {
        let (server, tool) = (self.server.to_owned(), self.tool.map(str::to_owned));
        self.list.push(Change { server, tool, class, what: what.into(), before, after });
    }

    /// The changes, the worst first and else in the order they were found.
    pub(super) fn sorted(mut self) -> Vec<Change> {
        self.list.sort_by_key(|change| Reverse(change.class));
        self.list
    }
}

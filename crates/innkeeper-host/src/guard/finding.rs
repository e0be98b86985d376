//! What the guard has found: its kind, its place, and why, never the text itself.

use std::fmt;

use serde::Serialize;

use super::pieces::Step;

/// The most of a place that is told: who nests deeper wants no place to be found.
const PLACE: usize = 128;

/// Names that stand in a place as they are, beside those that a tool declares: words of MCP and of
/// JSON Schema. Any other may be an order or a secret itself.
const OWN: [&str; 37] = [
    "_meta",
    "additionalProperties",
    "allOf",
    "annotations",
    "anyOf",
    "arguments",
    "audience",
    "blob",
    "const",
    "content",
    "contents",
    "data",
    "default",
    "description",
    "enum",
    "examples",
    "icons",
    "inputSchema",
    "instructions",
    "items",
    "message",
    "messages",
    "mimeType",
    "name",
    "oneOf",
    "outputSchema",
    "pattern",
    "properties",
    "required",
    "resource",
    "role",
    "structuredContent",
    "text",
    "title",
    "type",
    "uri",
    "uriTemplate",
];

/// What stands for any other name.
const OTHER: &str = "*";

/// The families of what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Words that have a model disregard what it was told before.
    Override,
    /// Words that pretend to be of another role than the data they stand in.
    Frame,
    /// Words that have a model keep something from its user.
    Concealment,
    /// Words that ask a model for its instructions, its conversation or credentials.
    Solicitation,
    /// Words that have a model send such things somewhere.
    Exfiltration,
    /// Words that lead a model to another tool, server or more rights.
    Steering,
    /// Characters that people do not see.
    Hidden,
    /// A key, token or password.
    Secret,
    /// A key, token or password that another server gave.
    Carried,
    /// A file that has credentials.
    CredentialFile,
    /// The address at which clouds give credentials.
    MetadataAddress,
    /// Syntax of a shell where no code is expected.
    Shell,
    /// An argument that the tool does not declare.
    Undeclared,
    /// A path outside the folders that the owner has stated.
    Outside,
}

impl FindingKind {
    /// The word used in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Frame => "frame",
            Self::Concealment => "concealment",
            Self::Solicitation => "solicitation",
            Self::Exfiltration => "exfiltration",
            Self::Steering => "steering",
            Self::Hidden => "hidden",
            Self::Secret => "secret",
            Self::Carried => "carried",
            Self::CredentialFile => "credential-file",
            Self::MetadataAddress => "metadata-address",
            Self::Shell => "shell",
            Self::Undeclared => "undeclared",
            Self::Outside => "outside",
        }
    }
}

/// One thing the guard has found. It has no text of a server, no secret and no value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The family.
    pub kind: FindingKind,
    /// Where: `definition`, `instructions`, `arguments`, `result` or `error`, before which stands
    /// `prompt`, `resource` or `template` if it is none of a tool, with a JSON pointer into it, of some
    /// 128 characters at most. Names in it are those of MCP, of JSON Schema and of
    /// the tool's declared arguments; `*` stands for each other one. What is found in a name is told
    /// of the object that has it.
    pub place: String,
    /// What about it.
    pub reason: &'static str,
}

impl Finding {
    pub(super) fn new(
        kind: FindingKind,
        of: &str,
        steps: &[Step<'_>],
        declares: impl Fn(&str) -> bool,
        reason: &'static str,
    ) -> Self {
        let mut place = of.to_owned();
        let mut lead = " /";
        for step in steps {
            if place.len() >= of.len() + PLACE {
                break;
            }
            place.push_str(lead);
            lead = "/";
            match *step {
                Step::At(at) => place.push_str(&at.to_string()),
                Step::Name(name) if OWN.contains(&name) || declares(name) => place.push_str(name),
                Step::Name(_) => place.push_str(OTHER),
            }
        }
        Self { kind, place, reason }
    }
}

#[cfg(test)]
impl Finding {
    /// One for tests elsewhere.
    pub(crate) fn sample() -> Self {
        Self::new(
            FindingKind::Hidden,
            "result",
            &[Step::Name("x")],
            |name| name == "x",
            "has hidden characters",
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

//! Guard findings: kind, place and reason, without the scanned text.

use std::fmt;

use serde::Serialize;

use crate::text::PathSegment;

/// Maximum length of a place in bytes: deeper nesting only hides the place.
const MAX_PLACE_LEN: usize = 128;

/// Names shown in a place in addition to a tool's declared names: names of MCP and of JSON Schema.
/// Any other name may itself be an instruction or a secret.
const KNOWN_NAMES: [&str; 37] = [
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

/// Placeholder for any other name.
const REDACTED_NAME: &str = "*";

/// The kind of a guard finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Text that tells a model to disregard earlier instructions.
    InstructionOverride,
    /// Text that imitates a message of another role, such as the system or the user.
    RoleSpoofing,
    /// Text that tells a model to hide something from its user.
    Concealment,
    /// Text that asks a model for its instructions, its conversation or credentials.
    Solicitation,
    /// Text that tells a model to send such data somewhere.
    Exfiltration,
    /// Text that directs a model to another tool, server or more permissions.
    ToolSteering,
    /// Invisible characters.
    HiddenText,
    /// A key, token or password.
    Secret,
    /// A key, token or password from another server.
    CrossServerCredential,
    /// The path of a credential file.
    CredentialFile,
    /// The address of a cloud metadata service.
    MetadataAddress,
    /// Shell syntax in an argument that is not code.
    ShellSyntax,
    /// An argument that the tool does not declare.
    UndeclaredArgument,
    /// A path outside the directories of the sandbox.
    PathOutsideSandbox,
    /// Two members of one object with the same name.
    DuplicateKey,
    /// Content that the guard did not scan because of a limit, which the reason names.
    NotScanned,
}

impl FindingKind {
    /// Returns the name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InstructionOverride => "instruction-override",
            Self::RoleSpoofing => "role-spoofing",
            Self::Concealment => "concealment",
            Self::Solicitation => "solicitation",
            Self::Exfiltration => "exfiltration",
            Self::ToolSteering => "tool-steering",
            Self::HiddenText => "hidden-text",
            Self::Secret => "secret",
            Self::CrossServerCredential => "cross-server-credential",
            Self::CredentialFile => "credential-file",
            Self::MetadataAddress => "metadata-address",
            Self::ShellSyntax => "shell-syntax",
            Self::UndeclaredArgument => "undeclared-argument",
            Self::PathOutsideSandbox => "path-outside-sandbox",
            Self::DuplicateKey => "duplicate-key",
            Self::NotScanned => "not-scanned",
        }
    }
}

/// A guard finding, without server text, secrets or argument values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Kind of the finding.
    pub kind: FindingKind,
    /// Place of the finding: `definition`, `instructions`, `arguments`, `result` or `error`, with
    /// the prefix `prompt`, `resource` or `template` for other items than tools, followed by a JSON
    /// pointer of at most about 128 characters. The pointer shows names of MCP, of JSON Schema and
    /// of the tool's declared arguments, and `*` for any other name. A finding in a name has the
    /// place of the object with that name.
    pub place: String,
    /// Reason of the finding.
    pub reason: &'static str,
}

impl Finding {
    pub(super) fn new(
        kind: FindingKind,
        item: &str,
        segments: &[PathSegment<'_>],
        declares: impl Fn(&str) -> bool,
        reason: &'static str,
    ) -> Self {
        let mut place = item.to_owned();
        let mut lead = " /";
        for segment in segments {
            if place.len() >= item.len() + MAX_PLACE_LEN {
                break;
            }
            place.push_str(lead);
            lead = "/";
            match segment {
                PathSegment::Index(at) => place.push_str(&at.to_string()),
                PathSegment::Name(name) if KNOWN_NAMES.contains(&&**name) || declares(name) => {
                    place.push_str(name);
                }
                PathSegment::Name(_) => place.push_str(REDACTED_NAME),
            }
        }
        Self { kind, place, reason }
    }
}

#[cfg(test)]
impl Finding {
    /// Creates a finding for tests of other modules.
    pub(crate) fn sample() -> Self {
        Self::new(
            FindingKind::HiddenText,
            "result",
            &[PathSegment::Name("x".into())],
            |name| name == "x",
            "contains hidden characters",
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

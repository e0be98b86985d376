//! The rules by which a run is compared with its golden.
//!
//! Rules stand in the golden as `rules`, or next to `NAME.json` as `NAME.rules.json`:
//!
//! ```json
//! {
//!   "tool_chain": {"order": "superset", "tools": {"fs.write": {"ignored_paths": ["/stamp"]}}},
//!   "forbidden_tools": ["fs.delete"],
//!   "outcome": true,
//!   "bounds": {"max_calls": 12},
//!   "final_text": {"min_similarity": 0.8}
//! }
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pointer::PointerPattern;

/// Maximum size of a file with rules, which a person writes.
pub const MAX_RULES_BYTES: usize = 1 << 20;

/// What must be the same in a run and its golden. A member that is left out is not judged; rules
/// that judge nothing are an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Whether the whole result must be equal, but for what differs from run to run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// The calls with their arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_chain: Option<ToolChainRule>,
    /// Tools that the run must not call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden_tools: Vec<String>,
    /// `false`: the run must not call a tool that the golden did not call. `true`: the tool chain is
    /// compared without such calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_new_tools: Option<bool>,
    /// Whether the run must end like the golden: with success, or with the same failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outcome: bool,
    /// The errors of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorRule>,
    /// The limits of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The last text of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_text: Option<FinalTextRule>,
}

/// How the calls are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolChainRule {
    /// Which calls must be there, and in which order.
    pub order: CallOrder,
    /// Whether arguments count, for all tools without a policy of their own.
    pub arguments: ArgumentPolicy,
    /// The policies of single tools, by public name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolPolicy>,
}

/// Which calls must be there, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// The same calls, response by response. The calls of one response may come in any order, because
    /// they run in parallel; calls that were in one response must not be spread over two.
    #[default]
    Strict,
    /// The same calls, each as often, in any order.
    Unordered,
    /// No call that the golden does not have; calls may be missing.
    Subset,
    /// Every call of the golden; there may be more.
    Superset,
}

/// Whether the arguments of a call count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentPolicy {
    /// The arguments must be equal, in any order of members.
    #[default]
    Exact,
    /// The arguments do not count.
    Ignore,
}

/// How the arguments of one tool are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolPolicy {
    /// Whether arguments count; with `ignored_paths`, they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentPolicy>,
    /// The arguments that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_paths: Vec<PointerPattern>,
}

/// How the errors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorRule {
    /// The same sequence of tool, message and recovery action. Ids, dates, times and case in a message
    /// do not count.
    Pattern,
}

/// The limits of a run, each inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Tool calls, failed and cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Responses of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// The duration of the run in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
}

/// How the last text is compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FinalTextRule {
    /// The minimum [similarity](crate::similarity()) to the golden's text, above 0 and at most 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f64>,
    /// Texts that must occur, whatever the golden says. Case, blanks and Markdown do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
}

/// Why a text is no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The file is too large.
    #[error("the rules have {bytes} bytes; the limit is {} MiB", MAX_RULES_BYTES >> 20)]
    TooLarge {
        /// The size of the file.
        bytes: usize,
    },
    /// The text is no JSON, or a member is unknown or has the wrong type.
    #[error("invalid rules at `{place}`")]
    Invalid {
        /// The JSON pointer of the member, or `/` if it is not known.
        place: String,
        /// The problem with its line and column.
        source: serde_json::Error,
    },
    /// A value makes no sense.
    #[error("`{place}` {problem}")]
    Value {
        /// The JSON pointer of the member.
        place: String,
        /// What is wrong.
        problem: &'static str,
    },
}

impl Rules {
    /// Returns the rules of a golden without rules.
    pub fn exact() -> Self {
        Self { exact: true, ..Self::default() }
    }

    /// Reads a file with rules.
    ///
    /// # Errors
    ///
    /// The bytes are no JSON, a member is unknown or has a value that makes no sense, or the rules
    /// judge nothing.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RulesError> {
        if bytes.len() > MAX_RULES_BYTES {
            return Err(RulesError::TooLarge { bytes: bytes.len() });
        }
        // Otherwise an array would be read as the members in their order.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(value_error("/", "is not an object"));
        }
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let rules: Self = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let place = pointer(error.path());
            RulesError::Invalid { place, source: error.into_inner() }
        })?;
        deserializer
            .end()
            .map_err(|source| RulesError::Invalid { place: "/".to_owned(), source })?;
        rules.check()?;
        Ok(rules)
    }

    /// Checks that the values make sense and that the rules judge something.
    ///
    /// # Errors
    ///
    /// See [`RulesError::Value`].
    pub fn check(&self) -> Result<(), RulesError> {
        if let Some(rule) = &self.tool_chain {
            rule.check()?;
        }
        check_names("/forbidden_tools", &self.forbidden_tools)?;
        if let Some(bounds) = &self.bounds {
            bounds.check()?;
        }
        if let Some(rule) = &self.final_text {
            rule.check()?;
        }
        if !self.judges_something() {
            return Err(value_error("/", "judges nothing: name at least one rule"));
        }
        Ok(())
    }

    fn judges_something(&self) -> bool {
        self.exact
            || self.tool_chain.is_some()
            || !self.forbidden_tools.is_empty()
            || self.allow_new_tools == Some(false)
            || self.outcome
            || self.errors.is_some()
            || self.bounds.is_some()
            || self.final_text.is_some()
    }
}

impl ToolChainRule {
    fn check(&self) -> Result<(), RulesError> {
        for (tool, policy) in &self.tools {
            let problem = match (policy.arguments, policy.ignored_paths.is_empty()) {
                (None, true) => "says nothing: write `arguments` or `ignored_paths`",
                (Some(ArgumentPolicy::Ignore), false) => {
                    "ignores all arguments, so `ignored_paths` has no use"
                }
                (Some(ArgumentPolicy::Exact), _) | (None | Some(ArgumentPolicy::Ignore), _) => {
                    continue;
                }
            };
            return Err(value_error(&format!("/tool_chain/tools/{}", escape(tool)), problem));
        }
        Ok(())
    }
}

impl Bounds {
    fn check(&self) -> Result<(), RulesError> {
        if *self == Self::default() {
            return Err(value_error("/bounds", "has no bound"));
        }
        if self.max_seconds.is_some_and(|limit| !(limit > 0.0 && limit.is_finite())) {
            return Err(value_error("/bounds/max_seconds", "is not above 0"));
        }
        Ok(())
    }
}

impl FinalTextRule {
    fn check(&self) -> Result<(), RulesError> {
        if *self == Self::default() {
            return Err(value_error(
                "/final_text",
                "says nothing: write `min_similarity` or `contains`",
            ));
        }
        if self.min_similarity.is_some_and(|min| !(min > 0.0 && min <= 1.0)) {
            return Err(value_error("/final_text/min_similarity", "is not above 0 and at most 1"));
        }
        check_names("/final_text/contains", &self.contains)
    }
}

/// Checks that no text of a list is blank.
fn check_names(place: &str, texts: &[String]) -> Result<(), RulesError> {
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(at) => Err(value_error(&format!("{place}/{at}"), "is empty")),
        None => Ok(()),
    }
}

fn value_error(place: &str, problem: &'static str) -> RulesError {
    RulesError::Value { place: place.to_owned(), problem }
}

/// Returns the JSON pointer of a path.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        let step = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => escape(key),
            Segment::Enum { variant } => escape(variant),
            Segment::Unknown => "?".to_owned(),
        };
        pointer.push('/');
        pointer.push_str(&step);
    }
    if pointer.is_empty() { "/".to_owned() } else { pointer }
}

fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;

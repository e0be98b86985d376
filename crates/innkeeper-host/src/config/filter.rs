//! Which of a server's tools are offered, and what they must not be given.

use indexmap::IndexMap;
use serde::Serialize;

/// Two lists of tool names in which `*` stands for any run of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFilter {
    /// What is offered; absent means everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// What is not offered, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Texts that the arguments of a tool must not have; the tools by name or pattern.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub deny_arguments: IndexMap<String, Vec<String>>,
}

impl ToolFilter {
    /// Whether the server's tool of this name is offered.
    pub fn permits(&self, tool: &str) -> bool {
        let listed =
            |patterns: &[String]| patterns.iter().any(|pattern| Self::matches(pattern, tool));
        self.allow.as_deref().is_none_or(listed) && !listed(&self.deny)
    }

    /// The rule that keeps a tool from being offered, as it stands in the file.
    pub fn refusal(&self, tool: &str) -> Option<Refusal<'_>> {
        if let Some(rule) = self.deny.iter().find(|pattern| Self::matches(pattern, tool)) {
            return Some(Refusal::Denied { rule });
        }
        (!self.permits(tool)).then_some(Refusal::NotAllowed)
    }

    /// What the arguments of a tool must not have.
    pub(crate) fn denied_arguments(&self, tool: &str) -> impl Iterator<Item = &str> {
        let rules = self.deny_arguments.iter().filter(move |(tools, _)| Self::matches(tools, tool));
        rules.flat_map(|(_, texts)| texts).map(String::as_str)
    }

    /// Whether a text fits a pattern in which `*` stands for any run of characters.
    pub(crate) fn matches(pattern: &str, name: &str) -> bool {
        let mut pieces = pattern.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let Some(last) = pieces.next_back() else {
            return rest.is_empty();
        };
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// Why a tool is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// A line of `tools.deny` matches.
    Denied {
        /// That line.
        rule: &'a str,
    },
    /// `tools.allow` is there and no line of it matches.
    NotAllowed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: Option<&[&str]>, deny: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter { allow: allow.map(owned), deny: owned(deny), ..ToolFilter::default() }
    }

    #[test]
    fn without_rules_every_tool_is_offered() {
        assert!(filter(None, &[]).permits("read_file"));
    }

    #[test]
    fn an_empty_allow_list_offers_nothing() {
        assert!(!filter(Some(&[]), &[]).permits("read_file"));
    }

    #[test]
    fn deny_wins_over_allow_and_names_its_rule() {
        let filter = filter(Some(&["*"]), &["write_*"]);
        assert!(filter.permits("read_file"));
        assert!(!filter.permits("write_file"));
        assert_eq!(filter.refusal("write_file"), Some(Refusal::Denied { rule: "write_*" }));
        assert_eq!(filter.refusal("read_file"), None);
    }

    #[test]
    fn a_tool_missing_from_allow_is_refused_as_such() {
        assert_eq!(filter(Some(&["a"]), &[]).refusal("b"), Some(Refusal::NotAllowed));
    }

    #[test]
    fn stars_stand_for_any_run_of_characters() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("a.*", "axb", false),
        ] {
            assert_eq!(ToolFilter::matches(pattern, name), expected, "`{pattern}` on `{name}`");
        }
    }
}

//! The name of a call, as servers send it: whole, whole with every delta, in fragments, or longer
//! with every delta.
//!
//! `db_` and then `db_drop` are the fragments of `db_db_drop`, or `db_drop` that grows. The tools of
//! the request decide; if both readings are tools, the name is unclear and its call never runs.

use crate::provider::tool_encoding::EncodedTools;

/// The parts of a name that came so far.
#[derive(Debug, Default)]
pub(super) struct CallName {
    /// The parts as fragments of one name.
    joined: String,
    /// The last part, which is the name if every part begins with the part before it.
    last: String,
    is_growing: bool,
    /// Whether the last part is the part before it.
    is_repeated: bool,
    is_unclear: bool,
}

/// What the parts of a name say.
pub(super) struct ResolvedName<'n> {
    pub(super) name: &'n str,
    pub(super) is_unclear: bool,
}

/// What a part of a name is to the parts before it, by the tools of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextPart {
    /// It continues the name.
    Fragment,
    /// It is the name of another call, or the same name again.
    OtherName,
    /// It may be both.
    Either,
    /// The tools do not say.
    Unknown,
}

impl CallName {
    pub(super) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    pub(super) fn push(&mut self, part: &str, tools: &EncodedTools) {
        self.is_unclear |= self.next_part(part, tools) == NextPart::Either;
        self.is_growing = self.is_empty() || self.is_growing && part.starts_with(&self.last);
        self.is_repeated = self.last == part;
        self.joined.push_str(part);
        part.clone_into(&mut self.last);
    }

    pub(super) fn resolve(&self, tools: &EncodedTools) -> ResolvedName<'_> {
        let Self { joined, last, is_unclear, .. } = self;
        let resolved = |name| ResolvedName { name, is_unclear: *is_unclear };
        if !self.is_growing || joined == last {
            return resolved(joined);
        }
        match (tools.has_alias(joined), tools.has_alias(last)) {
            (true, false) => resolved(joined),
            (false, true) => resolved(last),
            (false, false) if self.is_repeated => resolved(last),
            (true, true) | (false, false) => ResolvedName { name: joined, is_unclear: true },
        }
    }

    pub(super) fn next_part(&self, part: &str, tools: &EncodedTools) -> NextPart {
        let name = self.resolve(tools).name;
        let are_tools = tools.has_alias(name) && tools.has_alias(part);
        let may_grow = part != name && part.starts_with(name);
        match (tools.has_alias(&format!("{}{part}", self.joined)), are_tools) {
            (true, false) => NextPart::Fragment,
            (true, true) => NextPart::Either,
            (false, true) if may_grow => NextPart::Either,
            (false, true) => NextPart::OtherName,
            (false, false) => NextPart::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_toolcall::{Tool, Tools};

    use super::*;
    use crate::provider::ProviderApi;

    fn tools(names: &[&str]) -> EncodedTools {
        let tools: Tools =
            names.iter().map(|name| Tool::new(*name, "", serde_json::json!({}))).collect();
        EncodedTools::new(Arc::new(tools), ProviderApi::OpenAiChat, false)
    }

    #[test]
    fn the_tools_decide_how_the_parts_of_a_name_are_read() {
        for (parts, names, expected) in [
            (&["read"][..], &["read"][..], Some("read")),
            (&["re", "ad"], &["read"], Some("read")),
            (&["re", "read"], &["read"], Some("read")),
            (&["re", "read", "read"], &[], Some("read")),
            (&["read", "read"], &["read"], Some("read")),
            (&["read", "read"], &[], Some("read")),
            (&["db_", "db_drop"], &["db_drop"], Some("db_drop")),
            (&["db_", "db_drop"], &["db_db_drop"], Some("db_db_drop")),
            (&["db_", "db_drop"], &["db_drop", "db_db_drop"], None),
            (&["db_", "db_drop"], &[], None),
            (&["go", "go"], &["go", "gogo"], None),
            (&["get", "get_all"], &["get", "get_all"], None),
            (&["get", "_all"], &["get", "get_all"], Some("get_all")),
        ] {
            let mut name = CallName::default();
            let tools = tools(names);
            parts.iter().for_each(|part| name.push(part, &tools));
            let resolved = name.resolve(&tools);
            let actual = Some(resolved.name).filter(|_| !resolved.is_unclear);
            assert_eq!(actual, expected, "{parts:?} {names:?}");
        }
    }

    #[test]
    fn the_tools_tell_the_next_part_of_a_name_from_the_next_call() {
        for (names, expected) in [
            (&["get_all"][..], NextPart::Fragment),
            (&["get_all", "all"], NextPart::Fragment),
            (&["get_", "all"], NextPart::OtherName),
            (&["get_", "all", "get_all"], NextPart::Either),
            (&[], NextPart::Unknown),
        ] {
            let (mut name, tools) = (CallName::default(), tools(names));
            name.push("get_", &tools);
            assert_eq!(name.next_part("all", &tools), expected, "{names:?}");
            name.push("all", &tools);
            assert_eq!(name.resolve(&tools).is_unclear, expected == NextPart::Either, "{names:?}");
        }
    }
}

//! The names of a tool, by which rules and rates select it.
//!
//! A tool has up to three names: the one that its endpoint offers, the one with its server in front, and the
//! one at its server. An operator writes a rule with any of them, and clients choose the endpoint, so every
//! rule looks at all names: otherwise an endpoint with other names is a way around.

use innkeeper_host::config::{NameStyle, ToolFilter};

/// The names of a tool or a prompt. The only name of a resource is its URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemNames {
    /// The name for the host: `SERVER.ITEM`.
    prefixed: Box<str>,
    /// Where the server's own name starts in `prefixed`.
    own_start: usize,
    style: NameStyle,
    /// Whether the own name looks like an item of another server: `git.log` of a server `notes`.
    looks_foreign: bool,
}

impl ItemNames {
    /// Creates the names of an item at an endpoint with this style of names.
    pub fn new(style: NameStyle, server: &str, own: &str) -> Self {
        let prefixed: Box<str> = format!("{server}.{own}").into();
        Self { own_start: server.len() + 1, prefixed, style, looks_foreign: false }
    }

    /// Creates the names of an item with one name: a URI, or a tool of the gateway.
    pub fn single(name: &str) -> Self {
        let style = NameStyle::Prefixed;
        Self { prefixed: name.into(), own_start: 0, style, looks_foreign: false }
    }

    /// Creates the names of an item from the name that an endpoint offered.
    pub(crate) fn from_offered(style: NameStyle, server: &str, offered: &str) -> Self {
        let of_server = offered.strip_prefix(server).and_then(|rest| rest.strip_prefix('.'));
        match (style, of_server) {
            (NameStyle::Prefixed, Some(own)) => Self::new(style, server, own),
            // The other servers of that time are unknown.
            _ => Self { looks_foreign: offered.contains('.'), ..Self::new(style, server, offered) },
        }
    }

    /// Records whether the own name starts with the name of another server.
    pub(crate) fn with_servers(self, is_server: impl Fn(&str) -> bool) -> Self {
        let dots = self.own().match_indices('.').map(|(dot, _)| &self.own()[..dot]);
        let mut others = dots.filter(|start| *start != self.server());
        let looks_foreign = others.any(is_server);
        Self { looks_foreign, ..self }
    }

    /// Returns the name that the endpoint offers.
    pub fn offered(&self) -> &str {
        match self.style {
            NameStyle::Prefixed => self.prefixed(),
            NameStyle::Flat => self.own(),
        }
    }

    /// Returns the name with the server in front, which no other item of the gateway has.
    pub fn prefixed(&self) -> &str {
        &self.prefixed
    }

    /// Returns the name at the server.
    pub fn own(&self) -> &str {
        &self.prefixed[self.own_start..]
    }

    fn server(&self) -> &str {
        &self.prefixed[..self.own_start.saturating_sub(1)]
    }

    /// Returns whether a pattern matches one of the names.
    pub fn match_pattern(&self, pattern: &str) -> bool {
        // The offered name is one of these.
        [self.prefixed(), self.own()].iter().any(|name| ToolFilter::matches(pattern, name))
    }

    /// Returns whether a pattern that grants something means the item: the offered name or the one with the
    /// server matches. A server chooses its own names, so the name alone counts only where the endpoint
    /// offers it, and not if it looks like an item of another server.
    pub fn match_grant(&self, pattern: &str) -> bool {
        let is_offered_alone = self.style == NameStyle::Flat && !self.looks_foreign;
        ToolFilter::matches(pattern, self.prefixed())
            || (is_offered_alone && ToolFilter::matches(pattern, self.own()))
    }

    /// Returns whether the own name looks like an item of another server, and a pattern matches the name
    /// with the real server.
    pub(crate) fn match_disguised(&self, pattern: &str) -> bool {
        self.looks_foreign && ToolFilter::matches(pattern, self.prefixed())
    }

    /// Returns whether `allow` and `deny` of a filter permit the item.
    pub fn are_permitted_by(&self, filter: &ToolFilter) -> bool {
        let ToolFilter { allow, deny, .. } = filter;
        allow.as_deref().is_none_or(|allow| allow.iter().any(|pattern| self.match_grant(pattern)))
            && !deny.iter().any(|pattern| self.match_pattern(pattern))
    }
}

impl AsRef<Self> for ItemNames {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: Option<&[&str]>, deny: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter { allow: allow.map(owned), deny: owned(deny), ..ToolFilter::default() }
    }

    fn names(style: NameStyle, server: &str, own: &str) -> ItemNames {
        let servers = ["s", "git", "notes"];
        ItemNames::new(style, server, own).with_servers(|name| servers.contains(&name))
    }

    #[test]
    fn an_item_has_the_offered_the_prefixed_and_the_own_name() {
        let flat = names(NameStyle::Flat, "s", "a.b");
        assert_eq!([flat.offered(), flat.prefixed(), flat.own()], ["a.b", "s.a.b", "a.b"]);
        let prefixed = names(NameStyle::Prefixed, "s.t", "a");
        assert_eq!([prefixed.offered(), prefixed.own()], ["s.t.a", "a"]);
        let single = ItemNames::single("x://y.z");
        assert_eq!([single.offered(), single.prefixed(), single.own()], ["x://y.z"; 3]);
        for names in [flat, prefixed] {
            let server = names.server().to_owned();
            let known = ItemNames::from_offered(names.style, &server, names.offered());
            assert_eq!(known.prefixed(), names.prefixed());
            assert_eq!(known.own(), names.own());
        }
    }

    /// Attack: remote | a client calls a denied tool where the tool has another name | a rule that denies
    /// any of the names holds under all of them | Isolation
    #[test]
    fn a_denied_tool_is_denied_under_each_of_its_names() {
        for style in [NameStyle::Prefixed, NameStyle::Flat] {
            let danger = names(style, "s", "danger");
            for rule in ["s.danger", "danger", "s.*", "*danger", "*"] {
                assert!(!danger.are_permitted_by(&filter(None, &[rule])), "{rule} {style:?}");
                assert!(!danger.are_permitted_by(&filter(Some(&["*"]), &[rule])), "{rule}");
            }
            for rule in ["t.danger", "s.dang", "anger", "s"] {
                assert!(danger.are_permitted_by(&filter(None, &[rule])), "{rule} {style:?}");
            }
        }
    }

    /// Attack: data | a server calls its tool like one that a client may use of another server | the rule
    /// of the other server does not allow it | Isolation
    #[test]
    fn an_allowed_name_is_not_that_of_a_tool_of_another_server() {
        let allow =
            |names: &ItemNames, rule: &str| names.are_permitted_by(&filter(Some(&[rule]), &[]));
        let echo = |style| names(style, "s", "echo");
        for style in [NameStyle::Prefixed, NameStyle::Flat] {
            assert!(allow(&echo(style), "s.echo") && allow(&echo(style), "s.*"), "{style:?}");
            let disguised = names(style, "notes", "git.log");
            for rule in ["git.*", "git.log"] {
                assert!(!allow(&disguised, rule), "{rule} {style:?}");
            }
            assert!(allow(&disguised, "notes.*") && allow(&disguised, "*.log"));
        }
        assert!(allow(&echo(NameStyle::Flat), "echo"), "the name that the endpoint offers");
        assert!(!allow(&echo(NameStyle::Prefixed), "echo"), "another server may have an `echo`");
        assert!(allow(&names(NameStyle::Flat, "s", "a.b"), "a.*"), "`a` is no server");
        assert!(allow(&names(NameStyle::Flat, "git", "git.log"), "git.*"), "its own server");
        let unknown = ItemNames::from_offered(NameStyle::Flat, "notes", "git.log");
        assert!(!allow(&unknown, "git.*") && allow(&unknown, "notes.git.log"));
    }
}

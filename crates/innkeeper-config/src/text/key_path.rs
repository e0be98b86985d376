//! The path from the configuration's root to a key, in the user's notation.

use std::fmt;

/// A key or an index with a reference to its parent, on the stack during a tree walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPath<'a> {
    parent: Option<&'a Self>,
    segment: KeyPathSegment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum KeyPathSegment<'a> {
    Root(&'a str),
    Key(&'a str),
    Index(usize),
}

/// Maximum number of characters of a key in messages.
const MAX_SHOWN_CHARS: usize = 128;

impl<'a> KeyPath<'a> {
    pub(crate) fn root() -> Self {
        Self { parent: None, segment: KeyPathSegment::Root("") }
    }

    /// Creates a path that continues a formatted prefix.
    pub(crate) fn from_prefix(prefix: &'a str) -> Self {
        Self { parent: None, segment: KeyPathSegment::Root(prefix) }
    }

    pub(crate) fn key<'b>(&'b self, key: &'b str) -> KeyPath<'b> {
        KeyPath { parent: Some(self), segment: KeyPathSegment::Key(key) }
    }

    pub(crate) fn index(&self, index: usize) -> KeyPath<'_> {
        KeyPath { parent: Some(self), segment: KeyPathSegment::Index(index) }
    }

    /// Returns whether this is the name of a server in a file of the usual structure.
    pub(crate) fn is_server(&self) -> bool {
        self.parent.is_some_and(|up| {
            matches!(up.segment, KeyPathSegment::Key("servers" | "mcpServers"))
                && up.parent.is_some_and(|root| root.parent.is_none())
        })
    }
}

impl fmt::Display for KeyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self.segment];
        let mut ancestor = self;
        while let Some(up) = ancestor.parent {
            steps.push(up.segment);
            ancestor = up;
        }
        let mut started = false;
        for step in steps.into_iter().rev() {
            match step {
                KeyPathSegment::Root(prefix) => f.write_str(prefix)?,
                KeyPathSegment::Index(index) => write!(f, "[{index}]")?,
                KeyPathSegment::Key(key) if is_bare_key(key) => {
                    write!(f, "{}{key}", if started { "." } else { "" })?;
                }
                KeyPathSegment::Key(key) => {
                    write!(f, "[\"{}\"]", escape_for_message(key))?;
                }
            }
            started = started || !matches!(step, KeyPathSegment::Root(""));
        }
        Ok(())
    }
}

/// Escapes and truncates untrusted text of the file for a message.
pub(crate) fn escape_for_message(text: &str) -> String {
    let mut escaped: String =
        text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        escaped.push('…');
    }
    escaped
}

fn is_bare_key(key: &str) -> bool {
    (1..=MAX_SHOWN_CHARS).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_path_reads_like_a_user_would_write_it() {
        let root = KeyPath::root();
        let servers = root.key("servers");
        let server = servers.key("fs");
        assert_eq!(server.key("args").index(1).to_string(), "servers.fs.args[1]");
        assert_eq!(servers.key("a.b").key("url").to_string(), r#"servers["a.b"].url"#);
        assert_eq!(KeyPath::from_prefix("servers.fs").key("url").to_string(), "servers.fs.url");
        assert_eq!(servers.key("").key("url").to_string(), r#"servers[""].url"#);
    }

    /// Attack: terminal | a key of a configuration file contains escape codes or is very long | the
    /// message is escaped and short | Foreign text stays text
    #[test]
    fn a_key_cannot_write_to_the_terminal_or_fill_it() {
        let root = KeyPath::root();
        let displayed = root.key("\u{1b}[2J\u{202e}x").to_string();
        assert!(!displayed.contains(['\u{1b}', '\u{202e}']), "{displayed:?}");
        let long = "k".repeat(MAX_SHOWN_CHARS + 1);
        assert!(root.key(&long).to_string().chars().count() < MAX_SHOWN_CHARS + 10);
    }
}

//! The way from the root of a configuration to a key, written as the user would.

use std::fmt;

/// A key or an index and what leads to it, kept on the stack while a tree is walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail<'a> {
    up: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root(&'a str),
    Key(&'a str),
    Index(usize),
}

/// How many characters of one key are shown.
const SHOWN: usize = 128;

impl<'a> Trail<'a> {
    pub(super) fn root() -> Self {
        Self { up: None, step: Step::Root("") }
    }

    /// A trail that goes on from a place already put into words.
    pub(super) fn from(words: &'a str) -> Self {
        Self { up: None, step: Step::Root(words) }
    }

    pub(super) fn key<'b>(&'b self, key: &'b str) -> Trail<'b> {
        Trail { up: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&self, index: usize) -> Trail<'_> {
        Trail { up: Some(self), step: Step::Index(index) }
    }

    /// Whether this is the name of a server in a file of the usual shape.
    pub(super) fn is_server(&self) -> bool {
        self.up.is_some_and(|up| {
            matches!(up.step, Step::Key("servers" | "mcpServers"))
                && up.up.is_some_and(|root| root.up.is_none())
        })
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self.step];
        let mut trail = self;
        while let Some(up) = trail.up {
            steps.push(up.step);
            trail = up;
        }
        let mut begun = false;
        for step in steps.into_iter().rev() {
            match step {
                Step::Root(words) => f.write_str(words)?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_plain(key) => {
                    write!(f, "{}{key}", if begun { "." } else { "" })?;
                }
                Step::Key(key) => {
                    write!(f, "[\"{}\"]", shown(key))?;
                }
            }
            begun = begun || !matches!(step, Step::Root(""));
        }
        Ok(())
    }
}

/// A text of the file as a message may quote it: it can be anything, of any length.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn is_plain(key: &str) -> bool {
    (1..=SHOWN).contains(&key.len())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_reads_like_the_path_a_user_would_write() {
        let root = Trail::root();
        let servers = root.key("servers");
        let server = servers.key("fs");
        assert_eq!(server.key("args").index(1).to_string(), "servers.fs.args[1]");
        assert_eq!(servers.key("a.b").key("url").to_string(), r#"servers["a.b"].url"#);
        assert_eq!(Trail::from("servers.fs").key("url").to_string(), "servers.fs.url");
        assert_eq!(servers.key("").key("url").to_string(), r#"servers[""].url"#);
    }

    #[test]
    fn a_key_cannot_write_to_the_terminal_or_fill_it() {
        let root = Trail::root();
        let shown = root.key("\u{1b}[2J\u{202e}x").to_string();
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
        let long = "k".repeat(SHOWN + 1);
        assert!(root.key(&long).to_string().chars().count() < SHOWN + 10);
    }
}

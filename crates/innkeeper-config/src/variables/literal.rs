//! Detects texts that fail later: variables and `~` for a shell, and placeholders.

/// What a text is for, which decides how much of the text a message may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralKind {
    /// A program or a directory: `command`, `cwd`, `envFile`.
    Path,
    /// An argument of a program.
    Argument,
    /// The URL of a server.
    Url,
    /// A value that may be secret: `env`, `headers`.
    Secret,
}

impl LiteralKind {
    /// Returns the kind of the value of a server key.
    pub(crate) fn for_key(key: &str) -> Option<Self> {
        match key {
            "command" | "cwd" | "envFile" => Some(Self::Path),
            "args" | "headersHelper" => Some(Self::Argument),
            "url" => Some(Self::Url),
            "env" | "headers" => Some(Self::Secret),
            _ => None,
        }
    }
}

/// A text that fails later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiteralProblem {
    /// Whether the text cannot be intended.
    pub(crate) is_error: bool,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Finds the first problem of a text. `is_set` returns whether a variable is set.
pub(crate) fn find_problem(
    kind: LiteralKind,
    text: &str,
    is_set: impl Fn(&str) -> bool,
) -> Option<LiteralProblem> {
    find_tilde(kind, text)
        .or_else(|| find_bare_variable(kind, text, is_set))
        .or_else(|| find_placeholder(kind, text))
}

fn is_home(path: &str) -> bool {
    path == "~" || path.starts_with("~/")
}

/// Finds `~` in place of the home directory.
fn find_tilde(kind: LiteralKind, text: &str) -> Option<LiteralProblem> {
    let found = match kind {
        LiteralKind::Path | LiteralKind::Secret => is_home(text),
        LiteralKind::Argument => {
            is_home(text) || text.split_once('=').is_some_and(|(_, value)| is_home(value))
        }
        LiteralKind::Url => false,
    };
    found.then(|| LiteralProblem {
        // A program may expand `~` in its arguments and variables.
        is_error: kind == LiteralKind::Path,
        message: "`~` stays literal, because no shell runs".to_owned(),
        hint: "write `${userHome}` for the home directory".to_owned(),
    })
}

/// Finds `$NAME`, which only a shell expands.
fn find_bare_variable(
    kind: LiteralKind,
    text: &str,
    is_set: impl Fn(&str) -> bool,
) -> Option<LiteralProblem> {
    // The script of a shell may contain variables. A header has its scheme in front of the key.
    let max_words = if kind == LiteralKind::Secret { 2 } else { 1 };
    if text.split_whitespace().count() > max_words {
        return None;
    }
    text.split_whitespace().find_map(|word| {
        let (before, after) = word.split_once('$')?;
        let length = after.find(|c: char| !is_name_char(c)).unwrap_or(after.len());
        let (name, rest) = after.split_at(length);
        let is_separate = before.is_empty() || before.ends_with(['/', ':', '=', ',', ';']);
        if !is_separate || name.len() < 2 || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let is_whole = before.is_empty() && (rest.is_empty() || rest.starts_with(['/', ':']));
        let is_known = is_set(name);
        // A `$` in a password is common.
        (is_whole || is_known).then(|| match kind == LiteralKind::Secret && !is_known {
            true => bare_variable("NAME"),
            false => bare_variable(name),
        })
    })
}

fn bare_variable(name: &str) -> LiteralProblem {
    LiteralProblem {
        is_error: false,
        message: format!("`${name}` stays literal; only `${{…}}` is replaced"),
        hint: format!("write `${{{name}}}`"),
    }
}

/// Returns whether a character belongs to the name of a variable; names in lower case are rare.
fn is_name_char(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

/// Texts of instructions, in lower case.
const PLACEHOLDER_WORDS: [&str; 8] = [
    "changeme",
    "change_me",
    "change-me",
    "replaceme",
    "replace_me",
    "replace-me",
    "placeholder",
    "todo",
];

/// Prefixes of instructions, in lower case.
const PLACEHOLDER_PREFIXES: [&str; 6] =
    ["your_", "your-", "insert_your", "insert-your", "enter_your", "enter-your"];

/// Directories of instructions.
const PLACEHOLDER_PATHS: [&str; 3] = ["/path/to/", "path/to/your", "\\path\\to\\"];

/// Finds the text of an instruction in place of a value.
fn find_placeholder(kind: LiteralKind, text: &str) -> Option<LiteralProblem> {
    if text.contains("${") {
        return None;
    }
    // A header has its scheme in front of the key.
    let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    let is_instruction = is_bracketed(word)
        || is_bracketed(text)
        || PLACEHOLDER_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || PLACEHOLDER_PATHS.iter().any(|path| lower.contains(path));
    let is_secret_placeholder = kind == LiteralKind::Secret
        && (PLACEHOLDER_WORDS.contains(&&*lower)
            || lower.ends_with("...")
            || lower.ends_with('…')
            || is_masked(&lower));
    (is_instruction || is_secret_placeholder).then(|| LiteralProblem {
        is_error: false,
        message: "the value looks like a placeholder".to_owned(),
        hint: match kind {
            LiteralKind::Secret => "write the value, or a reference such as `${NAME}`".to_owned(),
            LiteralKind::Path | LiteralKind::Argument | LiteralKind::Url => {
                "write the value".to_owned()
            }
        },
    })
}

fn is_bracketed(text: &str) -> bool {
    text.len() > 2 && text.starts_with('<') && text.ends_with('>')
}

/// Returns whether the last part of a key consists of `x` or `*`: `sk-xxxx`.
fn is_masked(key: &str) -> bool {
    let last = key.rsplit(['-', '_']).next().unwrap_or_default();
    last.len() >= 3 && (last.bytes().all(|byte| byte == b'x') || last.bytes().all(|b| b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: LiteralKind, text: &str) -> Option<String> {
        let problem = find_problem(kind, text, |name| name == "HOME" || name == "DATA")?;
        Some(format!("{} ({})", problem.message, problem.hint))
    }

    #[test]
    fn a_variable_without_braces_is_found() {
        for (kind, text) in [
            (LiteralKind::Argument, "$HOME/files"),
            (LiteralKind::Argument, "--root=$HOME/files"),
            (LiteralKind::Argument, "$UNSET_ROOT"),
            (LiteralKind::Path, "$HOME/bin/server"),
            (LiteralKind::Url, "https://a.example/$DATA"),
            (LiteralKind::Secret, "$API_TOKEN"),
            (LiteralKind::Secret, "Bearer $API_TOKEN"),
        ] {
            let found = message(kind, text).unwrap_or_else(|| panic!("{text}"));
            assert!(found.contains("stays literal"), "{found}");
        }
        let found = message(LiteralKind::Argument, "$HOME/files").unwrap();
        assert!(found.ends_with("(write `${HOME}`)"), "{found}");
    }

    #[test]
    fn a_dollar_sign_for_another_purpose_is_not_reported() {
        for (kind, text) in [
            (LiteralKind::Argument, "${HOME}/files"),
            (LiteralKind::Argument, "echo $HOME; exec server"),
            (LiteralKind::Argument, "^foo$"),
            (LiteralKind::Argument, "$1"),
            (LiteralKind::Argument, "price=5$USD"),
            (LiteralKind::Secret, "pa$WORD1"),
            (LiteralKind::Secret, "pa$HOME"),
            (LiteralKind::Secret, "a; rm \"$HOME\" b"),
            (LiteralKind::Secret, "$2b$10$N9qo8uLOickgx2ZMRZoMye"),
            (LiteralKind::Secret, "$${HOME}"),
        ] {
            assert_eq!(message(kind, text), None, "{text}");
        }
    }

    #[test]
    fn a_message_about_a_value_that_may_be_secret_shows_no_part_of_the_value() {
        let found = message(LiteralKind::Secret, "$HUNTER2").unwrap();
        assert!(!found.contains("HUNTER2"), "{found}");
    }

    #[test]
    fn a_tilde_is_an_error_where_no_program_expands_the_tilde() {
        let problem = |kind, text| find_problem(kind, text, |_| false);
        assert!(problem(LiteralKind::Path, "~/bin/server").unwrap().is_error);
        assert!(!problem(LiteralKind::Argument, "~/files").unwrap().is_error);
        assert!(!problem(LiteralKind::Argument, "--root=~/files").unwrap().is_error);
        assert!(!problem(LiteralKind::Secret, "~/key.json").unwrap().is_error);
        for text in ["a~", "~b/c", "x/~/y", "-~"] {
            assert_eq!(problem(LiteralKind::Argument, text), None, "{text}");
        }
    }

    #[test]
    fn the_text_of_an_instruction_is_found() {
        for text in ["YOUR_API_KEY_HERE", "your-token", "<your key>", "<token>", "/path/to/files"] {
            assert!(message(LiteralKind::Argument, text).is_some(), "{text}");
        }
        for text in ["Bearer YOUR_TOKEN", "changeme", "sk-...", "ghp_xxxxxxxx", "xxx", "TODO"] {
            assert!(message(LiteralKind::Secret, text).is_some(), "{text}");
        }
        for text in ["yourself", "files", "todo", "a<b>", "x", "--xxx", "${YOUR_KEY}", "<>"] {
            assert_eq!(message(LiteralKind::Argument, text), None, "{text}");
        }
        for text in ["sk-proj-4fxx", "true", "1", "en_US.UTF-8", "xx"] {
            assert_eq!(message(LiteralKind::Secret, text), None, "{text}");
        }
    }
}

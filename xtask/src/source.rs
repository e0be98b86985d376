//! Splits Rust text into what the compiler reads and what people read, line for line.

/// A Rust file seen three ways. All texts have the same lines and columns.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file as it is.
    pub(crate) text: String,
    /// Code alone: comments and the insides of literals are blank.
    pub(crate) code: String,
    /// Comments alone.
    pub(crate) comments: String,
    /// Which lines belong to an item under `#[cfg(test)]`.
    pub(crate) in_test: Vec<bool>,
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut split =
            Split { rest: text, before: ' ', code: String::new(), comments: String::new() };
        while !split.rest.is_empty() {
            let (kind, length) = split.piece();
            split.take(kind, length);
        }
        let in_test = test_lines(&split.code);
        Self { text: text.to_owned(), code: split.code, comments: split.comments, in_test }
    }

    /// Lines of code outside `#[cfg(test)]`.
    pub(crate) fn code_lines(&self) -> usize {
        self.product_lines().filter(|(_, line)| !line.trim().is_empty()).count()
    }

    /// Code lines outside `#[cfg(test)]` with their numbers, from one.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().zip(&self.in_test).enumerate();
        lines.filter(|(_, (_, test))| !**test).map(|(at, (line, _))| (at + 1, line))
    }

    /// Whether the code declares the module `name` as a file of its own.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.modules().any(|module| module == name)
    }

    /// The modules that the code declares as files of their own.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &str> {
        self.code.lines().filter_map(|line| {
            let rest = line.trim().strip_suffix(';')?;
            let (before, name) = rest.rsplit_once("mod ")?;
            let visibility = before.is_empty() || before.ends_with(' ');
            (visibility && name.chars().all(is_word)).then_some(name)
        })
    }
}

/// Whether the character may stand in an identifier.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `line` holds `word` with no identifier running on at either end.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let open = word.starts_with(is_word) && before.is_some_and(is_word);
        let runs_on = word.ends_with(is_word) && after.is_some_and(is_word);
        !open && !runs_on
    })
}

struct Split<'a> {
    rest: &'a str,
    before: char,
    code: String,
    comments: String,
}

impl Split<'_> {
    /// What the rest begins with, and how many bytes of it.
    fn piece(&self) -> (Kind, usize) {
        let rest = self.rest;
        if rest.starts_with("//") {
            return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return (Kind::Comment, block_comment(rest));
        }
        if let Some(length) = raw_string(rest).filter(|_| !is_word(self.before)) {
            return (Kind::Literal, length);
        }
        if rest.starts_with('"') {
            return (Kind::Literal, quoted(rest, '"'));
        }
        if let Some(length) = character(rest) {
            return (Kind::Literal, length);
        }
        (Kind::Code, rest.chars().next().map_or(1, char::len_utf8))
    }

    fn take(&mut self, kind: Kind, length: usize) {
        let (piece, rest) = self.rest.split_at(length);
        for character in piece.chars() {
            let blank = if character == '\n' { '\n' } else { ' ' };
            self.code.push(if matches!(kind, Kind::Code) { character } else { blank });
            self.comments.push(if matches!(kind, Kind::Comment) { character } else { blank });
        }
        self.before = piece.chars().next_back().unwrap_or(' ');
        self.rest = rest;
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opened = text.len() - body.len();
    Some(body.find(&close).map_or(text.len(), |end| opened + end + close.len()))
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !escaped {
            return at + 1;
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

/// The length of a character literal; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.strip_prefix('\'')?.chars();
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\'')).then(|| quoted(text, '\''))
}

fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = Vec::new();
    let (mut open, mut depth) = (false, 0_usize);
    for line in code.lines() {
        open |= line.trim_start().starts_with("#[cfg(test)]");
        lines.push(open);
        if !open {
            continue;
        }
        let attribute = line.trim_start().starts_with("#[");
        let before = depth;
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        let closed = before > 0 || line.contains('{');
        let item_without_body = before == 0 && line.contains(';') && !line.contains('{');
        open = !(depth == 0 && (closed || item_without_body) && !attribute);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_told_from_code() {
        let text = "let a = \"// no /* \\\" \"; // yes 'x'\nlet b = r#\"un\"safe\"#; /* a /* b */ c */ d(b'\"', '\\'');";
        let source = Source::new(text);
        assert!(source.code.contains("d("));
        assert!(!source.code.contains("no") && !source.code.contains("safe"));
        assert!(source.comments.contains("yes 'x'") && source.comments.contains("c */"));
        assert!(!source.comments.contains("no"));
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        let source = Source::new("fn f<'a>(x: &'a str) -> &'a str { unsafe_name(x) }");
        assert!(source.code.contains("unsafe_name"));
        assert!(has_word(&source.code, "unsafe_name") && !has_word(&source.code, "unsafe"));
    }

    #[test]
    fn items_under_cfg_test_are_not_product_code() {
        let text = "fn a() {}\n#[cfg(test)]\nuse x;\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {\n    }\n}\nfn d() {}\n#[cfg(test)]\nmod tests;\nfn e() {}\n";
        let lines: Vec<usize> = Source::new(text).product_lines().map(|(at, _)| at).collect();
        assert_eq!(lines, [1, 4, 10, 13]);
    }

    #[test]
    fn declared_modules_are_found_whatever_their_visibility() {
        let source = Source::new("pub mod a;\nmod b;\npub(crate) mod c;\nmod d { }\n// mod e;\n");
        assert_eq!(source.modules().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

//! Splits Rust source text into code and comments, line by line.

/// A Rust file as three texts with the same lines and columns.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The unchanged text.
    pub(crate) text: String,
    /// The code; comments and the contents of literals are blank.
    pub(crate) code: String,
    /// The comments; everything else is blank.
    pub(crate) comments: String,
    /// Whether each line belongs to an item under `#[cfg(test)]`.
    pub(crate) is_test_line: Vec<bool>,
}

#[derive(Clone, Copy)]
enum SpanKind {
    Code,
    Comment,
    Literal,
}

impl SourceFile {
    pub(crate) fn new(text: &str) -> Self {
        let mut split = SourceSplitter {
            remaining: text,
            previous_char: ' ',
            code: String::new(),
            comments: String::new(),
        };
        while !split.remaining.is_empty() {
            let (kind, length) = split.next_span();
            split.push_span(kind, length);
        }
        let is_test_line = test_lines(&split.code);
        Self { text: text.to_owned(), code: split.code, comments: split.comments, is_test_line }
    }

    /// Number of code lines outside `#[cfg(test)]`.
    pub(crate) fn code_lines(&self) -> usize {
        self.product_lines().filter(|(_, line)| !line.trim().is_empty()).count()
    }

    /// Code lines outside `#[cfg(test)]` with their line numbers.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().zip(&self.is_test_line).enumerate();
        lines.filter(|(_, (_, test))| !**test).map(|(at, (line, _))| (at + 1, line))
    }

    /// Whether the code declares the module `name` as a separate file.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.modules().any(|module| module == name)
    }

    /// The modules that the code declares as separate files.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &str> {
        self.code.lines().filter_map(|line| {
            let rest = line.trim().strip_suffix(';')?;
            let (before, name) = rest.rsplit_once("mod ")?;
            let visibility = before.is_empty() || before.ends_with(' ');
            (visibility && name.chars().all(is_identifier_char)).then_some(name)
        })
    }
}

/// Whether an identifier may contain the character.
pub(crate) fn is_identifier_char(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `line` contains `word` as a complete identifier.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let open = word.starts_with(is_identifier_char) && before.is_some_and(is_identifier_char);
        let runs_on = word.ends_with(is_identifier_char) && after.is_some_and(is_identifier_char);
        !open && !runs_on
    })
}

struct SourceSplitter<'a> {
    remaining: &'a str,
    previous_char: char,
    code: String,
    comments: String,
}

impl SourceSplitter<'_> {
    /// The kind and the length in bytes of the next span.
    fn next_span(&self) -> (SpanKind, usize) {
        let rest = self.remaining;
        if rest.starts_with("//") {
            return (SpanKind::Comment, rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return (SpanKind::Comment, block_comment_len(rest));
        }
        if let Some(length) =
            raw_string_len(rest).filter(|_| !is_identifier_char(self.previous_char))
        {
            return (SpanKind::Literal, length);
        }
        if rest.starts_with('"') {
            return (SpanKind::Literal, quoted_len(rest, '"'));
        }
        if let Some(length) = char_literal_len(rest) {
            return (SpanKind::Literal, length);
        }
        (SpanKind::Code, rest.chars().next().map_or(1, char::len_utf8))
    }

    fn push_span(&mut self, kind: SpanKind, length: usize) {
        let (chunk, rest) = self.remaining.split_at(length);
        for character in chunk.chars() {
            let blank = if character == '\n' { '\n' } else { ' ' };
            self.code.push(if matches!(kind, SpanKind::Code) { character } else { blank });
            self.comments.push(if matches!(kind, SpanKind::Comment) { character } else { blank });
        }
        self.previous_char = chunk.chars().next_back().unwrap_or(' ');
        self.remaining = rest;
    }
}

fn block_comment_len(text: &str) -> usize {
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

fn raw_string_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opened = text.len() - body.len();
    Some(body.find(&close).map_or(text.len(), |end| opened + end + close.len()))
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !escaped {
            return at + 1;
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

/// The length of a character literal; none for a lifetime.
fn char_literal_len(text: &str) -> Option<usize> {
    let mut characters = text.strip_prefix('\'')?.chars();
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\'')).then(|| quoted_len(text, '\''))
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
    fn comments_and_literals_are_separated_from_code() {
        let text = "let a = \"// no /* \\\" \"; // yes 'x'\nlet b = r#\"un\"safe\"#; /* a /* b */ c */ d(b'\"', '\\'');";
        let source = SourceFile::new(text);
        assert!(source.code.contains("d("));
        assert!(!source.code.contains("no") && !source.code.contains("safe"));
        assert!(source.comments.contains("yes 'x'") && source.comments.contains("c */"));
        assert!(!source.comments.contains("no"));
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        let source = SourceFile::new("fn f<'a>(x: &'a str) -> &'a str { unsafe_name(x) }");
        assert!(source.code.contains("unsafe_name"));
        assert!(has_word(&source.code, "unsafe_name") && !has_word(&source.code, "unsafe"));
    }

    #[test]
    fn items_under_cfg_test_are_not_product_code() {
        let text = "fn a() {}\n#[cfg(test)]\nuse x;\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {\n    }\n}\nfn d() {}\n#[cfg(test)]\nmod tests;\nfn e() {}\n";
        let lines: Vec<usize> = SourceFile::new(text).product_lines().map(|(at, _)| at).collect();
        assert_eq!(lines, [1, 4, 10, 13]);
    }

    #[test]
    fn declared_modules_are_found_whatever_their_visibility() {
        let source =
            SourceFile::new("pub mod a;\nmod b;\npub(crate) mod c;\nmod d { }\n// mod e;\n");
        assert_eq!(source.modules().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

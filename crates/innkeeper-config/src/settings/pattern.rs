//! Patterns of names and arguments.

/// Returns whether a text matches a pattern; `*` matches any sequence of characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut chunks = pattern.split('*');
    let first = chunks.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = chunks.next_back() else {
        return rest.is_empty();
    };
    for chunk in chunks {
        match rest.find(chunk) {
            Some(at) => rest = &rest[at + chunk.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

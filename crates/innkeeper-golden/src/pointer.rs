//! Patterns of JSON pointers.

use serde::{Deserialize, Serialize};

/// A JSON pointer in which `*` stands for any one step: `/items/*/id`. It also covers everything
/// below the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PointerPattern(String);

/// Why a text is no [`PointerPattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is empty, which is the pointer of the whole value.
    #[error("a path must name a field; to ignore all arguments, write \"arguments\": \"ignore\"")]
    WholeValue,
    /// The text does not start with a slash.
    #[error("a path starts with `/`, such as `/options/path`")]
    NoSlash,
    /// A tilde is not followed by 0 or 1.
    #[error("write `~0` for `~` and `~1` for `/` in the name of a member")]
    Escape,
}

impl PointerPattern {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pointer is that of a field that the pattern names.
    pub fn matches(&self, pointer: &str) -> bool {
        matches(&self.0, pointer)
    }
}

impl TryFrom<String> for PointerPattern {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        if text.is_empty() {
            return Err(PointerError::WholeValue);
        }
        if !text.starts_with('/') {
            return Err(PointerError::NoSlash);
        }
        if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Err(PointerError::Escape);
        }
        Ok(Self(text))
    }
}

impl From<PointerPattern> for String {
    fn from(pattern: PointerPattern) -> Self {
        pattern.0
    }
}

/// Returns whether a pointer has as many steps as the pattern, and the same but for `*`.
pub(crate) fn matches(pattern: &str, pointer: &str) -> bool {
    let mut steps = pointer.split('/');
    let same = pattern
        .split('/')
        .all(|expected| steps.next().is_some_and(|step| expected == step || (expected == "*")));
    same && steps.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_exactly_one_step() {
        let cases = [
            ("/a/*/b", "/a/0/b", true),
            ("/a/*/b", "/a/x~1y/b", true),
            ("/a/*/b", "/a/b", false),
            ("/a/*/b", "/a/0/c", false),
            ("/a/*", "/a", false),
            ("/a/*", "/a/0/b", false),
            ("/a", "/a", true),
            ("/a", "", false),
        ];
        for (pattern, pointer, expected) in cases {
            assert_eq!(matches(pattern, pointer), expected, "{pattern} {pointer}");
        }
    }

    #[test]
    fn a_text_that_is_no_pointer_is_an_error() {
        let parse = |text: &str| PointerPattern::try_from(text.to_owned());
        assert_eq!(parse(""), Err(PointerError::WholeValue));
        assert_eq!(parse("path"), Err(PointerError::NoSlash));
        assert_eq!(parse("/a~2"), Err(PointerError::Escape));
        assert_eq!(parse("/a~"), Err(PointerError::Escape));
        assert!(parse("/a~0~1/*").unwrap().matches("/a~0~1/7"));
    }
}

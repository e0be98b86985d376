//! A random tag in the environment of all processes of a test.

/// A tag that is unique to a test: every process that inherits the tag belongs to the test.
#[derive(Clone, Debug)]
pub struct ProcessTag(String);

impl ProcessTag {
    /// The environment variable with the tag.
    pub const VARIABLE: &str = "INNKEEPER_TEST_NONCE";

    /// Creates a new tag.
    #[must_use]
    pub fn new() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }

    /// Returns the text of the tag.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ProcessTag {
    fn default() -> Self {
        Self::new()
    }
}

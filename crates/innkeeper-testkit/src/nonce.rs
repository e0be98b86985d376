//! A random mark in the environment by which a test finds the processes it caused.

/// A mark no other test has: whatever inherits it belongs to the test that made it.
#[derive(Clone, Debug)]
pub struct Nonce(String);

impl Nonce {
    /// The environment variable that carries it.
    pub const VARIABLE: &str = "INNKEEPER_TEST_NONCE";

    /// Makes a new one.
    #[must_use]
    pub fn new() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Nonce {
    fn default() -> Self {
        Self::new()
    }
}

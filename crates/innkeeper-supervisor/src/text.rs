//! Text of bounded length on the stack.

use core::fmt;

/// A text of at most `N` bytes.
#[derive(Clone, Copy)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> FixedText<N> {
    /// Formats a text; `None` if it is longer than `N` bytes.
    pub fn format(arguments: fmt::Arguments<'_>) -> Option<Self> {
        let mut text = Self::default();
        fmt::Write::write_fmt(&mut text, arguments).ok()?;
        Some(text)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Returns the bytes of the text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for FixedText<N> {
    /// Appends the whole text, or nothing if it does not fit.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.checked_add(text.len()).ok_or(fmt::Error)?;
        let space = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        space.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_limit_fits_and_one_byte_more_does_not() {
        assert_eq!(FixedText::<4>::format(format_args!("a{}", 123)).unwrap().as_str(), "a123");
        assert!(FixedText::<4>::format(format_args!("a{}", 1234)).is_none());
    }
}

//! Whether the text of a JSON object has come to its end, found out piece by piece.

/// Looks at each byte once: text that grows is never read again.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::provider) struct Balance {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Balance {
    /// Takes the next piece, and tells how many of its bytes belong to the object if it ends there.
    pub(in crate::provider) fn push(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            if self.escaped {
                self.escaped = false;
                continue;
            }
            match byte {
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.closed = true;
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Whether all that was opened was closed again.
    pub(in crate::provider) fn is_closed(self) -> bool {
        self.closed && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_closed_by_its_own_brace_alone() {
        for (text, closed) in [
            ("", false),
            ("{}", true),
            (r#"{"a":[1,{"b":2}]}"#, true),
            (r#"{"a":"}"#, false),
            (r#"{"a":"\"}"#, false),
            (r#"{"a":"\\"}"#, true),
            (r#"{"a":{"#, false),
            (r#"{"a":{}"#, false),
        ] {
            let mut balance = Balance::default();
            for byte in text.as_bytes() {
                let _ = balance.push(&[*byte]);
            }
            assert_eq!(balance.is_closed(), closed, "{text}");
        }
    }

    #[test]
    fn the_end_is_told_within_its_piece() {
        assert_eq!(Balance::default().push(b"{\"a\":1}\n\n"), Some(7));
        assert_eq!(Balance::default().push(b"{\"a\":1"), None);
    }
}

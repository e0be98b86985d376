//! Finds the end of a JSON object in a chunked text.

/// The nesting state of a JSON text. Each byte is scanned once.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::provider) struct BraceTracker {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl BraceTracker {
    /// Feeds the next bytes. If the object ends in them, returns the number of bytes up to the end.
    pub(in crate::provider) fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
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

    /// Whether every opened brace and bracket is closed.
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
            let mut balance = BraceTracker::default();
            for byte in text.as_bytes() {
                let _ = balance.push(&[*byte]);
            }
            assert_eq!(balance.is_closed(), closed, "{text}");
        }
    }

    #[test]
    fn the_end_is_found_within_its_chunk() {
        assert_eq!(BraceTracker::default().push(b"{\"a\":1}\n\n"), Some(7));
        assert_eq!(BraceTracker::default().push(b"{\"a\":1"), None);
    }
}

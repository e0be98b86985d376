//! Reads the output of a child process and keeps its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum number of bytes kept: about forty lines.
const MAX_TAIL_BYTES: usize = 4 << 10;

/// The end of the output of a child process so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputTail(Arc<Mutex<VecDeque<u8>>>);

impl OutputTail {
    /// Reads until the end of the stream; returns at once if there is no stream.
    pub(crate) async fn follow_optional(&self, from: Option<impl AsyncRead + Unpin>) {
        if let Some(from) = from {
            self.follow(from).await;
        }
    }

    async fn follow(&self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = [0; 1024];
        // A read error also ends the output.
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&chunk[..read]);
            let excess = tail.len().saturating_sub(MAX_TAIL_BYTES);
            tail.drain(..excess);
        }
    }

    /// Returns the last lines that are not empty.
    pub(crate) fn last_lines(&self, max_lines: usize) -> Vec<String> {
        let bytes: Vec<u8> = {
            let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tail.iter().copied().collect()
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(max_lines)..]
            .iter()
            .map(|line| (*line).to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_bytes_are_retained_up_to_the_limit() {
        let tail = OutputTail::default();
        tail.follow(&*vec![b'x'; MAX_TAIL_BYTES]).await;
        assert_eq!(tail.last_lines(1)[0].len(), MAX_TAIL_BYTES);
        tail.follow(&b"\none\n\ntwo\n"[..]).await;
        assert_eq!(tail.last_lines(2), ["one", "two"]);
        assert_eq!(tail.last_lines(9)[0].len(), MAX_TAIL_BYTES - "\none\n\ntwo\n".len());
        assert_eq!(OutputTail::default().last_lines(3), Vec::<String>::new());
    }
}

//! The last words of a child: read as they come, so that it never waits, and kept up to a limit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes that are kept: some forty lines.
const KEPT: usize = 4 << 10;

/// The end of what a child said so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads until nothing follows; what is no pipe has nothing.
    pub(crate) async fn follow_any(&self, from: Option<impl AsyncRead + Unpin>) {
        if let Some(from) = from {
            self.follow(from).await;
        }
    }

    async fn follow(&self, mut from: impl AsyncRead + Unpin) {
        let mut piece = [0; 1024];
        // A pipe that breaks has said its last, too.
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&piece[..read]);
            let over = kept.len().saturating_sub(KEPT);
            kept.drain(..over);
        }
    }

    /// The last lines of it, none of them empty.
    pub(crate) fn lines(&self, most: usize) -> Vec<String> {
        let kept: Vec<u8> = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().copied().collect()
        };
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_words_are_kept_up_to_the_limit() {
        let tail = Tail::default();
        tail.follow(&*vec![b'x'; KEPT]).await;
        assert_eq!(tail.lines(1)[0].len(), KEPT);
        tail.follow(&b"\none\n\ntwo\n"[..]).await;
        assert_eq!(tail.lines(2), ["one", "two"]);
        assert_eq!(tail.lines(9)[0].len(), KEPT - "\none\n\ntwo\n".len());
        assert_eq!(Tail::default().lines(3), Vec::<String>::new());
    }
}

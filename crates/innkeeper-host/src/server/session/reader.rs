//! Reading a server's output line by line, until it ends or is not worth it any more.

use std::sync::Arc;

use innkeeper_protocol::LineFramer;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::turns::Turns;
use super::{AFTER_END, Shared};
use crate::error::Lost;

/// Reads until the server's output ends; never waits for anything but bytes, for callers to take
/// results that pile up, and a while where it sends too much that nobody asked for.
pub(super) async fn read(shared: Arc<Shared>, mut reader: impl AsyncRead + Send + Unpin) {
    let shared = CloseWithReader(shared);
    let shared = &shared.0;
    let mut framer = LineFramer::new(shared.limits.line);
    let mut turns = Turns::default();
    let mut discarded = 0;
    // What goes on over many reads is one message, and costs its server next to nothing.
    let mut small = true;
    loop {
        let most = if small { shared.pace.sip() } else { u64::MAX };
        let read = match (&mut reader).take(most).read_buf(framer.space()).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        small = false;
        while let Some(frame) = framer.next_frame() {
            small = true;
            Shared::receive(shared, frame);
            shared.settle().await;
        }
        // What was dropped because it was too long, or blank.
        let blank = !small && framer.is_empty();
        let dropped = if blank { read as u64 } else { framer.discarded() - discarded };
        if dropped > 0 {
            shared.pace.count(dropped);
            discarded = framer.discarded();
            shared.settle().await;
        }
        if framer.discarded() > shared.limits.thrown_away {
            return shared.close(Lost::Noise);
        }
        turns.took(read).await;
    }
    if let Some(frame) = framer.finish() {
        Shared::receive(shared, frame);
    }
    shared.pending.end_output();
    // Whoever owns the process knows better why its output ended, and says so before this.
    tokio::time::sleep(AFTER_END).await;
    shared.close(Lost::ClosedOutput);
}

/// Fails what waits when the reading task ends in whatever way: nobody would answer any more.
struct CloseWithReader(Arc<Shared>);

impl Drop for CloseWithReader {
    fn drop(&mut self) {
        self.0.close(Lost::ClosedOutput);
    }
}

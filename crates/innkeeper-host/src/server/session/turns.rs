//! Turns: whoever has a server's flood to read lets everybody else go on in between.

/// Bytes that are taken in one turn, well under a millisecond of work.
///
/// The runtime would let a task that never has to wait for bytes take its thread for 128 reads of up
/// to 64 KiB each, and look only now and then whether other servers have answered meanwhile.
const TURN: usize = 64 << 10;

/// What a message counts beside its bytes, for floods of very small ones.
const EACH: usize = 8 << 10;

/// What one task has taken since others had their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns(usize);

impl Turns {
    /// Counts what was taken, and lets others have their turn where it was enough.
    pub(crate) async fn took(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes).saturating_add(EACH);
        if self.0 >= TURN {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn others_have_their_turn_at_the_limit_and_not_one_byte_before() {
        let mut turns = Turns::default();
        assert!(turns.took(TURN - EACH - 1).now_or_never().is_some());
        assert!(Turns::default().took(TURN - EACH).now_or_never().is_none());
        assert!(turns.took(0).now_or_never().is_none());
        assert!(turns.took(0).now_or_never().is_some(), "it is counted anew");
    }
}

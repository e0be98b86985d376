//! Cooperative scheduling: yields to other tasks during a flood of messages.

/// Maximum number of bytes a task processes before it yields: well under a millisecond of work.
///
/// Without this limit, tokio lets a task that never waits for input run for 128 reads of up to 64
/// KiB each, and polls other servers only rarely in between.
const COOP_BUDGET_BYTES: usize = 64 << 10;

/// Cost of a message in addition to its bytes, for floods of very small messages.
const MESSAGE_COST: usize = 8 << 10;

/// The bytes that a task has processed since it last yielded.
#[derive(Debug, Default)]
pub(crate) struct CoopBudget(usize);

impl CoopBudget {
    /// Counts processed bytes, and yields when the budget is used up.
    pub(crate) async fn consume(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes).saturating_add(MESSAGE_COST);
        if self.0 >= COOP_BUDGET_BYTES {
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
    async fn the_task_yields_at_the_budget_and_not_one_byte_before() {
        let mut budget = CoopBudget::default();
        assert!(budget.consume(COOP_BUDGET_BYTES - MESSAGE_COST - 1).now_or_never().is_some());
        assert!(
            CoopBudget::default()
                .consume(COOP_BUDGET_BYTES - MESSAGE_COST)
                .now_or_never()
                .is_none()
        );
        assert!(budget.consume(0).now_or_never().is_none());
        assert!(budget.consume(0).now_or_never().is_some(), "it is counted anew");
    }
}

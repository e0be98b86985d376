//! The `requestState` of calls over several rounds: the tool and the round, with a checksum.

use std::hash::{BuildHasher, RandomState};

/// Creates and checks states with a random key of this process.
#[derive(Debug, Default)]
pub(crate) struct StateKey(RandomState);

impl StateKey {
    /// Returns the state of a call that waits for the input of a round.
    pub(crate) fn state(&self, item: &str, round: usize) -> String {
        format!("{item}:{round}:{:016x}", self.0.hash_one((item, round)))
    }

    /// Returns the round of a state, or `None` if the state is not one of this server for this item.
    pub(crate) fn round(&self, item: &str, state: &str) -> Option<usize> {
        let round = state.strip_prefix(item)?.strip_prefix(':')?.split(':').next()?.parse().ok()?;
        (self.state(item, round) == state).then_some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_state_has_no_round() {
        let key = StateKey::default();
        let state = key.state("tool", 2);
        assert_eq!(key.round("tool", &state), Some(2));
        assert_eq!(key.round("tool", &format!("{state}-changed")), None);
        assert_eq!(key.round("other", &state), None);
        assert_eq!(key.round("tool", &state.replace(":2:", ":1:")), None);
    }
}

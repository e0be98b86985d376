//! What a run does with its golden.

/// What a run does with its golden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoldenMode {
    /// Runs without the golden.
    Live,
    /// Runs, and writes the golden.
    Record,
    /// Replays the golden. Recorded answers that nothing asks for are allowed.
    Replay,
    /// Replays the golden as [`Self::Replay`] does if it exists, else records it.
    Auto,
    /// Replays the golden. A recorded answer that nothing asks for is an error, and so is a missing
    /// golden.
    Strict,
}

/// What is done with a golden once it is known whether the golden exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoldenAction {
    /// The run has nothing to do with it.
    Run,
    /// The run is recorded.
    Record,
    /// The golden is replayed.
    Replay(UnusedAnswers),
}

/// What recorded answers mean that nothing asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedAnswers {
    /// Nothing.
    Allowed,
    /// The replay failed.
    Refused,
}

impl GoldenMode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Live, Self::Record, Self::Replay, Self::Auto, Self::Strict];

    /// Returns the name, such as `strict`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Record => "record",
            Self::Replay => "replay",
            Self::Auto => "auto",
            Self::Strict => "strict",
        }
    }

    /// Returns the mode with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Returns what is done with a golden that exists, or does not.
    pub fn action(self, golden_exists: bool) -> GoldenAction {
        match self {
            Self::Live => GoldenAction::Run,
            Self::Record => GoldenAction::Record,
            Self::Auto if !golden_exists => GoldenAction::Record,
            Self::Replay | Self::Auto => GoldenAction::Replay(UnusedAnswers::Allowed),
            Self::Strict => GoldenAction::Replay(UnusedAnswers::Refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_record_and_auto_without_a_golden_record() {
        use GoldenAction::{Record, Replay, Run};
        let allowed = Replay(UnusedAnswers::Allowed);
        let refused = Replay(UnusedAnswers::Refused);
        let actions = |exists| GoldenMode::ALL.map(|mode| mode.action(exists));
        assert_eq!(actions(true), [Run, Record, allowed, allowed, refused]);
        assert_eq!(actions(false), [Run, Record, allowed, Record, refused]);
    }

    #[test]
    fn each_mode_has_its_name() {
        for mode in GoldenMode::ALL {
            assert_eq!(GoldenMode::from_name(mode.as_str()), Some(mode));
        }
        assert_eq!(GoldenMode::from_name("none"), None);
    }
}

//! What a turn has come to: its counts, and what there is to learn of it.

use std::collections::BTreeMap;

use crate::provider::Usage;

/// A call that went wrong and then right, to learn from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// What it was asked for, in the words of the person.
    pub asked: String,
    /// What the model wrote each time, and what was wrong with it.
    pub attempts: Vec<(String, String)>,
    /// What it wrote at last.
    pub corrected: String,
}

/// What a turn has come to so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Answers of the model that counted as rounds.
    pub iterations: u32,
    /// All requests together, repeated ones included.
    pub requests: u32,
    /// How many of them were answered.
    pub answers: u32,
    /// How many were repeated because of a failure.
    pub repeated: u32,
    /// How many asked again because a call was none.
    pub corrections: u32,
    /// Failures of the provider, by the name of their class.
    pub failures: BTreeMap<&'static str, u32>,
    /// What the providers counted, of all answers together.
    pub usage: Usage,
    /// Whether every answer said what it cost.
    pub usage_is_whole: bool,
}

//! Asking again after an answer with a call that is none: how often, how soon, how cool.

use std::time::Duration;

use innkeeper_toolcall::prompt::Attempt;

use super::Setup;

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// The most that chance adds to a pause: three tenths of it.
const JITTER: f64 = 0.3;

/// What was tried to get one answer with calls that are calls.
#[derive(Debug, Default)]
pub(super) struct Correction {
    /// What was wrong with each attempt, oldest first.
    pub(super) attempts: Vec<Attempt>,
    /// Whether the server was told to hold the answer to the form of a call.
    pub(super) constrained: bool,
}

/// What to do after another attempt that failed.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Ask again after this pause.
    Again(Duration),
    /// Ask again, and let the server hold the answer to the form of a call.
    Constrain,
    /// Give up.
    GiveUp,
}

impl Correction {
    /// Nothing was tried yet.
    pub(super) fn first(setup: &Setup) -> Self {
        Self { attempts: Vec::new(), constrained: setup.wants_call() }
    }

    /// The attempt failed. Whoever makes the same mistake twice makes it a third time.
    pub(super) fn failed(&mut self, setup: &Setup, problem: Attempt, chance: f64) -> Next {
        let same = self.attempts.last() == Some(&problem);
        self.attempts.push(problem);
        if same || self.attempts.len() > setup.max_retries as usize {
            let free = !self.constrained && setup.can_constrain();
            return if free { Next::Constrain } else { Next::GiveUp };
        }
        Next::Again(pause(setup.retry_delay, self.attempts.len() as u32 - 1, chance))
    }

    /// How random the next attempt may be.
    pub(super) fn temperature(&self, setup: &Setup) -> Option<f64> {
        let steps = self.attempts.len() as f64;
        let cooler = (setup.temperature? - setup.temperature_reduction * steps).max(0.0);
        // Of 0.7 less three tenths, 0.4 is left and not 0.3999999999999999.
        Some((cooler * 1e6).round() / 1e6)
    }
}

/// The pause before the attempt after `retries` others; `chance` is from 0 to 1.
pub(super) fn pause(first: Duration, retries: u32, chance: f64) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST);
    // What is no number is no chance.
    let chance = if chance > 0.0 { chance.min(1.0) } else { 0.0 };
    doubled.mul_f64(1.0 + JITTER * chance)
}

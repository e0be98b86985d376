//! The comparison as the text of a failed test.

use std::fmt;

use super::{Comparison, Judgement, Verdict};

/// Maximum number of mismatches of one rule in the text.
const MAX_SHOWN: usize = 10;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: Vec<&Judgement> =
            self.judged.iter().filter(|judgement| judgement.verdict != Verdict::Passed).collect();
        let all = self.judged.len();
        if all == 0 {
            return f.write_str("failed: no rule was applied, so nothing was judged");
        }
        if failed.is_empty() {
            return write!(f, "passed: {}", join(self.judged.iter()));
        }
        let rules = if all == 1 { "rule" } else { "rules" };
        write!(f, "failed: {} of {all} {rules}", failed.len())?;
        for judgement in &failed {
            write!(f, "\n{judgement}")?;
        }
        if failed.len() < all {
            write!(
                f,
                "\npassed: {}",
                join(self.judged.iter().filter(|judgement| judgement.verdict == Verdict::Passed))
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.rule)?;
        let Verdict::Failed(mismatches) = &self.verdict else { return f.write_str(" passed") };
        for mismatch in mismatches.iter().take(MAX_SHOWN) {
            write!(f, "\n  {mismatch}")?;
        }
        match mismatches.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            rest => write!(f, "\n  and {rest} more"),
        }
    }
}

fn join<'j>(judgements: impl Iterator<Item = &'j Judgement>) -> String {
    let rules: Vec<&str> = judgements.map(|judgement| judgement.rule).collect();
    rules.join(", ")
}

//! The table of caught, missed, unviable and equivalent mutants.

use std::collections::BTreeMap;

use crate::TaskResult;

/// The results of the sample of one crate.
#[derive(Debug)]
pub(super) struct CrateResult {
    pub(super) name: String,
    /// The number of all mutants of the crate.
    pub(super) total: usize,
    /// The number of mutants with a failed or hanging test.
    pub(super) caught: usize,
    /// The names of the mutants with which all tests pass.
    pub(super) missed: Vec<String>,
    /// The number of mutants that do not compile.
    pub(super) unviable: usize,
}

impl CrateResult {
    pub(super) fn tested(&self) -> usize {
        self.caught + self.missed.len() + self.unviable
    }

    /// Returns the missed mutants that are equivalent, with the reasons, and the others.
    fn split_missed<'a>(
        &'a self,
        equivalent: &'a EquivalentMutants,
    ) -> (Vec<(&'a str, &'a str)>, Vec<&'a str>) {
        let (mut known, mut missed) = (Vec::new(), Vec::new());
        for name in &self.missed {
            match equivalent.reason(name) {
                Some(reason) => known.push((name.as_str(), reason)),
                None => missed.push(name.as_str()),
            }
        }
        (known, missed)
    }

    /// Returns one line for the terminal.
    pub(super) fn describe(&self, equivalent: &EquivalentMutants) -> String {
        let (known, missed) = self.split_missed(equivalent);
        format!(
            "{}: {} caught, {} missed, {} unviable, {} equivalent",
            self.name,
            self.caught,
            missed.len(),
            self.unviable,
            known.len()
        )
    }
}

/// The mutants that change no behaviour, by file and change, without a position.
#[derive(Debug)]
pub(super) struct EquivalentMutants(BTreeMap<String, String>);

impl EquivalentMutants {
    /// Reads lines with the file and the change of a mutant, a tab and the reason.
    ///
    /// # Errors
    ///
    /// A line has no reason, or a mutant occurs twice.
    pub(super) fn parse(text: &str) -> TaskResult<Self> {
        let mut mutants = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let fields = line.split_once('\t').filter(|(_, reason)| !reason.trim().is_empty());
            let (name, reason) = fields.ok_or_else(|| format!("no reason for `{line}`"))?;
            if mutants.insert(name.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("`{name}` occurs twice"));
            }
        }
        Ok(Self(mutants))
    }

    /// Returns the reason why a mutant is equivalent.
    fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(&without_position(name)).map(String::as_str)
    }
}

/// Removes the line and the column from the name of a mutant: `a.rs:1:2: replace …` becomes
/// `a.rs: replace …`.
fn without_position(name: &str) -> String {
    let Some((place, change)) = name.split_once(": ") else { return name.to_owned() };
    let file = place.split(':').next().unwrap_or(place);
    format!("{file}: {change}")
}

/// Returns the row of a crate with a header.
pub(super) fn table_rows(result: &CrateResult, equivalent: &EquivalentMutants) -> [Vec<String>; 2] {
    let header =
        ["crate", "mutants", "sample", "caught", "missed", "unviable", "equivalent", "share"];
    let (known, missed) = result.split_missed(equivalent);
    let relevant = result.caught + missed.len();
    let share = 100.0 * result.caught as f64 / relevant.max(1) as f64;
    let counts =
        [result.total, result.tested(), result.caught, missed.len(), result.unviable, known.len()];
    let mut row = vec![format!("`{}`", result.name)];
    row.extend(counts.map(|count| count.to_string()));
    row.push(format!("{share:.0} %"));
    [header.map(str::to_owned).to_vec(), row]
}

/// Returns a list of the missed and the equivalent mutants for the page.
pub(super) fn survivors(result: &CrateResult, equivalent: &EquivalentMutants) -> String {
    let mut text = String::new();
    let (known, missed) = result.split_missed(equivalent);
    for name in missed {
        text.push_str(&format!("- missed: `{name}`\n"));
    }
    for (name, reason) in known {
        text.push_str(&format!("- equivalent: `{name}`: {reason}\n"));
    }
    if text.is_empty() { "Every viable mutant was caught.\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equivalent_mutant_is_known_wherever_its_line_is_and_counts_as_no_miss() {
        let list = "# comment\n\na.rs: replace < with <= in f\tboth give 0 at the limit\n";
        let equivalent = EquivalentMutants::parse(list).unwrap();
        let result = CrateResult {
            name: "x".to_owned(),
            total: 40,
            caught: 9,
            missed: vec![
                "a.rs:12:5: replace < with <= in f".to_owned(),
                "a.rs:12:5: replace < with > in f".to_owned(),
            ],
            unviable: 1,
        };
        let rows = table_rows(&result, &equivalent);
        assert_eq!(rows[1], ["`x`", "40", "12", "9", "1", "1", "1", "90 %"]);
        assert_eq!(
            survivors(&result, &equivalent),
            "- missed: `a.rs:12:5: replace < with > in f`\n\
             - equivalent: `a.rs:12:5: replace < with <= in f`: both give 0 at the limit\n"
        );
    }

    #[test]
    fn each_equivalent_mutant_has_a_reason_and_one_line() {
        for wrong in ["a.rs: x", "a.rs: x\t ", "a.rs: x\ty\na.rs: x\tz"] {
            assert!(EquivalentMutants::parse(wrong).is_err(), "{wrong}");
        }
    }
}

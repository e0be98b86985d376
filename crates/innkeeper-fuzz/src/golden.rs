//! Fuzz target: a recording. What is read can be written and read again, equals itself, and has no
//! trace of a secret after its redaction.

use innkeeper_golden::{Golden, KnownSecret, SecretPlace, compare, redact};

/// A secret that an input may contain in any spelling.
const SECRET: &str = "canary-7d0c41f9e2b8";

/// Reads the input as a recording.
pub fn golden(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(golden) = Golden::from_json(text) else { return };
    let written = golden.to_json().expect("what was read can be written");
    let read = Golden::from_json(&written).expect("what was written can be read");
    assert!(golden.is_same_recording(&read), "{written}");
    if golden.rules.is_none()
        && let Ok(comparison) = compare(&golden.golden_output, &golden.golden_output, None)
    {
        assert!(comparison.passed(), "{comparison}");
    }
    let mut redacted = golden;
    let name = "canary".to_owned();
    let secret = KnownSecret { name, value: SECRET.to_owned(), place: SecretPlace::Anywhere };
    if redact(&mut redacted, &[secret], |_| Vec::new()).is_ok() {
        let written = redacted.to_json().expect("a redacted recording can be written");
        assert!(!written.contains(SECRET), "{written}");
    }
}

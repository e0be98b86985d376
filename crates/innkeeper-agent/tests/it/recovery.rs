//! Recovery of malformed calls from a public benchmark, in fourteen syntaxes.
//!
//! The tests check which calls are repaired, which are corrected by the model, and that no other
//! call is run.

mod call_syntax;
mod ground_truth;
mod harness;
mod measure;
mod mistake;

use call_syntax::CallSyntax;
use fastrand::Rng;
use ground_truth::{BenchmarkEntry, CallVerdict, judge, load_entries};
use harness::{AgentHarness, RecoveryOutcome, parse_calls};
use innkeeper_toolcall::Format;
use mistake::{MistakeCase, ModelMistake};

/// Mistakes that produce the same text as an intended call.
const AMBIGUOUS_MISTAKES: &[ModelMistake] = &[
    // `\t` is a tab in JSON.
    ModelMistake::EscapingBackslash,
    // If the cut removes an optional argument, only the server's stop reason reveals the cut.
    ModelMistake::UnreportedCut,
];

/// Returns entries in an order that depends on the seed only.
fn sample_entries(count: usize, seed: u64) -> Vec<BenchmarkEntry> {
    let mut all = load_entries();
    Rng::with_seed(seed).shuffle(&mut all);
    all.truncate(count);
    all
}

/// Returns the case for this entry, syntax and mistake; the case depends on the seed only, not on
/// other cases.
fn seeded_case(
    entry: &BenchmarkEntry,
    form: CallSyntax,
    mistake: ModelMistake,
    seed: u64,
) -> Option<MistakeCase> {
    let hash = entry.id.bytes().fold(seed, |all, byte| all.rotate_left(7) ^ u64::from(byte));
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((form as u64) << 8) ^ mistake as u64;
    mistake.make_case(entry, form, &mut Rng::with_seed(hash))
}

#[test]
fn a_well_formed_call_is_parsed_in_every_syntax() {
    let mut read_right = 0;
    for entry in sample_entries(60, 1) {
        for form in CallSyntax::ALL {
            let Some(case) = seeded_case(&entry, form, ModelMistake::None, 1) else { continue };
            for format in [Format::Detect, form.format()] {
                let calls = parse_calls(&entry, &case, format);
                let verdict = judge(&calls, &case.expected_calls);
                assert_eq!(verdict, CallVerdict::Right, "{}: {}\n{calls:?}", entry.id, case.text);
                read_right += 1;
            }
        }
    }
    assert!(read_right > 1600, "{read_right}");
}

#[tokio::test(start_paused = true)]
async fn whatever_mistake_is_made_no_call_is_run_that_was_not_intended() {
    let (mut all, mut right) = (0, 0);
    for entry in sample_entries(4, 2) {
        let mut harness = AgentHarness::new(&entry);
        for form in CallSyntax::ALL {
            for mistake in ModelMistake::ALL {
                let Some(case) = seeded_case(&entry, form, mistake, 2) else { continue };
                let outcome = harness.run_case(&case).await;
                let context = format!("{} {mistake:?} {form:?}: {}", entry.id, case.text);
                let wrong =
                    outcome == RecoveryOutcome::Wrong && !AMBIGUOUS_MISTAKES.contains(&mistake);
                assert!(!wrong, "{context}");
                assert!(
                    mistake != ModelMistake::None || outcome == RecoveryOutcome::Repaired,
                    "{outcome:?}: {context}"
                );
                all += 1;
                right += usize::from(matches!(
                    outcome,
                    RecoveryOutcome::Repaired | RecoveryOutcome::Corrected
                ));
            }
        }
    }
    assert!(all > 600 && right * 10 > all * 8, "{right} of {all} are right in the end");
}

//! Calls of a public benchmark in fourteen forms with what models do wrong: what is put right, what
//! the model is asked for again, and that no other call is run.

mod form;
mod measure;
mod ours;
mod slip;
mod truth;

use fastrand::Rng;
use form::Form;
use innkeeper_toolcall::Format;
use ours::{Outcome, Room, read};
use slip::{Case, Slip};
use truth::{Entry, Verdict, entries, judge};

/// What cannot be told from a call that was meant: the text is one, letter for letter.
const UNTELLABLE: &[Slip] = &[
    // `\t` is a tab in JSON.
    Slip::BackslashThatEscapes,
    // Where an argument that may be left out is what the answer lacks, only the server could tell.
    Slip::CutUnsaid,
];

/// Questions in an order that the seed alone decides.
fn sample(count: usize, seed: u64) -> Vec<Entry> {
    let mut all = entries();
    Rng::with_seed(seed).shuffle(&mut all);
    all.truncate(count);
    all
}

/// The answer of this place: the same for the same seed, whatever else is made.
fn case(entry: &Entry, form: Form, slip: Slip, seed: u64) -> Option<Case> {
    let place = entry.id.bytes().fold(seed, |all, it| all.rotate_left(7) ^ u64::from(it));
    let place = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((form as u64) << 8) ^ slip as u64;
    slip.case(entry, form, &mut Rng::with_seed(place))
}

#[test]
fn a_call_that_is_written_well_is_read_right_in_every_form() {
    let mut read_right = 0;
    for entry in sample(60, 1) {
        for form in Form::ALL {
            let Some(case) = case(&entry, form, Slip::None, 1) else { continue };
            for format in [Format::Detect, form.format()] {
                let calls = read(&entry, &case, format);
                let verdict = judge(&calls, &case.truths);
                assert_eq!(verdict, Verdict::Right, "{}: {}\n{calls:?}", entry.id, case.text);
                read_right += 1;
            }
        }
    }
    assert!(read_right > 1600, "{read_right}");
}

#[tokio::test(start_paused = true)]
async fn no_other_call_than_was_meant_is_run_whatever_is_wrong_with_how_it_is_written() {
    let (mut all, mut right) = (0, 0);
    for entry in sample(4, 2) {
        let mut room = Room::new(&entry);
        for form in Form::ALL {
            for slip in Slip::ALL {
                let Some(case) = case(&entry, form, slip, 2) else { continue };
                let outcome = room.take(&case).await;
                let told = format!("{} {slip:?} {form:?}: {}", entry.id, case.text);
                let wrong = outcome == Outcome::Wrong && !UNTELLABLE.contains(&slip);
                assert!(!wrong, "{told}");
                assert!(slip != Slip::None || outcome == Outcome::Repaired, "{outcome:?}: {told}");
                all += 1;
                right += usize::from(matches!(outcome, Outcome::Repaired | Outcome::Corrected));
            }
        }
    }
    assert!(all > 600 && right * 10 > all * 8, "{right} of {all} are right in the end");
}

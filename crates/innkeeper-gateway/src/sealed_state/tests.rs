//! Tests of the state that clients return.

use proptest::prelude::*;

use super::*;

fn open(sealer: &StateSealer, text: &str) -> Result<CallState, StateError> {
    sealer.open(text, b"")
}

fn state() -> CallState {
    CallState { call: 7, round: 1, request: "notes.add".into(), expires: 60 }
}

#[test]
fn a_state_opens_only_with_the_key_that_sealed_it() {
    let (sealer, other) = (StateSealer::new(None).unwrap(), StateSealer::new(None).unwrap());
    let text = sealer.seal(&state(), b"").unwrap();
    assert_eq!(open(&sealer, &text), Ok(state()));
    assert_eq!(open(&other, &text), Err(StateError::Foreign));
    let (bytes, plain) = (URL_SAFE_NO_PAD.decode(&text).unwrap(), state().request);
    let shows_plain = bytes.windows(plain.len()).any(|part| part == plain.as_bytes());
    assert!(!shows_plain, "the client cannot read it");
    let of_ada = sealer.seal(&state(), b"ada").unwrap();
    assert_eq!(sealer.open(&of_ada, b"ada"), Ok(state()));
    assert_eq!(sealer.open::<CallState>(&of_ada, b"bob"), Err(StateError::Foreign));
    assert_ne!(sealer.seal(&state(), b"").unwrap(), text, "each nonce is used once");
}

#[test]
fn a_text_above_the_maximum_length_is_not_decoded() {
    let sealer = StateSealer::new(None).unwrap();
    let filler = |bytes| CallState { request: "x".repeat(bytes), ..state() };
    let length = |bytes| sealer.seal(&filler(bytes), b"").unwrap().len();
    let largest = (0..MAX_STATE_BYTES).rev().find(|bytes| length(*bytes) <= MAX_STATE_BYTES);
    let largest = largest.unwrap();
    let open_filler = |bytes| open(&sealer, &sealer.seal(&filler(bytes), b"").unwrap());
    assert_eq!(open_filler(largest), Ok(filler(largest)));
    assert_eq!(open_filler(largest + 1), Err(StateError::Foreign));
}

/// Attack: remote | a client changes one character of the state of its call | the state is
/// rejected | Own response
#[test]
fn a_state_with_one_changed_character_is_foreign() {
    let sealer = StateSealer::new(None).unwrap();
    let text = sealer.seal(&state(), b"").unwrap();
    for index in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(open(&sealer, &changed), Err(StateError::Foreign), "{index}");
    }
}

#[test]
fn every_state_of_the_corpus_is_foreign() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/sealed_state");
    let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
    assert!(!inputs.is_empty());
    for input in inputs {
        fuzz_sealed_state(&std::fs::read(input.path()).unwrap());
    }
}

proptest! {
    #[test]
    fn any_text_is_foreign(text in ".{0,200}") {
        let sealer = StateSealer::new(None).unwrap();
        prop_assert_eq!(open(&sealer, &text), Err(StateError::Foreign));
    }

    #[test]
    fn any_state_opens_unchanged_and_is_foreign_after_any_change(
        (call, round, expires) in any::<(u64, u32, u64)>(),
        request in ".{0,500}",
        (index, byte) in any::<(prop::sample::Index, u8)>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let state = CallState { call, round, request, expires };
        let sealer = StateSealer::new(None).unwrap();
        let text = sealer.seal(&state, b"").unwrap();
        prop_assert_eq!(open(&sealer, &text), Ok(state));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        let (index, cut) = (index.index(bytes.len()), cut.index(bytes.len()));
        let mut changed = bytes.clone();
        changed[index] ^= byte.max(1);
        let mut longer = bytes.clone();
        longer.insert(index, byte);
        for changed in [&changed, &longer, &bytes[..cut]] {
            let changed = URL_SAFE_NO_PAD.encode(changed);
            prop_assert_eq!(open(&sealer, &changed), Err(StateError::Foreign));
        }
        prop_assert_eq!(open(&sealer, &format!("{text}=")), Err(StateError::Foreign));
    }
}

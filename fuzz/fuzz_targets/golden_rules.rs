//! Fuzz target: the rules of a comparison.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::golden_rules(input));

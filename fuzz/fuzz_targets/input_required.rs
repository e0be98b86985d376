//! Fuzz target: a result that requests input, or a task.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::input_required(input));

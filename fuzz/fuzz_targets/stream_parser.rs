//! Fuzz target: the text of a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::stream_parser(input));

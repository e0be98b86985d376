//! Fuzz target: line framing of a server's output.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::framing(input));

//! Fuzz target: one line from a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::envelope(input));

//! Fuzz target: a header value, a cursor.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::client_text(input));

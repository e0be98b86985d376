//! Fuzz target: an SSE stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::sse(input));

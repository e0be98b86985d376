//! Fuzz target: a request of a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_fuzz::client_request(input));

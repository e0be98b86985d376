//! Fuzz target: HTTP responses of a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_host::fuzz_http_response(input));

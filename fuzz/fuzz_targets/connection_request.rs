//! Fuzz target: what clients of the connection service send.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_gateway::fuzz_connection_request(input));

//! Fuzz target: requests of the clients of a gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_gateway::fuzz_gateway_request(input));

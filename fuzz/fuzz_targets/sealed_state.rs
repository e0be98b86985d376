//! Fuzz target: states that clients return to a gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_gateway::fuzz_sealed_state(input));

//! Fuzz target: responses of an LLM provider.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| innkeeper_agent::fuzz_codecs(input));

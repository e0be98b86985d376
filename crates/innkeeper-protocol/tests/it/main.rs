//! What holds for every input: properties of framing, envelopes, skimming and ids.

mod envelopes;
mod frames;
mod json;
mod mangled;
mod skimming;

//! What holds for every input: properties of framing, events, envelopes, skimming and ids.

mod envelopes;
mod events;
mod frames;
mod json;
mod mangled;
mod skimming;

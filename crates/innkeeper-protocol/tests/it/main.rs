//! Property tests of framing, events, headers, envelopes, skimming and ids.

mod envelopes;
mod events;
mod frames;
mod headers;
mod json;
mod mangled;
mod skimming;

//! Property tests of framing, events, headers, envelopes, requests, skimming and ids.

mod envelopes;
mod events;
mod frames;
mod headers;
mod json;
mod mangled;
mod requests;
mod skimming;

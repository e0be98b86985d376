//! Several replicas of `serve` that share a Redis.

mod chart;
mod client;
mod cluster;
mod delay_proxy;
mod faults;
mod history;
mod load;
mod remote_sessions;
mod sessions;
mod settings;
mod singleton;

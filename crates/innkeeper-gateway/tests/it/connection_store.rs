//! The contract of the stores of connections, over each store.

mod events;
mod expiry;
mod files;
mod lifecycle;
mod limits;
mod races;
mod redis;
mod redis_faults;
mod stores;

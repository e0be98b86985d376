//! The host against real servers in real processes.

mod setup;

mod start;
mod failure;
mod order;
mod stop;
mod process;

//! The contract of the stores of questions, over each store.

mod limits;
mod races;
mod steps;
mod stores;
mod time;

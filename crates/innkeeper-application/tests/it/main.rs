//! An application that depends on `innkeeper` alone and hosts a server in its own process.

mod callbacks;
mod calls;
mod server;

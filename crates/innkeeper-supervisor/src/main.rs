//! The supervisor as a program; a host starts it with the control socket as standard input.
#![cfg_attr(innkeeper_freestanding, no_std, no_main)]

#[cfg(innkeeper_freestanding)]
mod freestanding;

/// Runs the supervisor inside of an ordinary program.
#[cfg(not(innkeeper_freestanding))]
fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    if innkeeper_supervisor::run().is_ok() {
        return std::process::ExitCode::SUCCESS;
    }
    std::process::ExitCode::from(2)
}

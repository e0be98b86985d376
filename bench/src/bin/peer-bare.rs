//! The raw pipe in a separate process, for its own memory figures.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::run_raw_pipe()
}

//! The bare loop in a process of its own, so that memory is its own too.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::bare()
}

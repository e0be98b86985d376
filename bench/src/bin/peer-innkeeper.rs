//! Our host in a process of its own; `innkeeper-shim` is beside it, as an application ships it.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::client::<innkeeper_bench::ours::Ours>("innkeeper")
}

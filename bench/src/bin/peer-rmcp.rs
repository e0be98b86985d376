//! The official SDK's client in a process of its own.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::client::<innkeeper_bench::sdk::Sdk>("rmcp")
}

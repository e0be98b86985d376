//! The client of the official SDK in a separate process.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::run_client::<innkeeper_bench::rmcp_client::RmcpClient>("rmcp")
}

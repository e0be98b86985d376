//! The host in a separate process, as in a released application.

fn main() -> std::process::ExitCode {
    innkeeper_bench::program::run_client::<innkeeper_bench::innkeeper_client::InnkeeperClient>(
        "innkeeper",
    )
}

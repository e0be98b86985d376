//! Faults of remote servers.

use std::time::Duration;

use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{AnnouncedEndpoint, Fault, Fixture, RemoteServer};

use super::FaultScenario;

/// A URL without a listener.
const UNREACHABLE_URL: &str = "http://127.0.0.1:9";
/// Length of an excessive message in bytes.
const LONG_MESSAGE_BYTES: usize = 100_000_000;

/// The scenarios use Streamable HTTP unless their detail says otherwise.
pub(super) fn scenarios() -> Vec<FaultScenario> {
    let call = |number, fault: Fault| {
        FaultScenario::on_remote_calls(number, fault, remote_with_call_fault)
    };
    let socket = |fault: Fault| {
        FaultScenario::on_remote_calls(99, fault, |server, fault| {
            remote_with_call_fault(server, fault).websocket()
        })
    };
    let elsewhere = AnnouncedEndpoint::Fixed(UNREACHABLE_URL.to_owned());
    let endpoint = FaultScenario::on_remote_calls(94, elsewhere, |server, elsewhere| {
        let plan = RemoteServer::for_fixture(server).sse();
        elsewhere.into_iter().fold(plan, RemoteServerBuilder::endpoint)
    });
    let resumed = Fault::cut_stream().with_retry_delay(Duration::from_millis(1)).replaying_twice();
    let years = Fault::status(429).header("retry-after", "1000000000");
    vec![
        call(90, Fault::html_page()),
        call(91, Fault::stall()).with_detail("it stalls").with_timeout_millis(50),
        call(91, Fault::prepend_message(LONG_MESSAGE_BYTES))
            .with_detail("100 MB")
            .with_call_multiplier(3),
        call(92, Fault::reset_mid_body()).with_detail("a reset"),
        FaultScenario::on_remote_calls(92, resumed, |server, fault| {
            remote_with_call_fault(server, fault).with_event_ids()
        })
        .with_detail("duplicate events"),
        call(93, Fault::redirect(307, UNREACHABLE_URL)),
        endpoint.starts_only(),
        call(96, Fault::gzip()),
        call(97, Fault::session_gone()).with_restart(),
        call(98, years).with_timeout_millis(50).with_restart(),
        socket(Fault::prepend_message(LONG_MESSAGE_BYTES))
            .with_detail("100 MB")
            .with_call_multiplier(3)
            .with_restart(),
        socket(Fault::fragments(50)).with_detail("fragments"),
        socket(Fault::pings(10_000)).with_detail("pings"),
        socket(Fault::binary_frame()).with_detail("bytes"),
        socket(Fault::reset_mid_body()).with_detail("cut off").with_restart(),
        call(100, Fault::endless_headers()).with_restart(),
    ]
}

fn remote_with_call_fault(server: Fixture, fault: Option<Fault>) -> RemoteServerBuilder {
    let faults = fault.map(|fault| fault.on_rpc_method("tools/call"));
    faults.into_iter().fold(RemoteServer::for_fixture(server), RemoteServerBuilder::fault)
}

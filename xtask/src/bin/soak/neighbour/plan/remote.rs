//! Faults of remote servers.

use std::time::Duration;

use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Endpoint, Fault, Fixture, Remote};

use super::Play;

/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";
/// A message that is far too long, in bytes.
const LONG: usize = 100_000_000;

/// They are played over Streamable HTTP where it is not said otherwise.
pub(super) fn plays() -> Vec<Play> {
    let call = |number, fault: Fault| Play::remote_calls(number, fault, on_call);
    let socket = |fault: Fault| {
        Play::remote_calls(99, fault, |server, fault| on_call(server, fault).websocket())
    };
    let elsewhere = Endpoint::At(NOWHERE.to_owned());
    let endpoint = Play::remote_calls(94, elsewhere, |server, elsewhere| {
        let plan = Remote::of(server).sse();
        elsewhere.into_iter().fold(plan, Plan::endpoint)
    });
    let resumed = Fault::cut().retry_in(Duration::from_millis(1)).repeating();
    let years = Fault::status(429).header("retry-after", "1000000000");
    vec![
        call(90, Fault::html()),
        call(91, Fault::stall()).detail("it stalls").within(50),
        call(91, Fault::long(LONG)).detail("100 MB").longer(3),
        call(92, Fault::reset()).detail("a reset"),
        Play::remote_calls(92, resumed, |server, fault| on_call(server, fault).with_event_ids())
            .detail("events twice"),
        call(93, Fault::redirect(307, NOWHERE)),
        endpoint.only_started(),
        call(96, Fault::gzip()),
        call(97, Fault::session_gone()).started_again(),
        call(98, years).within(50).started_again(),
        socket(Fault::long(LONG)).detail("100 MB").longer(3).started_again(),
        socket(Fault::fragments(50)).detail("pieces"),
        socket(Fault::pings(10_000)).detail("pings"),
        socket(Fault::binary()).detail("bytes"),
        socket(Fault::reset()).detail("cut off").started_again(),
        call(100, Fault::endless_headers()).started_again(),
    ]
}

fn on_call(server: Fixture, fault: Option<Fault>) -> Plan {
    let faults = fault.map(|fault| fault.on("tools/call"));
    faults.into_iter().fold(Remote::of(server), Plan::fault)
}

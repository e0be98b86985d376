//! Faults of remote servers.

use std::time::Duration;

use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Endpoint, Fault, Remote};

use super::{How, Play};

/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";
/// A message that is far too long, in bytes.
const LONG: usize = 100_000_000;

/// They are played over Streamable HTTP where it is not said otherwise.
pub(super) fn plays() -> Vec<Play> {
    let call = |number, fault: Fault| Play::remote_calls(number, |server| on_call(server, fault));
    let socket = |fault: Fault| Play::remote_calls(99, |server| on_call(server, fault).websocket());
    let elsewhere = Endpoint::At(NOWHERE.to_owned());
    let endpoint = Play::remote_calls(94, |server| Remote::of(server).sse().endpoint(elsewhere));
    let resumed = Fault::cut().retry_in(Duration::from_millis(1)).repeating();
    let years = Fault::status(429).header("retry-after", "1000000000");
    vec![
        call(90, Fault::html()),
        call(91, Fault::stall()).detail("it stalls").within(50),
        call(91, Fault::long(LONG)).detail("100 MB").longer(3),
        call(92, Fault::reset()).detail("a reset"),
        Play::remote_calls(92, |server| on_call(server, resumed).with_event_ids())
            .detail("events twice"),
        call(93, Fault::redirect(307, NOWHERE)),
        Play { how: How::Starts, ..endpoint },
        call(96, Fault::gzip()),
        call(97, Fault::session_gone()),
        call(98, years).within(50),
        socket(Fault::long(LONG)).detail("100 MB").longer(3),
        socket(Fault::fragments(50)).detail("pieces"),
        socket(Fault::pings(10_000)).detail("pings"),
        socket(Fault::binary()).detail("bytes"),
        socket(Fault::reset()).detail("cut off"),
        call(100, Fault::endless_headers()),
    ]
}

fn on_call(server: innkeeper_testkit::Fixture, fault: Fault) -> Plan {
    Remote::of(server).fault(fault.on("tools/call"))
}

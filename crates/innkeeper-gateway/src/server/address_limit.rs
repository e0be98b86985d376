//! Limits the open connections of each remote address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::host_name::is_loopback;

/// The bits of an IPv6 address that name its network: one client has all addresses of a network.
const IPV6_NETWORK_BITS: u128 = !0 << 64;

/// The number of open connections by remote address.
#[derive(Debug)]
pub(super) struct AddressLimit {
    maximum: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl AddressLimit {
    pub(super) fn new(maximum: usize) -> Arc<Self> {
        Arc::new(Self { maximum, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection until the result is dropped. Returns `None` if the address has the maximum.
    /// A client of this machine, which can be a proxy for many clients, is not counted.
    pub(super) fn admit(self: &Arc<Self>, peer: Option<IpAddr>) -> Option<AdmittedConnection> {
        let Some(peer) = peer.filter(|peer| !is_loopback(*peer)) else {
            return Some(AdmittedConnection(None));
        };
        let peer = network(peer);
        let mut open = self.open();
        let count = open.entry(peer).or_default();
        if *count >= self.maximum {
            return None;
        }
        *count += 1;
        drop(open);
        Some(AdmittedConnection(Some((self.clone(), peer))))
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & IPV6_NETWORK_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[derive(Debug)]
pub(super) struct AdmittedConnection(Option<(Arc<AddressLimit>, IpAddr)>);

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        let Some((limit, peer)) = &self.0 else { return };
        let mut open = limit.open();
        let Some(count) = open.get_mut(peer) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            open.remove(peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client opens connections from one address, or from many addresses of its
    /// IPv6 network | one more than the maximum is closed, and other addresses connect | Isolation
    #[test]
    fn an_address_has_at_most_the_maximum_of_connections_and_another_is_not_affected() {
        let limit = AddressLimit::new(2);
        let admit = |address: &str| limit.admit(Some(address.parse().unwrap()));
        for (first, second, third, other) in [
            ("192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:3", "2001:db8:0:1::1"),
        ] {
            let held = [admit(first).unwrap(), admit(second).unwrap()];
            assert!(admit(third).is_none(), "{third}");
            assert!(admit(other).is_some(), "{other}");
            let [one, _other] = held;
            drop(one);
            assert!(admit(third).is_some(), "{third} after the end of another connection");
        }
        assert!(limit.open().is_empty(), "nothing stays of addresses without a connection");
    }

    #[test]
    fn clients_of_this_machine_have_no_maximum() {
        let limit = AddressLimit::new(1);
        for peer in [Some("127.0.0.1".parse().unwrap()), Some("::1".parse().unwrap()), None] {
            let held = [limit.admit(peer), limit.admit(peer), limit.admit(peer)];
            assert!(held.iter().all(Option::is_some), "{peer:?}");
        }
    }
}

//! Each pod has a loopback address of its own, so that servers in different pods can use the same port.
//!
//! Linux answers on all of `127.0.0.0/8` without any set-up. Pods live in `127.64.0.0/10`, away from the
//! addresses that people and resolvers use.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::pod::Pod;

/// The machine itself.
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

const FIRST: u32 = Ipv4Addr::new(127, 64, 0, 1).to_bits();
const COUNT: u32 = (1 << 22) - 2;

/// The addresses of pods.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    taken: BTreeSet<Ipv4Addr>,
    next: u32,
}

impl Addresses {
    /// Several kraflas on one machine begin at different places, so that their pods seldom meet.
    pub(crate) fn beginning_at(place: &[u8]) -> Addresses {
        // FNV-1: any spread will do.
        let hash = place
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte));
        Addresses { taken: BTreeSet::new(), next: hash % COUNT }
    }

    /// The address that a pod has already, or a free one.
    pub(crate) fn take(&mut self, pod: &Pod) -> Ipv4Addr {
        if pod.spec.host_network {
            return HOST;
        }
        let address = match pod.status.pod_ip.parse() {
            Ok(address) if !self.taken.contains(&address) => address,
            _ => self.free(),
        };
        self.taken.insert(address);
        address
    }

    /// Keeps an address for who has it already.
    pub(crate) fn reserve(&mut self, address: Ipv4Addr) {
        self.taken.insert(address);
    }

    fn free(&mut self) -> Ipv4Addr {
        // There are four million of them: one is free before the second round.
        for _ in 0..COUNT {
            let address = Ipv4Addr::from_bits(FIRST + self.next);
            self.next = (self.next + 1) % COUNT;
            if !self.taken.contains(&address) {
                return address;
            }
        }
        HOST
    }

    #[cfg(test)]
    pub(crate) fn is_taken(&self, address: Ipv4Addr) -> bool {
        self.taken.contains(&address)
    }

    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.taken.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_different_addresses_and_keep_them() {
        let mut addresses = Addresses::beginning_at(b"/var/lib/krafla");
        let mut pod = Pod::default();
        let first = addresses.take(&pod);
        let second = addresses.take(&pod);
        assert_ne!(first, second);
        for address in [first, second] {
            assert!(address.is_loopback() && (64..128).contains(&address.octets()[1]), "{address}");
        }

        pod.status.pod_ip = "127.99.0.7".to_owned();
        assert_eq!(addresses.take(&pod).to_string(), "127.99.0.7");
        assert_ne!(addresses.take(&pod).to_string(), "127.99.0.7");
    }

    #[test]
    fn a_pod_on_the_host_network_has_the_address_of_the_machine() {
        let mut pod = Pod::default();
        pod.spec.host_network = true;
        assert_eq!(Addresses::default().take(&pod), HOST);
    }
}

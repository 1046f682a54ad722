//! Connection limits: how many connections may be open, in all and from one address, and a few that are kept for health checks.

use plaudit::exec::lock;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections beyond the limit may be open at once, for health checks.
const RESERVED: usize = 16;

/// Counts open connections, in all and by address.
#[derive(Debug)]
pub(crate) struct ConnLimits {
    most: usize,
    /// The most of one address.
    share: usize,
    free: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    open: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnPermit {
    limits: Arc<ConnLimits>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl ConnLimits {
    pub(crate) fn new(most: usize, share: usize) -> Self {
        let (free, reserved) = (Arc::new(Semaphore::new(most)), Arc::new(Semaphore::new(RESERVED)));
        Self { most, share: share.max(1), free, reserved, open: Mutex::default() }
    }

    /// Admits a connection; none where the limit is reached, in all or of its address.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnPermit> {
        let address = network(address);
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let mut open = lock(&self.open);
        let count = open.entry(address).or_insert(0);
        if *count >= self.share {
            return None;
        }
        *count += 1;
        drop(open);
        Some(ConnPermit { limits: Arc::clone(self), address, _permit: permit })
    }

    /// Admits a connection beyond the limit that is answered at once.
    pub(crate) fn enter_reserved(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.reserved).try_acquire_owned().ok()
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.most - self.free.available_permits()
    }

    /// Resolves when none is open any more. After that, none is let in.
    pub(crate) async fn closed(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let taken = self.free.acquire_many(all).await;
        taken.map_or_else(drop, tokio::sync::SemaphorePermit::forget);
    }
}

impl Drop for ConnPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.limits.open);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// The network that an address is counted for: of IPv6 the /64, since one customer has as many addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_by_address() {
        let limits = Arc::new(ConnLimits::new(5, 3));
        let enter = |address: &str| limits.enter(address.parse().unwrap());
        let mut held: Vec<ConnPermit> = (0..3).filter_map(|_| enter("10.0.0.1")).collect();
        assert!(held.len() == 3 && enter("10.0.0.1").is_none() && enter("::ffff:10.0.0.1").is_none());
        // Addresses of one network of IPv6 are one party's.
        held.extend([enter("2001:db8::1"), enter("2001:db8::2")].into_iter().flatten());
        assert_eq!((held.len(), limits.open()), (5, 5));
        assert!(enter("10.0.0.2").is_none(), "there is no room for anybody");
        held.remove(0);
        assert!(enter("10.0.0.1").is_some() && enter("10.0.0.2").is_some());
        let brief: Vec<_> = (0..=RESERVED).filter_map(|_| limits.enter_reserved()).collect();
        assert_eq!(brief.len(), RESERVED);
        drop(held);
        assert!(limits.open() == 0 && lock(&limits.open).is_empty());
    }
}

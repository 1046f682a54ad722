//! Single-flight: concurrent requests with the same key share one call.

use super::lock;
use crate::reason::Reason;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// The result of a shared call: the judgment, or why there is none.
pub(crate) type FlightResult = Result<Arc<[u8]>, Reason>;

type FlightKey = [u8; 32];
type Flights = Mutex<BTreeMap<FlightKey, watch::Receiver<Option<FlightResult>>>>;

/// The requests in flight.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    flights: Flights,
}

/// Whether a request makes the call, or waits for it.
pub(crate) enum FlightRole<'f> {
    Leader(Leader<'f>),
    Follower(watch::Receiver<Option<FlightResult>>),
}

/// The request that makes the call. Dropped without a result, it leaves the call to the next.
pub(crate) struct Leader<'f> {
    flights: &'f Flights,
    key: FlightKey,
    sender: watch::Sender<Option<FlightResult>>,
}

impl SingleFlight {
    pub(crate) fn join(&self, key: &FlightKey) -> FlightRole<'_> {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(key) {
            return FlightRole::Follower(flight.clone());
        }
        let (sender, receiver) = watch::channel(None);
        flights.insert(*key, receiver);
        FlightRole::Leader(Leader { flights: &self.flights, key: *key, sender })
    }
}

impl Leader<'_> {
    pub(crate) fn publish(self, result: FlightResult) {
        let _ = self.sender.send(Some(result));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        lock(self.flights).remove(&self.key);
    }
}

/// The result of the call, or none where its leader was dropped.
pub(crate) async fn follow(mut flight: watch::Receiver<Option<FlightResult>>) -> Option<FlightResult> {
    flight.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

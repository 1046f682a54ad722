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

/// The request that makes the call. Dropped without a result, it leaves the call to the next.
pub(crate) struct Leader<'f> {
    flights: &'f Flights,
    key: FlightKey,
    sender: watch::Sender<Option<FlightResult>>,
}

impl SingleFlight {
    /// The lead of a call, or what an equal one came to that was under way.
    pub(crate) async fn lead(&self, key: &FlightKey) -> Result<Leader<'_>, FlightResult> {
        loop {
            let mut flight = match self.join(key) {
                Ok(leader) => return Ok(leader),
                Err(flight) => flight,
            };
            let result = flight.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
            // Where its leader was dropped, the next one makes the call.
            if let Some(result) = result {
                return Err(result);
            }
        }
    }

    /// The lead of a call, or the equal one that is under way.
    fn join(&self, key: &FlightKey) -> Result<Leader<'_>, watch::Receiver<Option<FlightResult>>> {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(key) {
            return Err(flight.clone());
        }
        let (sender, receiver) = watch::channel(None);
        flights.insert(*key, receiver);
        Ok(Leader { flights: &self.flights, key: *key, sender })
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

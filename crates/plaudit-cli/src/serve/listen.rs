//! How does the service listen? As many connections as it has room for, each with its limits, and an orderly end.

use super::guard::{Guarded, Phase};
use super::house::House;
use super::{door, tls};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// The most bytes that the head of a request may have.
const LONGEST_HEAD: usize = 64 << 10;
/// The most headers of a request.
const MOST_HEADERS: usize = 100;
/// How long the exchange of keys may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the service waits when the system has no more handles.
const BREATH: Duration = Duration::from_millis(50);
/// What a connection for which there is no room is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Takes connections until it is told to stop, then waits for those that are being answered.
pub(crate) async fn serve(
    house: Arc<House>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mut stop: watch::Receiver<bool>,
) {
    let most = house.limits.connections;
    let free = Arc::new(Semaphore::new(most));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A client that has gone already costs nothing; where the system has no handles left, wait for some.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
                {
                    tokio::time::sleep(BREATH).await;
                }
                continue;
            }
        };
        // A small answer must not wait for a larger one.
        let _ = stream.set_nodelay(true);
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            house.meters.turned_away();
            turn_away(stream);
            continue;
        };
        let (house, mut stop) = (Arc::clone(&house), stop.clone());
        match tls.clone() {
            None => drop(tokio::spawn(connection(house, stream, peer, stop, permit))),
            Some(tls) => drop(tokio::spawn(async move {
                let shaken = tokio::select! {
                    shaken = tokio::time::timeout(HANDSHAKE, tls.accept(stream)) => shaken,
                    () = told(&mut stop) => return,
                };
                if let Ok(Ok(stream)) = shaken {
                    connection(house, stream, peer, stop, permit).await;
                }
            })),
        }
    }
    drop(listener);
    // Every connection gives its permit back when it ends.
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = free.acquire_many(all).await;
}

/// Resolves when the service is to end.
async fn told(stop: &mut watch::Receiver<bool>) {
    // Where nobody can say so any more, it is to end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Answers what comes on one connection.
async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    house: Arc<House>,
    stream: S,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
    permit: OwnedSemaphorePermit,
) {
    let phase = Phase::default();
    let answer = {
        let phase = phase.clone();
        service_fn(move |request| {
            phase.begin();
            let (house, phase) = (Arc::clone(&house), phase.clone());
            async move {
                let reply = door::answer(&house, peer, request).await;
                phase.end();
                Ok::<_, Infallible>(reply)
            }
        })
    };
    let io = TokioIo::new(Guarded::new(stream, phase));
    let served = http1::Builder::new()
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .header_read_timeout(None)
        .serve_connection(io, answer);
    let mut served = std::pin::pin!(served);
    // How a connection ends is the client's affair.
    tokio::select! {
        _ = served.as_mut() => {}
        () = told(&mut stop) => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
    drop(permit);
}

/// Tells a client that there is no room, without waiting for it.
fn turn_away(mut stream: TcpStream) {
    tokio::spawn(async move {
        let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(FULL)).await;
    });
}

/// The address, and what is listened with.
pub(crate) async fn bind(
    address: SocketAddr,
    files: Option<(&std::path::Path, &std::path::Path)>,
) -> Result<(TcpListener, Option<TlsAcceptor>), crate::failure::Failure> {
    let tls = files.map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| crate::failure::Failure::File(address.to_string(), error))?;
    Ok((listener, tls))
}

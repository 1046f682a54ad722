//! How does the service listen? As many connections as it has room for, each with its limits, and an orderly end.

use super::guard::{Guarded, Phase};
use super::house::House;
use super::peers::Connected;
use super::reply::{Refusal, Reply};
use super::{door, tls};
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
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
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The most bytes that the head of a request may have.
const LONGEST_HEAD: usize = 64 << 10;
/// The most headers of a request.
const MOST_HEADERS: usize = 100;
/// How long the exchange of keys may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the service waits when the system has no more handles.
const BREATH: Duration = Duration::from_millis(50);
/// How long a connection may take for which there is no room.
const BRIEF: Duration = Duration::from_secs(2);
/// What a connection for which there is no room at all is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Takes connections until it is told to stop, then waits for those that are being answered.
pub(crate) async fn serve(
    house: Arc<House>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mut stop: watch::Receiver<bool>,
) {
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
        let Some(permit) = house.peers.enter(peer.ip()) else {
            match house.peers.enter_briefly() {
                Some(reserved) => {
                    let (house, tls) = (Arc::clone(&house), tls.clone());
                    drop(tokio::spawn(async move {
                        let _ = tokio::time::timeout(BRIEF, answer_briefly(house, stream, tls, peer)).await;
                        drop(reserved);
                    }));
                }
                None => {
                    house.meters.turned_away();
                    turn_away(stream);
                }
            }
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
    house.peers.closed().await;
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
    connected: Connected,
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
    {
        let mut served = std::pin::pin!(served);
        // How a connection ends is the client's affair.
        tokio::select! {
            _ = served.as_mut() => {}
            () = told(&mut stop) => {
                served.as_mut().graceful_shutdown();
                let _ = served.await;
            }
        }
    }
    // What was being answered has been let go of.
    drop(connected);
}

/// Answers one request for which there is no room: whether the service is up, and nothing else.
async fn answer_briefly(house: Arc<House>, stream: TcpStream, tls: Option<TlsAcceptor>, peer: SocketAddr) {
    match tls {
        None => serve_briefly(house, stream, peer).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                serve_briefly(house, stream, peer).await;
            }
        }
    }
}

async fn serve_briefly<S: AsyncRead + AsyncWrite + Unpin>(house: Arc<House>, stream: S, peer: SocketAddr) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let house = Arc::clone(&house);
        async move {
            let mut reply: Reply = match request.uri().path() {
                "/healthz" | "/readyz" => door::answer(&house, peer, request).await,
                _ => {
                    house.meters.turned_away();
                    let message =
                        "there are too many connections, or too many from this address: try again later";
                    let refusal =
                        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service.connections", message);
                    Refusal { retry_after: Some(1), ..refusal }.reply()
                }
            };
            reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            Ok::<_, Infallible>(reply)
        }
    });
    let served = http1::Builder::new()
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .header_read_timeout(None)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    // How a connection ends is the client's affair.
    let _ = served.await;
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
) -> Result<(TcpListener, Option<TlsAcceptor>), crate::error::CliError> {
    let tls = files.map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| crate::error::CliError::File(address.to_string(), error))?;
    Ok((listener, tls))
}

//! What happens to every request? It is checked before anything of it is believed, sent where it belongs, and counted.

use super::body::{self, Held};
use super::house::House;
use super::reply::{Refusal, Reply, body as reply_body, json};
use super::routes::{self, Deed, Route};
use super::shape::UpReply;
use super::tokens::{Holder, Scope};
use super::{dialect, jobs, join, log, look, meters, openapi, page, score};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Answers a request, whatever it is.
pub(crate) async fn answer(house: &Arc<House>, peer: SocketAddr, request: Request<Incoming>) -> Reply {
    let began = Instant::now();
    let (mut path, is_head) = ("unknown", request.method() == Method::HEAD);
    let done = pass(house, request, &mut path).await;
    let mut reply = match done {
        Ok(reply) => reply,
        Err(refusal) => {
            let is_ours = refusal.status != StatusCode::SERVICE_UNAVAILABLE || refusal.code == "service.disk";
            if refusal.status.is_server_error() && is_ours {
                let facts = [
                    ("path", Value::from(path)),
                    ("code", Value::from(refusal.code)),
                    ("why", Value::from(&*refusal.message)),
                    ("client", Value::from(peer.ip().to_string())),
                ];
                log::say("error", "a request failed", &facts);
            }
            refusal.reply()
        }
    };
    if is_head {
        *reply.body_mut() = http_body_util::Full::default();
    }
    house.meters.answered(path, reply.status().as_u16(), began.elapsed());
    reply
}

/// Checks what the head of a request says, before anything else is read.
fn check(house: &House, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Refusal::bad("http.host", "one Host header is wanted").closing());
    };
    let host = host.to_str().map_or_else(|_| String::new(), str::to_ascii_lowercase);
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => &host,
    };
    if !house.hosts.is_empty() && !house.hosts.iter().any(|known| known == name) {
        let message = "this service is not known under that name: add it with --host";
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "http.host", message).closing());
    }
    // A page of somebody else's may not ask anything, not even in vain.
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("null"));
    if let Some(origin) = origin {
        let from = origin.split_once("://").map_or("", |(_, from)| from);
        if !from.eq_ignore_ascii_case(&host) {
            let message = "requests from pages of other origins are not answered";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "http.origin", message).closing());
        }
    }
    Ok(())
}

async fn pass(
    house: &Arc<House>,
    request: Request<Incoming>,
    told: &mut &'static str,
) -> Result<Reply, Refusal> {
    let (head, incoming) = request.into_parts();
    check(house, &head.headers)?;
    let path = head.uri.path();
    let (route, found) = routes::find(&head.method, path)?;
    *told = route.path;
    let holder = admit(house, route, &head.headers)?;
    let takes_body = route.method == "POST";
    if takes_body && house.is_draining() {
        return Err(Refusal::draining());
    }
    let held: Option<Held<'_>> = match takes_body {
        false => None,
        true => Some(body::take(&head.headers, incoming, house.limits.body, &house.room).await?),
    };
    let bytes = held.as_ref().map_or_else(bytes::Bytes::new, |held| held.bytes.clone());
    let query = look::Query(head.uri.query().unwrap_or(""));
    let key = head.headers.get("idempotency-key").map(header::HeaderValue::as_bytes);
    let at = |place: usize| found.get(place).map_or("", |part| &**part);
    match route.deed {
        Deed::Score => score::answer(house, &holder, bytes).await,
        Deed::Join => join::answer(house, &holder, bytes).await,
        Deed::Dialect(kind) => {
            let said = (&*found, head.uri.query().unwrap_or(""));
            dialect::routes::answer(house, &holder, kind, said, bytes).await
        }
        Deed::CreateJob => jobs::create(house, &holder, bytes, key).await.map(|(_, reply)| reply),
        Deed::Jobs => jobs::list(house, &holder, &query),
        Deed::Job => jobs::show(house, &holder, at(0)),
        Deed::CancelJob => jobs::cancel(house, &holder, at(0)).await,
        Deed::Results => jobs::results(house, &holder, at(0), &query).await,
        Deed::Runs => Ok(look::runs(house)),
        Deed::Run => look::run(house, at(0)),
        Deed::Steps => look::steps(house, at(0), &query).await,
        Deed::Groups => look::groups(house, at(0), &query).await,
        Deed::Group => look::group(house, at(0), at(1)).await,
        Deed::Rewards => Ok(look::rewards()),
        Deed::Reward => look::reward(at(0)),
        Deed::Recipes => Ok(look::recipes(house)),
        Deed::Judges => Ok(look::judges(house)),
        Deed::Status => Ok(look::status(house)),
        Deed::Health => Ok(json(StatusCode::OK, &UpReply { up: true })),
        Deed::Ready => look::ready(house),
        Deed::Metrics => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            Ok(reply_body(StatusCode::OK, kind, meters::page(house)))
        }
        Deed::OpenApi => Ok(json(StatusCode::OK, &openapi::openapi())),
        Deed::Page => page::file(""),
        Deed::File => page::file(at(0)),
    }
}

/// Who is asking, if that may be asked.
fn admit(house: &House, route: &Route, headers: &HeaderMap) -> Result<Arc<Holder>, Refusal> {
    let Some(scope) = route.scope else { return Ok(house.tokens.nobody()) };
    let mut headers = headers.get_all(header::AUTHORIZATION).iter();
    let (said, more) = (headers.next(), headers.next());
    if more.is_some() {
        return Err(Refusal::bad("auth.twice", "one Authorization header is wanted").closing());
    }
    let said = said.map(header::HeaderValue::as_bytes);
    let meant = match route.deed {
        Deed::Dialect(_) => said.and_then(dialect::basic::bearer),
        _ => None,
    };
    let holder = house.tokens.check(meant.as_deref().or(said))?;
    // Whoever has rollouts scored must know by which recipes.
    let chooses = route.deed == Deed::Recipes && holder.may(Scope::Score);
    if !holder.may(scope) && !chooses {
        let message = "this token does not allow that";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "auth.scope", message));
    }
    Ok(holder)
}

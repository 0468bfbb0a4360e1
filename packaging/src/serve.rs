//! Serves an index or a repository over HTTP, for tests and local networks.

use std::net::TcpListener;
use std::path::Path;

use oarlock_formats::error::Error;

use crate::apt_repository;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, IF_RANGE, LAST_MODIFIED, RANGE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use tower_http::services::ServeDir;

/// The media type of the JSON index.
const JSON_MEDIA_TYPE: &str = "application/vnd.pypi.simple.v1+json";

/// The kind of a served directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServedKind {
    /// A wheel index, for pip and uv.
    Index,
    /// A package repository, for apt.
    Repository,
}

/// Detects the kind of a directory.
///
/// # Errors
///
/// When it is neither.
pub fn detect_kind(directory: &Path) -> Result<ServedKind, Error> {
    if directory.join("simple").is_dir() {
        return Ok(ServedKind::Index);
    }
    if apt_repository::is_repository(directory) {
        return Ok(ServedKind::Repository);
    }
    Err(Error::new(
        "expected an index, as `oarlock-pack index` writes it, or a repository, as `oarlock-pack apt-repo` does; \
         found neither `simple` nor `dists` in it",
    )
    .in_file(directory.display()))
}

/// Serves a directory until the process is interrupted. Requests below `/simple/` that accept JSON get the JSON index. `tell`
/// is called with each request and its status, such as `GET /simple/oarlock/ 200`.
///
/// # Errors
///
/// When the directory is neither an index nor a repository, or the process cannot listen.
pub fn serve_directory(directory: &Path, listener: TcpListener, tell: fn(&str)) -> Result<(), Error> {
    let start = match detect_kind(directory)? {
        ServedKind::Index => "/simple/".to_owned(),
        ServedKind::Repository => format!("/{}", apt_repository::SOURCES_FILE),
    };
    let log_request = move |request: Request, next: Next| async move {
        let asked = format!("{} {}", request.method(), request.uri().path());
        let response = next.run(request).await;
        tell(&format!("{asked} {}", response.status().as_u16()));
        response
    };
    let files = Router::new()
        // Redirects browsers to the listing.
        .route("/", get(|| async move { Redirect::temporary(&start) }))
        .fallback_service(ServeDir::new(directory))
        .layer(middleware::from_fn(check_range_request))
        .layer(middleware::from_fn(negotiate_json))
        .layer(middleware::from_fn(reject_hidden))
        .layer(middleware::from_fn(log_request));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, files).with_graceful_shutdown(wait_for_interrupt()).await?;
        Ok(())
    })
}

/// Responds with 404 if a component of the path begins with a dot: such files are bookkeeping of the program that wrote the
/// directory.
async fn reject_hidden(request: Request, next: Next) -> Response {
    if is_hidden(request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    next.run(request).await
}

fn is_hidden(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/");
    path.split('/').any(|part| part.starts_with('.'))
}

async fn wait_for_interrupt() {
    // Without signal support, the process has to be stopped by other means.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Handles range requests with `If-Range`: the rest of an unchanged file, or all of a new one. apt sends them, and a repository
/// may have been replaced in between. The static file service does not compare the file.
async fn check_range_request(mut request: Request, next: Next) -> Response {
    let Some(begun) = request.headers().get(IF_RANGE).cloned() else { return next.run(request).await };
    let mut rest = Request::new(Body::empty());
    *rest.uri_mut() = request.uri().clone();
    *rest.headers_mut() = request.headers().clone();
    request.headers_mut().remove(RANGE);
    let whole = next.clone().run(request).await;
    if whole.headers().get(LAST_MODIFIED) == Some(&begun) { next.run(rest).await } else { whole }
}

/// Serves `/json/` in place of `/simple/` to clients that accept JSON.
async fn negotiate_json(mut request: Request, next: Next) -> Response {
    let asked = request.headers().get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let wants_json = asked
        .split(',')
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == JSON_MEDIA_TYPE));
    let below = request.uri().path().strip_prefix("/simple/");
    let Some(rest) = below.filter(|rest| rest.is_empty() || rest.ends_with('/')) else {
        return next.run(request).await;
    };
    if wants_json && let Ok(place) = format!("/json/{rest}index.json").parse() {
        *request.uri_mut() = place;
    }
    let mut response = next.run(request).await;
    if wants_json && response.status() == StatusCode::OK {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MEDIA_TYPE));
    }
    // Tells caches to store the two representations separately.
    response.headers_mut().insert(VARY, HeaderValue::from_name(ACCEPT));
    response
}

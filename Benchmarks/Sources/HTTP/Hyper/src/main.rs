// A server of hyper, on one thread of tokio: `hyper-http PORT`. It answers as the other servers do.
use futures_util::stream;
use hyper::body::{to_bytes, Bytes};
use hyper::header::CONTENT_LENGTH;
use hyper::server::conn::Http;
use hyper::{service::service_fn, Body, Method, Request, Response};
use std::{convert::Infallible, env, error::Error};
use tokio::net::TcpListener;

static PIECE: [u8; 16384] = [b'x'; 16384];
const PIECES: usize = 64;

async fn answer(request: Request<Body>) -> Result<Response<Body>, hyper::Error> {
    if request.method() == Method::POST {
        return Ok(Response::new(Body::from(to_bytes(request.into_body()).await?)));
    }
    if request.uri().path() != "/stream" {
        return Ok(Response::new(Body::from("Hello, world!")));
    }
    let pieces = stream::iter((0..PIECES).map(|_| Ok::<_, Infallible>(Bytes::from_static(&PIECE))));
    let mut response = Response::new(Body::wrap_stream(pieces));
    response.headers_mut().insert(CONTENT_LENGTH, (PIECES * PIECE.len()).into());
    Ok(response)
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let _ = Http::new().pipeline_flush(true).serve_connection(stream, service_fn(answer)).await;
        });
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = env::args().nth(1).ok_or("usage: hyper-http PORT")?.parse()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(port))
}

// An echo server on tokio, on one thread: `tokio-echo PORT [CHAIN KEY]`; with a certificate it speaks TLS.
use openssl::ssl::{Ssl, SslAcceptor, SslFiletype, SslMethod};
use std::{env, error::Error, io, pin::Pin};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_openssl::SslStream;

async fn echo<Stream: AsyncRead + AsyncWrite + Unpin>(mut stream: Stream) -> io::Result<()> {
    let mut room = Vec::with_capacity(64 * 1024);
    loop {
        room.clear();
        if stream.read_buf(&mut room).await? == 0 {
            return Ok(());
        }
        stream.write_all(&room).await?;
    }
}

async fn serve(arguments: Vec<String>) -> Result<(), Box<dyn Error>> {
    let mut acceptor = None;
    if arguments.len() == 4 {
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server())?;
        builder.set_certificate_chain_file(&arguments[2])?;
        builder.set_private_key_file(&arguments[3], SslFiletype::PEM)?;
        acceptor = Some(builder.build());
    }
    let listener = TcpListener::bind(("127.0.0.1", arguments[1].parse()?)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        match &acceptor {
            Some(acceptor) => {
                let mut stream = SslStream::new(Ssl::new(acceptor.context())?, stream)?;
                tokio::spawn(async move {
                    if Pin::new(&mut stream).accept().await.is_ok() {
                        let _ = echo(stream).await;
                    }
                });
            }
            None => {
                tokio::spawn(echo(stream));
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve(env::args().collect()))
}

//! What stands between a client and its server, and can be cut through.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on to a server, until told otherwise.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    cuts: watch::Sender<u64>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Mutex::new(server));
        let (cuts, cut) = watch::channel(0);
        let target = server.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *target.lock();
                tokio::spawn(pass(client, server, cut.clone()));
            }
        });
        Proxy { address, server, cuts }
    }

    /// Ends all connections, in the middle of whatever they carry. New ones go to `server`.
    pub(crate) fn cut(&self, server: SocketAddr) {
        *self.server.lock() = server;
        self.cuts.send_modify(|n| *n += 1);
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, mut cut: watch::Receiver<u64>) {
    cut.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = cut.changed() => {}
    }
}

//! The server under test: in this process, with Volcano's kinds, the garbage collector and the life of namespaces.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, OnceLock};

use krafla_apiserver::admit::{Admission, ServiceAccounts, StorageProtection};
use krafla_apiserver::store::Store;
use krafla_apiserver::{
    Api, Collector, RunningServer, ServerConfig, SystemEnv, Tokens, parse_token_file, serve,
};
use tokio::runtime::Runtime;

use krafla_recorded::case::Case;

/// What the servers offer of what cases may need.
pub(crate) const ABILITIES: [&str; 7] =
    ["volcano", "gc", "no-quota", "no-serviceaccount", "rbac", "limited", WITH_ACCOUNTS];
/// The token of an administrator who has the name of the recorded one.
pub(crate) const ADMIN_TOKEN: &str = "admin-token";
/// The token of a user without rights.
pub(crate) const LIMITED_TOKEN: &str = "limited-token";
/// What only one of the servers has: pods get an account.
const WITH_ACCOUNTS: &str = "serviceaccount";

/// Where the server and all cases run.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("the runtime starts")
});

/// The server that a case is played on. All areas share it: cases keep to namespaces and names of their own.
pub(crate) fn of(case: &Case) -> &'static RunningServer {
    static PLAIN: OnceLock<RunningServer> = OnceLock::new();
    static ACCOUNTS: OnceLock<RunningServer> = OnceLock::new();
    if case.needs.iter().any(|need| need == WITH_ACCOUNTS) {
        ACCOUNTS.get_or_init(|| RUNTIME.block_on(start(admission().with(ServiceAccounts))))
    } else {
        PLAIN.get_or_init(fresh)
    }
}

/// A server that nobody else uses.
pub(crate) fn fresh() -> RunningServer {
    RUNTIME.block_on(start(admission()))
}

fn admission() -> Admission {
    Admission::default().with(StorageProtection)
}

/// The records were made without Volcano's webhooks: its kinds are stored as their schemas allow. Nobody took the
/// protection of storage away either.
async fn start(admission: Admission) -> RunningServer {
    let env = Arc::new(SystemEnv);
    let api = Api::new(Store::in_memory(), env.clone(), admission);
    api.bootstrap().await.expect("the first objects are made");
    api.bootstrap_roles().await.expect("the first roles are made");
    tokio::spawn(api.clone().run_namespaces());
    tokio::spawn(Collector::new(api.clone()).run());
    tokio::spawn(api.clone().run_role_aggregation());
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let tokens = Arc::new(Tokens::for_now());
    let users =
        parse_token_file(&format!("{LIMITED_TOKEN},limited,limited\n{ADMIN_TOKEN},admin,0,system:masters"))
            .expect("a token file");
    // Nobody was let in without a token where the cases were recorded.
    let config = ServerConfig { allows_anonymous: false, users, ..ServerConfig::new(listen, tokens) };
    let server = serve(api.clone(), env, config).await.expect("it listens");
    tokio::spawn(api.run_service_accounts(server.ca_pem().to_owned()));
    server
}

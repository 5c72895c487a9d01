//! Flags of `krafla webhook-manager`: those of Volcano's webhook manager.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use krafla_admission::webhook::{ENDPOINTS, Endpoint};

use super::admission::Admission;
use super::{duration, go_bool, listen_address, log_filter};

/// All paths. Volcano leaves some out by default: a webhook is asked only if its configuration exists.
fn all_paths() -> String {
    ENDPOINTS.iter().map(|endpoint| endpoint.path).collect::<Vec<_>>().join(",")
}

#[derive(Debug, Args)]
pub(crate) struct WebhookManager {
    /// Use the cluster of this kubeconfig's current context
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Paths to serve, separated by commas [default: all]
    ///
    /// Each path has a webhook configuration: /jobs/mutate is asked for by volcano-admission-service-jobs-mutate.
    #[arg(long, value_name = "PATHS", default_value_t = all_paths(), hide_default_value = true)]
    enabled_admission: String,
    /// IP address to listen on [default: all]
    #[arg(long, value_name = "IP", value_parser = ip_address, default_value = "")]
    listen_address: ListenIp,
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = 8443, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Namespace of the Service, and of the Secret of the certificate
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) webhook_namespace: String,
    /// Name of the Service in front of this program
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) webhook_service_name: String,
    /// Address of this program for an API server outside the cluster
    #[arg(long, value_name = "URL", default_value = "")]
    pub(crate) webhook_url: String,
    /// Certificate authority of --tls-cert-file (PEM)
    ///
    /// Without --ca-cert-file, --tls-cert-file and --tls-private-key-file, Krafla creates a certificate authority and a certificate and
    /// keeps them in the Secret krafla-webhook-certificate of --webhook-namespace. All replicas use the same Secret.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file", requires = "tls_private_key_file")]
    pub(crate) ca_cert_file: Option<PathBuf>,
    /// Certificate (PEM); read again when the file changes
    #[arg(long, value_name = "FILE", requires = "ca_cert_file", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "ca_cert_file", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Serve /healthz and /readyz at --healthz-address
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    pub(crate) enable_healthz: bool,
    /// Address for health; no host means all addresses, port 0 a free port
    #[arg(long, value_name = "[HOST]:PORT", default_value = ":11251", value_parser = listen_address)]
    pub(crate) healthz_address: SocketAddr,
    /// Time to answer the last requests after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) graceful_shutdown_time: Duration,
    /// Log level: 4 and more debugs, 8 and more traces; KRAFLA_LOG overrides it
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0, allow_negative_numbers = true)]
    verbosity: i32,
    #[command(flatten)]
    pub(crate) admission: Admission,
    /// Volcano's manifests have words here that its shell was meant to see.
    #[arg(hide = true)]
    _words: Vec<OsString>,
}

/// An IP address, or none for all of this machine.
#[derive(Clone, Copy, Debug)]
struct ListenIp(Option<IpAddr>);

fn ip_address(text: &str) -> Result<ListenIp, String> {
    match text {
        "" => Ok(ListenIp(None)),
        "localhost" => Ok(ListenIp(Some(std::net::Ipv4Addr::LOCALHOST.into()))),
        text => text.parse().map(|ip| ListenIp(Some(ip))).map_err(|_| "not an IP address".to_owned()),
    }
}

impl WebhookManager {
    /// What is logged unless the environment says otherwise.
    pub(crate) fn log_filter(&self) -> &'static str {
        log_filter(self.verbosity)
    }

    /// The address of the webhooks.
    pub(crate) fn address(&self) -> SocketAddr {
        let all = IpAddr::from(std::net::Ipv6Addr::UNSPECIFIED);
        SocketAddr::new(self.listen_address.0.unwrap_or(all), self.port)
    }

    /// The paths to serve, or the first that does not exist.
    pub(crate) fn endpoints(&self) -> Result<Vec<&'static Endpoint>, String> {
        let named = self.enabled_admission.split(',').map(str::trim).filter(|path| !path.is_empty());
        let found = named.map(|path| {
            ENDPOINTS.iter().find(|endpoint| endpoint.path == path).ok_or_else(|| {
                format!("--enabled-admission: unknown path {path:?}; known are {}", all_paths())
            })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parsed(flags: &[&str]) -> Result<Box<WebhookManager>, String> {
        let words = ["krafla", "webhook-manager"].iter().chain(flags);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::WebhookManager(manager) => Ok(manager),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_a_list_and_an_unknown_one_is_named() {
        let paths = |list: &str| {
            let manager = parsed(&[&format!("--enabled-admission={list}")]).unwrap();
            manager.endpoints().map(|found| found.iter().map(|it| it.path).collect::<Vec<_>>())
        };
        assert_eq!(paths(" /jobs/mutate ,,/queues/validate"), Ok(vec!["/jobs/mutate", "/queues/validate"]));
        assert_eq!(paths(" , ,, "), Ok(vec![]));
        for wrong in ["/nothing/validate", "jobs/mutate", "/jobs/mutate,/nothing/validate"] {
            assert!(paths(wrong).unwrap_err().contains("unknown path"), "{wrong}");
        }
        assert_eq!(parsed(&[]).unwrap().endpoints().unwrap().len(), ENDPOINTS.len());
    }

    #[test]
    fn what_volcanos_chart_passes_is_taken() {
        let line = "--enabled-admission=/jobs/mutate,/jobs/validate --tls-cert-file=/admission.local.config/certificates/tls.crt \
                    --tls-private-key-file=/admission.local.config/certificates/tls.key \
                    --ca-cert-file=/admission.local.config/certificates/ca.crt --admission-conf=/admission.local.config/configmap/volcano-admission.conf \
                    --webhook-namespace=volcano-system --webhook-service-name=volcano-admission-service --enable-healthz=true --port=8443 -v=4 2>&1";
        let manager = parsed(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!((manager.address().port(), manager.log_filter()), (8443, "info,krafla=debug"));
        assert!(manager.enable_healthz && manager.address().ip().is_unspecified());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (flags, why) in [
            (["--port=0"].as_slice(), "0 is not in 1..=65535"),
            (&["--port=65536"], "65536 is not in 1..=65535"),
            (&["--tls-cert-file=a"], "--ca-cert-file"),
            (&["--listen-address=nowhere"], "not an IP address"),
            (&["--graceful-shutdown-time=0s"], "must be positive"),
            (&["--bogus=1"], "unexpected argument '--bogus'"),
        ] {
            let refusal = parsed(flags).map(|_| ()).unwrap_err();
            assert!(refusal.contains(why), "{flags:?}: {refusal}");
        }
    }
}

//! Which ConfigMaps, Secrets and tokens a pod names.

use std::collections::BTreeSet;
use std::time::Duration;

use krafla_api::Kind;

use crate::pod::{AccountToken, ConfigMapVolume, Container, Pod, SecretVolume, Volume};

/// A ConfigMap or Secret of the pod's namespace: its kind and name.
pub type Reference = (Kind, String);

/// All that a container's environment names.
pub fn of_environment(container: &Container) -> BTreeSet<Reference> {
    let from = container.env_from.iter().flat_map(|from| {
        let config_map = from.config_map_ref.as_ref().map(|map| (Kind::ConfigMap, map.name.clone()));
        let secret = from.secret_ref.as_ref().map(|secret| (Kind::Secret, secret.name.clone()));
        config_map.into_iter().chain(secret)
    });
    let single = container.env.iter().filter_map(|variable| variable.value_from.as_ref()).flat_map(|value| {
        let config_map = value.config_map_key_ref.as_ref().map(|key| (Kind::ConfigMap, key.name.clone()));
        let secret = value.secret_key_ref.as_ref().map(|key| (Kind::Secret, key.name.clone()));
        config_map.into_iter().chain(secret)
    });
    from.chain(single).collect()
}

/// Whether a container's environment may be something else when it is put together again.
pub fn may_change(container: &Container) -> bool {
    !container.env_from.is_empty() || container.env.iter().any(|variable| variable.value_from.is_some())
}

/// All that a pod's volumes name.
pub fn of_volumes(pod: &Pod) -> BTreeSet<Reference> {
    pod.spec.volumes.iter().flat_map(of_volume).collect()
}

/// Whether a pod's volumes tell it of itself.
pub fn has_own_fields(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| {
        let mut sources = volume.projected.iter().flat_map(|projected| &projected.sources);
        volume.downward_api.is_some() || sources.any(|source| source.downward_api.is_some())
    })
}

/// The tokens of its account that a pod's volumes hold.
pub fn tokens_of_volumes(pod: &Pod) -> impl Iterator<Item = &AccountToken> {
    let projected = pod.spec.volumes.iter().filter_map(|volume| volume.projected.as_ref());
    projected
        .flat_map(|projected| &projected.sources)
        .filter_map(|source| source.service_account_token.as_ref())
}

/// A token is not used for longer, however long it lasts.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long after a token was made a new one takes its place: once four fifths of its life are over, as in a kubelet.
pub fn renewed_after(token: &AccountToken) -> Duration {
    // Kubernetes' default; the server writes it down.
    let seconds = u64::try_from(token.expiration_seconds.unwrap_or(3600)).unwrap_or(0);
    Duration::from_millis(seconds.max(1).saturating_mul(800)).min(TOKEN_AGE_MAX)
}

fn of_volume(volume: &Volume) -> Vec<Reference> {
    let mut found = of_parts(volume.config_map.as_ref(), volume.secret.as_ref());
    for source in volume.projected.iter().flat_map(|projected| &projected.sources) {
        found.extend(of_parts(source.config_map.as_ref(), source.secret.as_ref()));
    }
    found
}

fn of_parts(config_map: Option<&ConfigMapVolume>, secret: Option<&SecretVolume>) -> Vec<Reference> {
    let config_map = config_map.map(|map| (Kind::ConfigMap, map.name.clone()));
    let secret = secret.map(|secret| (Kind::Secret, secret.name().to_owned()));
    config_map.into_iter().chain(secret).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_ends_and_at_least_daily() {
        let after = |expiration_seconds| {
            renewed_after(&AccountToken { expiration_seconds, ..AccountToken::default() }).as_secs()
        };
        assert_eq!(after(Some(600)), 480);
        assert_eq!(after(None), 2880);
        assert_eq!(after(Some(1 << 32)), 24 * 3600);
    }
}

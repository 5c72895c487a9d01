//! Which ConfigMaps, Secrets and tokens a pod names.

use std::collections::BTreeSet;

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

/// All that a pod's volumes name.
pub fn of_volumes(pod: &Pod) -> BTreeSet<Reference> {
    pod.spec.volumes.iter().flat_map(of_volume).collect()
}

/// The tokens of its account that a pod's volumes hold.
pub fn tokens_of_volumes(pod: &Pod) -> impl Iterator<Item = &AccountToken> {
    let projected = pod.spec.volumes.iter().filter_map(|volume| volume.projected.as_ref());
    projected
        .flat_map(|projected| &projected.sources)
        .filter_map(|source| source.service_account_token.as_ref())
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

//! Parts of new objects that are drawn at random.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What must be drawn at random, once, when the object is created, and is kept as long as the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// An RSA key pair of 2048 bits.
    SshKeyPair {
        /// The key of `data` for the private key.
        private_key: &'static str,
        /// The keys of `data` for the public key.
        public_key: &'static [&'static str],
    },
}

/// A key pair as ssh reads it.
#[derive(Clone, PartialEq, Eq)]
pub struct SshKeyPair {
    /// PEM with the label `RSA PRIVATE KEY` (PKCS#1).
    pub private_key: String,
    /// One line, `ssh-rsa <base64>`, with its newline.
    pub public_key: String,
}

impl Recipe {
    /// Puts what was drawn into the manifest of a Secret.
    pub fn fill(&self, object: &mut Value, pair: &SshKeyPair) {
        let Recipe::SshKeyPair { private_key, public_key } = self;
        let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) else { return };
        data.insert((*private_key).to_owned(), secret_text(&pair.private_key));
        for key in *public_key {
            data.insert((*key).to_owned(), secret_text(&pair.public_key));
        }
    }
}

impl std::fmt::Debug for SshKeyPair {
    /// A private key has no business in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SshKeyPair").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

/// A text as it stands in a Secret's `data`.
pub fn secret_text(text: &str) -> Value {
    STANDARD.encode(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_not_printed() {
        let pair = SshKeyPair { private_key: "PRIV".into(), public_key: "PUB".into() };
        assert_eq!(format!("{pair:?}"), r#"SshKeyPair { public_key: "PUB", .. }"#);
    }
}

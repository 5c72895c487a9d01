//! Signed claims: JSON Web Tokens with ES256, the one algorithm that is written and read here.
//!
//! Nothing in a token's head is believed but that it names this key: a token cannot choose how it is checked.

use aws_lc_rs::digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// A key that signs claims and knows its own signature.
pub(super) struct Signer {
    key: EcdsaKeyPair,
    id: String,
}

impl Signer {
    /// A new key, as PKCS#8.
    pub(super) fn new_key() -> Result<Vec<u8>, String> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.map(|key| key.as_ref().to_vec()).map_err(|_| "no key could be made".to_owned())
    }

    /// A signer with this key.
    pub(super) fn of_key(pkcs8: &[u8]) -> Result<Signer, String> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8)
            .map_err(|error| format!("the key is not understood: {error}"))?;
        let hash = digest::digest(&digest::SHA256, key.public_key().as_ref());
        Ok(Signer { id: URL_SAFE_NO_PAD.encode(hash), key })
    }

    /// A token that says this.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, String> {
        let head = json!({"alg": "ES256", "kid": self.id});
        let said = format!("{}.{}", in_base64(&head), in_base64(claims));
        let signature = self.key.sign(&SystemRandom::new(), said.as_bytes());
        let signature = signature.map_err(|_| "the token could not be signed".to_owned())?;
        Ok(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token says, if it was signed with this key.
    pub(super) fn read(&self, token: &str) -> Option<Value> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (said, signature) = token.rsplit_once('.')?;
        let (head, claims) = said.split_once('.')?;
        let head = &from_base64(head)?;
        if head["alg"] != "ES256" || head["kid"] != *self.id {
            return None;
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        key.verify(said.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        from_base64(claims)
    }

    /// The public key, for those who check tokens by themselves.
    pub(super) fn public_keys(&self) -> Value {
        // An uncompressed point: a byte that says so, then both coordinates.
        let point = self.key.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        json!({"keys": [{"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}]})
    }
}

fn in_base64(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn from_base64(text: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::of_key(&Signer::new_key().unwrap()).unwrap()
    }

    #[test]
    fn a_token_says_what_was_signed() {
        let signer = signer();
        let claims = json!({"sub": "me", "exp": 5});
        assert_eq!(signer.read(&signer.sign(&claims).unwrap()), Some(claims));
    }

    #[test]
    fn a_token_of_another_key_or_with_any_other_letter_says_nothing() {
        let signer = signer();
        let token = signer.sign(&json!({"sub": "me"})).unwrap();
        assert_eq!(self::signer().read(&token), None);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(signer.read(&changed), None, "{changed}");
        }
        for odd in ["", ".", "..", "a.b.c", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
            assert_eq!(signer.read(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_token_cannot_choose_how_it_is_checked() {
        let signer = signer();
        let head = in_base64(&json!({"alg": "none", "kid": signer.id}));
        assert_eq!(signer.read(&format!("{head}.{}.", in_base64(&json!({"sub": "me"})))), None);
    }
}

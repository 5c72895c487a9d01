//! Key pairs for ssh, in the two notations that ssh reads.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_cluster::SshKeyPair;

/// The width of PEM's lines.
const PEM_WIDTH: usize = 64;

/// A new RSA key pair of 2048 bits. It takes a moment: tens to hundreds of milliseconds.
pub fn key_pair() -> Result<SshKeyPair, String> {
    let failed = |what: &str| format!("no ssh key could be made: {what}");
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(|_| failed("the generator refused"))?;
    let wrapped: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| failed("the key has no encoding"))?;
    write_down(wrapped.as_ref()).ok_or_else(|| failed("its encoding is not understood"))
}

/// PKCS#8 wraps what ssh reads: a sequence of version, algorithm, and an octet string that holds PKCS#1, itself a sequence of
/// version, modulus, exponent and more.
fn write_down(pkcs8: &[u8]) -> Option<SshKeyPair> {
    let (wrapper, _) = element(pkcs8)?;
    let (_version, rest) = element(wrapper)?;
    let (_algorithm, rest) = element(rest)?;
    let (pkcs1, _) = element(rest)?;
    let (key, _) = element(pkcs1)?;
    let (_version, rest) = element(key)?;
    let (modulus, rest) = element(rest)?;
    let (exponent, _) = element(rest)?;
    Some(SshKeyPair { private_key: pem(pkcs1), public_key: public_line(exponent, modulus) })
}

/// The content of the first DER element, and what follows it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = if *length < 0x80 {
        (usize::from(*length), rest)
    } else {
        let n_bytes = usize::from(length & 0x7f);
        let (bytes, rest) = rest.split_at_checked(n_bytes)?;
        let length =
            bytes.iter().try_fold(0usize, |sum, byte| sum.checked_mul(256)?.checked_add((*byte).into()))?;
        (length, rest)
    };
    rest.split_at_checked(length)
}

fn pem(pkcs1: &[u8]) -> String {
    let text = STANDARD.encode(pkcs1);
    let mut pem = "-----BEGIN RSA PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(PEM_WIDTH) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END RSA PRIVATE KEY-----\n");
    pem
}

/// DER's integers are what ssh calls mpints: big-endian, with a zero in front where the first bit is set.
fn public_line(exponent: &[u8], modulus: &[u8]) -> String {
    let mut blob = Vec::new();
    for part in [b"ssh-rsa".as_slice(), exponent, modulus] {
        blob.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        blob.extend_from_slice(part);
    }
    format!("ssh-rsa {}\n", STANDARD.encode(blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_pair_is_what_ssh_reads() {
        let pair = key_pair().unwrap();
        let lines: Vec<&str> = pair.private_key.lines().collect();
        assert_eq!(lines.first(), Some(&"-----BEGIN RSA PRIVATE KEY-----"));
        assert_eq!(lines.last(), Some(&"-----END RSA PRIVATE KEY-----"));
        assert!(lines[1].starts_with("MII"), "a sequence of more than 255 bytes: {}", lines[1]);
        // The length of "ssh-rsa", the word itself, and the usual exponent 65537.
        assert!(pair.public_key.starts_with("ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB"), "{}", pair.public_key);
        assert!(pair.public_key.ends_with('\n'));
    }
}

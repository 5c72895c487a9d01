//! URLs, IP addresses and ranges of them.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Function, T, failed, global, member, misfit};
use crate::cost::Cost;
use crate::eval::EvalError;
use crate::types::Opaque;
use crate::value::{Key, Map, Value};

const URL: T = T::Opaque(Opaque::Url);
const IP: T = T::Opaque(Opaque::Ip);
const CIDR: T = T::Opaque(Opaque::Cidr);

/// An absolute URL, or the absolute path of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

/// A range of IP addresses: all that share the first bits of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    n_bits: u8,
}

pub(super) static FUNCTIONS: &[Function] = &[
    global("url", &[T::Str], URL, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match Url::parse(text) {
            Some(url) => Ok(Value::Url(Arc::new(url))),
            None => Err(failed(unreadable_url(text))),
        },
        _ => misfit(),
    }),
    global("isURL", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => Ok(Value::Bool(Url::parse(text).is_some())),
        _ => misfit(),
    }),
    member("getScheme", &[URL], T::Str, Cost::Flat, |arguments, _| {
        of_url(arguments, |url| url.scheme.clone())
    }),
    member("getHost", &[URL], T::Str, Cost::Flat, |arguments, _| of_url(arguments, |url| url.host.clone())),
    member("getHostname", &[URL], T::Str, Cost::Flat, |arguments, _| {
        of_url(arguments, |url| url.host_and_port().0.to_owned())
    }),
    member("getPort", &[URL], T::Str, Cost::Flat, |arguments, _| {
        of_url(arguments, |url| url.host_and_port().1.to_owned())
    }),
    member("getEscapedPath", &[URL], T::Str, Cost::Flat, |arguments, _| {
        of_url(arguments, |url| url.path.clone())
    }),
    member(
        "getQuery",
        &[URL],
        T::Map(&T::Str, &T::List(&T::Str)),
        Cost::Flat,
        |arguments, _| match arguments {
            [Value::Url(url)] => Ok(url.query()),
            _ => misfit(),
        },
    ),
    global("ip", &[T::Str], IP, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match parse_ip(text) {
            Some(address) => Ok(Value::Ip(address)),
            None => Err(failed(unreadable_ip(text))),
        },
        _ => misfit(),
    }),
    global("isIP", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_some())),
        _ => misfit(),
    }),
    global("ip.isCanonical", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match parse_ip(text) {
            Some(address) => Ok(Value::Bool(address.to_string() == **text)),
            None => Err(failed(unreadable_ip(text))),
        },
        _ => misfit(),
    }),
    member("family", &[IP], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Ip(address)] => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        _ => misfit(),
    }),
    member("isUnspecified", &[IP], T::Bool, Cost::Flat, |arguments, _| {
        of_ip(arguments, IpAddr::is_unspecified)
    }),
    member("isLoopback", &[IP], T::Bool, Cost::Flat, |arguments, _| of_ip(arguments, IpAddr::is_loopback)),
    member("isLinkLocalMulticast", &[IP], T::Bool, Cost::Flat, |arguments, _| {
        of_ip(arguments, |address| match address {
            IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(address) => address.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        })
    }),
    member("isLinkLocalUnicast", &[IP], T::Bool, Cost::Flat, |arguments, _| {
        of_ip(arguments, |address| match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        })
    }),
    member("isGlobalUnicast", &[IP], T::Bool, Cost::Flat, |arguments, _| {
        of_ip(arguments, |address| {
            let is_other = match address {
                IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
                IpAddr::V6(address) => address.is_unicast_link_local(),
            };
            !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || is_other)
        })
    }),
    global("string", &[IP], T::Str, Cost::Flat, |arguments, _| match arguments {
        [Value::Ip(address)] => Ok(Value::text(address.to_string())),
        _ => misfit(),
    }),
    global("cidr", &[T::Str], CIDR, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match Cidr::parse(text) {
            Some(cidr) => Ok(Value::Cidr(cidr)),
            None => Err(failed(format!(
                "network address parse error during conversion from string: {:?}",
                &**text
            ))),
        },
        _ => misfit(),
    }),
    global("isCIDR", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => Ok(Value::Bool(Cidr::parse(text).is_some())),
        _ => misfit(),
    }),
    global("string", &[CIDR], T::Str, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr)] => Ok(Value::text(format!("{}/{}", cidr.address, cidr.n_bits))),
        _ => misfit(),
    }),
    member("containsIP", &[CIDR, IP], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr), Value::Ip(address)] => Ok(Value::Bool(cidr.contains(*address))),
        _ => misfit(),
    }),
    member("containsIP", &[CIDR, T::Str], T::Bool, Cost::Second, |arguments, _| match arguments {
        [Value::Cidr(cidr), Value::String(text)] => {
            let address =
                parse_ip(text).ok_or_else(|| failed(format!("IP Address {:?} parse error", &**text)))?;
            Ok(Value::Bool(cidr.contains(address)))
        }
        _ => misfit(),
    }),
    member("containsCIDR", &[CIDR, CIDR], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr), Value::Cidr(other)] => Ok(Value::Bool(cidr.covers(*other))),
        _ => misfit(),
    }),
    member("containsCIDR", &[CIDR, T::Str], T::Bool, Cost::Second, |arguments, _| match arguments {
        [Value::Cidr(cidr), Value::String(text)] => {
            let other = Cidr::parse(text).ok_or_else(|| failed(format!("CIDR {:?} parse error", &**text)))?;
            Ok(Value::Bool(cidr.covers(other)))
        }
        _ => misfit(),
    }),
    member("ip", &[CIDR], IP, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr)] => Ok(Value::Ip(cidr.address)),
        _ => misfit(),
    }),
    member("masked", &[CIDR], CIDR, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr)] => Ok(Value::Cidr(cidr.masked())),
        _ => misfit(),
    }),
    member("prefixLength", &[CIDR], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Cidr(cidr)] => Ok(Value::Int(cidr.n_bits.into())),
        _ => misfit(),
    }),
];

fn of_url<'a>(arguments: &[Value<'a>], part: fn(&Url) -> String) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Url(url)] => Ok(Value::text(part(url))),
        _ => misfit(),
    }
}

fn of_ip<'a>(arguments: &[Value<'a>], asks: fn(&IpAddr) -> bool) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Ip(address)] => Ok(Value::Bool(asks(address))),
        _ => misfit(),
    }
}

/// An address; an IPv4 address in the clothes of an IPv6 address is none.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_disguised = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    (!is_disguised).then_some(address)
}

impl Url {
    fn parse(text: &str) -> Option<Url> {
        if text.chars().any(|character| character.is_control() || character == ' ') {
            return None;
        }
        let (rest, _fragment) = text.split_once('#').unwrap_or((text, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (scheme, host, path) = match rest.strip_prefix('/') {
            Some(_) => ("", "", rest),
            None => {
                let (scheme, rest) = rest.split_once("://")?;
                let end = rest.find('/').unwrap_or(rest.len());
                (scheme, rest.get(..end)?, rest.get(end..)?)
            }
        };
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
        };
        if !scheme.is_empty() && !is_scheme(scheme) || scheme.is_empty() && !path.starts_with('/') {
            return None;
        }
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let url =
            Url { scheme: scheme.to_lowercase(), host: host.into(), path: path.into(), query: query.into() };
        url.host_and_port().1.bytes().all(|byte| byte.is_ascii_digit()).then_some(url)
    }

    /// The host without its port, and the port; an IPv6 address without its brackets.
    fn host_and_port(&self) -> (&str, &str) {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or_default()),
            None => self.host.rsplit_once(':').unwrap_or((&self.host, "")),
        }
    }

    fn query<'a>(&self) -> Value<'a> {
        let mut values: std::collections::BTreeMap<Key, Vec<Value<'a>>> = Default::default();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            values
                .entry(Key::String(unescaped(name).into()))
                .or_default()
                .push(Value::text(unescaped(value)));
        }
        let lists = values.into_iter().map(|(name, values)| (name, Value::list(values)));
        Value::Map(Map::Made(Arc::new(lists.collect())))
    }
}

/// A part of a query without its escapes; a wrong escape stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = after;
            }
            (other, _) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Cidr {
    fn parse(text: &str) -> Option<Cidr> {
        let (address, bits) = text.split_once('/')?;
        let address = parse_ip(address)?;
        let n_bits: u8 = bits.parse().ok().filter(|_| bits.bytes().all(|byte| byte.is_ascii_digit()))?;
        (n_bits <= if address.is_ipv4() { 32 } else { 128 }).then_some(Cidr { address, n_bits })
    }

    fn masked(self) -> Cidr {
        let kept = |width: u32| u128::MAX.checked_shl(width.saturating_sub(self.n_bits.into())).unwrap_or(0);
        let address = match self.address {
            IpAddr::V4(address) => IpAddr::V4((u32::from(address) & kept(32) as u32).into()),
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & kept(128)).into()),
        };
        Cidr { address, ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Cidr { address, n_bits: self.n_bits }.masked().address == self.masked().address
    }

    fn covers(self, other: Cidr) -> bool {
        other.n_bits >= self.n_bits && self.contains(other.address)
    }
}

/// Why a text is not an IP address, as far as its look says.
fn unreadable_ip(text: &str) -> String {
    let is_plain = !text.contains(['.', ':']);
    let why = if is_plain { format!(": ParseAddr({text:?}): unable to parse IP") } else { String::new() };
    format!("IP Address {text:?} parse error during conversion from string{why}")
}

/// Why a text is not a URL, as far as its look says.
fn unreadable_url(text: &str) -> String {
    let why = if text.starts_with(':') { ": missing protocol scheme" } else { ": invalid URI for request" };
    format!("URL parse error during conversion from string: parse {text:?}{why}")
}

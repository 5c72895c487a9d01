//! Which form of an answer a client wants.

use crate::status::Status;

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accept {
    /// JSON or YAML.
    pub encoding: Encoding,
    /// The objects themselves, or something made of them.
    pub form: Form,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What an answer shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The objects.
    Object,
    /// A table, in this version of `meta.k8s.io`.
    Table(&'static str),
    /// The metadata of one object.
    Partial(&'static str),
    /// The metadata of many objects.
    PartialList(&'static str),
}

/// What can be offered, as messages list it.
pub(super) const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

impl Accept {
    /// What is sent to a client that has no wish.
    pub(super) const PLAIN: Accept = Accept { encoding: Encoding::Json, form: Form::Object };

    /// The best of what a client accepts. Protobuf is accepted by many and offered to none: they all take JSON too.
    pub(super) fn negotiate(header: Option<&str>) -> Result<Accept, Status> {
        let Some(header) = header.filter(|header| !header.trim().is_empty()) else {
            return Ok(Accept::PLAIN);
        };
        let mut wishes: Vec<Wish<'_>> = header.split(',').map(Wish::parse).collect();
        // The sort is stable: among equals the first counts.
        wishes.sort_by_key(|wish| std::cmp::Reverse(wish.quality));
        if let Some(accept) = wishes.iter().find_map(Wish::granted) {
            return Ok(accept);
        }
        // A known type with a form that is not offered is told apart from an unknown type.
        if wishes.iter().any(|wish| wish.encoding().is_some()) {
            return Err(Status::not_acceptable(OFFERED));
        }
        Err(Status::nothing_acceptable(OFFERED))
    }
}

struct Wish<'a> {
    media_type: &'a str,
    form: &'a str,
    group: &'a str,
    version: &'a str,
    /// In thousandths.
    quality: u32,
}

impl<'a> Wish<'a> {
    fn parse(text: &'a str) -> Wish<'a> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut wish = Wish { media_type, form: "", group: "", version: "", quality: 1000 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => wish.form = value,
                "g" => wish.group = value,
                "v" => wish.version = value,
                "q" => wish.quality = thousandths(value),
                _ => {}
            }
        }
        wish
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.media_type {
            "application/json" | "*/*" => Some(Encoding::Json),
            "application/yaml" => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn granted(&self) -> Option<Accept> {
        let encoding = self.encoding()?;
        let version = match self.version {
            "v1" => "v1",
            "v1beta1" => "v1beta1",
            _ => "",
        };
        let is_meta = self.group == "meta.k8s.io" && !version.is_empty();
        let form = match self.form {
            "" => Form::Object,
            "Table" if is_meta => Form::Table(version),
            "PartialObjectMetadata" if is_meta => Form::Partial(version),
            "PartialObjectMetadataList" if is_meta => Form::PartialList(version),
            _ => return None,
        };
        Some(Accept { encoding, form })
    }
}

/// A quality like `0.5`.
fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let whole: u32 = whole.parse().unwrap_or(1);
    (whole.min(1) * 1000 + digits.parse::<u32>().unwrap_or(0)).min(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_best_wishes_that_can_be_granted_is() {
        let cases = [
            (None, Encoding::Json, Form::Object),
            (Some("*/*"), Encoding::Json, Form::Object),
            (Some("application/json;charset=utf-8"), Encoding::Json, Form::Object),
            (Some("application/vnd.kubernetes.protobuf,application/json"), Encoding::Json, Form::Object),
            (Some("application/json;q=0.5,application/yaml;q=0.9"), Encoding::Yaml, Form::Object),
            (
                Some("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
                Encoding::Json,
                Form::Table("v1"),
            ),
            (
                Some("application/json;as=Table;v=v9;g=meta.k8s.io,application/json"),
                Encoding::Json,
                Form::Object,
            ),
            (
                Some("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
                Encoding::Json,
                Form::PartialList("v1"),
            ),
        ];
        for (header, encoding, form) in cases {
            assert_eq!(Accept::negotiate(header), Ok(Accept { encoding, form }), "{header:?}");
        }
    }

    #[test]
    fn what_cannot_be_offered_is_refused() {
        for header in
            ["text/html", "application/*", "APPLICATION/JSON", "application/json;as=Table;v=v9;g=meta.k8s.io"]
        {
            assert_eq!(Accept::negotiate(Some(header)).map_err(|status| status.code), Err(406), "{header}");
        }
    }
}

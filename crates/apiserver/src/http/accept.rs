//! Which form of an answer a client wants.

use crate::status::Status;

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accept {
    /// How it is written.
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
    /// Protobuf, for what is built in.
    Protobuf,
}

/// In which forms an answer can be had, beside JSON and YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offers {
    /// As protobuf.
    pub protobuf: bool,
    /// As a table.
    pub tables: bool,
    /// As a stream of events.
    pub streams: bool,
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
/// The same for what can be watched.
const OFFERED_STREAMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf, \
    application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

impl Accept {
    /// What is sent to a client that has no wish.
    pub(super) const PLAIN: Accept = Accept { encoding: Encoding::Json, form: Form::Object };

    /// The best of what a client accepts.
    pub(super) fn negotiate(header: Option<&str>, offers: Offers) -> Result<Accept, Status> {
        let Some(header) = header.filter(|header| !header.trim().is_empty()) else {
            return Ok(Accept::PLAIN);
        };
        let wishes = wishes(header);
        if let Some(accept) = wishes.iter().find_map(|wish| wish.granted(offers)) {
            return Ok(accept);
        }
        // A known type with a form that is not offered is told apart from an unknown type.
        if wishes.iter().any(|wish| wish.encoding().is_some()) {
            return Err(Status::not_acceptable(OFFERED));
        }
        Err(Status::nothing_acceptable(if offers.streams { OFFERED_STREAMS } else { OFFERED }))
    }
}

/// How a refusal is written: as the answer would have been, if its form is known at all. A refusal is no table.
pub(super) fn encoding_of_refusal(header: Option<&str>) -> Encoding {
    let wishes = wishes(header.unwrap_or_default());
    wishes.iter().filter(|wish| !wish.is_other_form).find_map(Wish::encoding).unwrap_or(Encoding::Json)
}

/// What a client accepts, the best first.
fn wishes(header: &str) -> Vec<Wish<'_>> {
    let mut wishes: Vec<Wish<'_>> = header.split(',').map(Wish::parse).collect();
    // The sort is stable: among equals the first counts.
    wishes.sort_by_key(|wish| std::cmp::Reverse(wish.quality));
    wishes
}

struct Wish<'a> {
    media_type: &'a str,
    form: &'a str,
    group: &'a str,
    version: &'a str,
    /// Whether something made of the objects is wanted, even if it is not said what.
    is_other_form: bool,
    /// In thousandths.
    quality: u32,
}

impl<'a> Wish<'a> {
    fn parse(text: &'a str) -> Wish<'a> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut wish =
            Wish { media_type, form: "", group: "", version: "", is_other_form: false, quality: 1000 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            wish.is_other_form |= matches!(name, "as" | "g" | "v");
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
            "application/vnd.kubernetes.protobuf" => Some(Encoding::Protobuf),
            _ => None,
        }
    }

    fn granted(&self, offers: Offers) -> Option<Accept> {
        let encoding = self.encoding()?;
        let version = match self.version {
            "v1" => "v1",
            "v1beta1" => "v1beta1",
            _ => "",
        };
        let is_meta = self.group == "meta.k8s.io" && !version.is_empty();
        let form = match self.form {
            "" if !self.is_other_form => Form::Object,
            "Table" if is_meta && offers.tables && encoding != Encoding::Protobuf => Form::Table(version),
            "PartialObjectMetadata" if is_meta => Form::Partial(version),
            "PartialObjectMetadataList" if is_meta => Form::PartialList(version),
            _ => return None,
        };
        // The metadata of whatever object can be had as protobuf.
        let is_known = encoding != Encoding::Protobuf || offers.protobuf || form != Form::Object;
        is_known.then_some(Accept { encoding, form })
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

    const ALL: Offers = Offers { protobuf: true, tables: true, streams: false };

    #[test]
    fn the_first_of_the_best_wishes_that_can_be_granted_is() {
        let cases = [
            (None, Encoding::Json, Form::Object),
            (Some("*/*"), Encoding::Json, Form::Object),
            (Some("application/json;charset=utf-8"), Encoding::Json, Form::Object),
            (Some("application/vnd.kubernetes.protobuf,application/json"), Encoding::Protobuf, Form::Object),
            (
                Some("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json"),
                Encoding::Json,
                Form::Object,
            ),
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
            assert_eq!(Accept::negotiate(header, ALL), Ok(Accept { encoding, form }), "{header:?}");
        }
    }

    #[test]
    fn a_refusal_is_written_as_the_objects_would_have_been() {
        let table = "application/yaml;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(encoding_of_refusal(Some(table)), Encoding::Json);
        assert_eq!(encoding_of_refusal(Some(&format!("{table},application/yaml"))), Encoding::Yaml);
        assert_eq!(encoding_of_refusal(Some("application/yaml;q=0.5")), Encoding::Yaml);
    }

    #[test]
    fn what_cannot_be_offered_is_refused() {
        for header in [
            "text/html",
            "application/*",
            "APPLICATION/JSON",
            "application/json;v=v1",
            "application/json;as=Table;v=v9;g=meta.k8s.io",
        ] {
            let refused = Accept::negotiate(Some(header), ALL).map_err(|status| status.code);
            assert_eq!(refused, Err(406), "{header}");
        }
    }

    #[test]
    fn custom_kinds_and_reviews_have_fewer_forms() {
        let custom = Offers { protobuf: false, tables: true, streams: false };
        let negotiate =
            |header, offers| Accept::negotiate(Some(header), offers).map(|accept| accept.encoding);
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(negotiate(both, custom), Ok(Encoding::Json));
        assert_eq!(negotiate("application/vnd.kubernetes.protobuf", custom).map_err(|s| s.code), Err(406));
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        assert_eq!(negotiate(metadata, custom), Ok(Encoding::Protobuf));
        let review = Offers { protobuf: true, tables: false, streams: false };
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(negotiate(table, review).map_err(|status| status.code), Err(406));
    }
}

//! Reading: one object, or a page of many.

use std::sync::Arc;

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine};
use krafla_api::Key;
use krafla_schema::json::Node;
use serde::{Deserialize, Serialize};

use super::Api;
use crate::registry::Resource;
use crate::selector::{FieldSelector, Filter};
use crate::status::Status;
use crate::store::{Entry, Snapshot};

/// Which page of which objects is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOptions {
    /// Which objects.
    pub filter: Filter,
    /// At most so many; zero for all.
    pub limit: usize,
    /// Where the last page ended.
    pub continue_token: Option<String>,
    /// As of when.
    pub revision: Option<u64>,
    /// How `revision` is meant.
    pub revision_match: Match,
}

/// How the revision of a list is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// At that revision or a later one.
    #[default]
    NotOlderThan,
    /// At exactly that revision.
    Exact,
}

/// A page of objects.
#[derive(Clone, Debug)]
pub struct Listing {
    /// When this was so.
    pub revision: u64,
    /// The objects, by namespace and name.
    pub items: Vec<Arc<Entry>>,
    /// How to get the next page, if there is one.
    pub continue_token: Option<String>,
    /// How many objects are on later pages, where that is known without looking.
    pub remaining: Option<usize>,
}

/// Where a page ended. Clients hand it back as they got it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Continue {
    /// In which form this is written.
    #[serde(rename = "v", default)]
    version: String,
    /// As of when; [`ANY_REVISION`] for whatever is there now.
    #[serde(rename = "rv", default)]
    revision: i64,
    /// `namespace/name` of the last object shown.
    #[serde(rename = "start", default)]
    last: String,
    /// When the first page was shown, in seconds; zero if nobody knows.
    #[serde(rename = "t", default)]
    since: i64,
}

/// How long the pages of a list can be had as of their beginning: as long as a cluster keeps old revisions. What stays the
/// same could be shown for longer, but clients must not come to rely on that.
const PAGES_SECONDS: i64 = 300;

impl Api {
    /// One object.
    pub fn get(&self, resource: &Resource, key: &Key) -> Result<Arc<Entry>, Status> {
        self.stored(resource, key)
    }

    /// One object in the version of the request.
    pub async fn get_shown(&self, resource: &Resource, key: &Key) -> Result<Arc<Entry>, Status> {
        let entry = self.stored(resource, key)?;
        self.shown(resource, entry).await
    }

    /// A page of objects in the version of the request.
    pub async fn list_shown(&self, resource: &Resource, options: &ListOptions) -> Result<Listing, Status> {
        if resource.versions_to_convert().is_none() {
            return self.list(resource, options);
        }
        if options.filter.fields.is_empty() {
            let listing = self.list(resource, options)?;
            return Ok(Listing { items: self.shown_all(resource, listing.items).await?, ..listing });
        }
        // Versions differ in their fields, so fields are compared when all objects are in the version of the request.
        let but_for_fields = Filter { fields: FieldSelector::default(), ..options.filter.clone() };
        let resumed = options.continue_token.as_deref().map(Continue::decode).transpose()?;
        let snapshot = self.snapshot_for(resource, options, resumed.as_ref())?;
        let matching = snapshot.range(options.filter.namespace.as_deref(), None);
        let matching = matching.filter(|entry| but_for_fields.matches(entry)).cloned().collect();
        let shown = self.shown_all(resource, matching).await?;
        let since = self.since(resumed.as_ref());
        Ok(page(snapshot.revision, options, resumed.as_ref(), since, shown.iter()))
    }

    /// A page of objects as they are stored.
    pub fn list(&self, resource: &Resource, options: &ListOptions) -> Result<Listing, Status> {
        let resumed = options.continue_token.as_deref().map(Continue::decode).transpose()?;
        let snapshot = self.snapshot_for(resource, options, resumed.as_ref())?;
        let since = self.since(resumed.as_ref());
        let all = snapshot.range(options.filter.namespace.as_deref(), None);
        Ok(page(snapshot.revision, options, resumed.as_ref(), since, all))
    }

    /// When the first page of a list was shown.
    fn since(&self, resumed: Option<&Continue>) -> i64 {
        match resumed {
            Some(resumed) if resumed.revision != ANY_REVISION => resumed.since,
            _ => self.env().now().0.as_second(),
        }
    }

    fn snapshot_for(
        &self,
        resource: &Resource,
        options: &ListOptions,
        resumed: Option<&Continue>,
    ) -> Result<Snapshot, Status> {
        let exact = match (resumed, options.revision_match, options.revision) {
            (Some(resumed), _, _) => u64::try_from(resumed.revision).ok(),
            (None, Match::Exact, Some(revision)) => Some(revision),
            (None, _, asked) => {
                self.check_reached(asked)?;
                None
            }
        };
        let Some(exact) = exact else { return Ok(self.store().snapshot(&resource.storage)) };
        self.check_reached(Some(exact))?;
        let age = resumed.map_or(0, |resumed| match resumed.since {
            0 => 0,
            since => self.env().now().0.as_second().saturating_sub(since),
        });
        let snapshot = self.store().snapshot_at(&resource.storage, exact);
        snapshot.filter(|_| age <= PAGES_SECONDS).ok_or_else(|| match resumed {
            Some(resumed) => {
                let rest = Continue { revision: ANY_REVISION, ..resumed.clone() };
                Status::page_expired(PAGE_EXPIRED, rest.encode())
            }
            None => Status::expired("The resourceVersion for the provided list is too old."),
        })
    }

    /// A client can know a revision that this server has not reached, if it talked to another one before.
    pub(crate) fn check_reached(&self, asked: Option<u64>) -> Result<(), Status> {
        let current = self.store().revision();
        match asked {
            Some(asked) if asked > current => Err(Status::revision_too_large(asked, current)),
            _ => Ok(()),
        }
    }
}

/// The page of `all` that is wanted.
fn page<'a>(
    revision: u64,
    options: &ListOptions,
    resumed: Option<&Continue>,
    since: i64,
    all: impl Iterator<Item = &'a Arc<Entry>>,
) -> Listing {
    let after = resumed.map(Continue::key);
    let mut matching: Vec<&Arc<Entry>> = all.filter(|entry| options.filter.matches(entry)).collect();
    // The store orders by namespace and name, a cluster by the text of both: they differ where one namespace's name
    // is the beginning of another's. Sorting what is nearly sorted costs little.
    matching.sort_by(|left, right| as_text(&left.key).cmp(as_text(&right.key)));
    let start =
        after.map_or(0, |after| matching.partition_point(|entry| as_text(&entry.key).le(as_text(&after))));
    let page = if options.limit == 0 { usize::MAX } else { options.limit };
    let items: Vec<Arc<Entry>> = matching.iter().skip(start).take(page).copied().cloned().collect();
    let rest = matching.len().saturating_sub(start).saturating_sub(items.len());
    let last = items.last().filter(|_| rest > 0);
    Listing {
        revision,
        continue_token: last.map(|last| Continue::after(revision, &last.key, since).encode()),
        // Upstream does not count what a selector would leave out.
        remaining: (rest > 0 && options.filter.is_unselective()).then_some(rest),
        items,
    }
}

/// `namespace/name`, letter by letter.
fn as_text(key: &Key) -> impl Iterator<Item = u8> + '_ {
    key.namespace.bytes().chain([b'/']).chain(key.name.bytes())
}

const PAGE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The revision of a token that goes on with whatever is there now.
const ANY_REVISION: i64 = -1;

/// Tokens are read even if their last character holds bits of nothing: what they say is checked anyway.
const TOKEN: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Continue {
    const VERSION: &str = "meta.k8s.io/v1";

    fn after(revision: u64, last: &Key, since: i64) -> Continue {
        Continue {
            version: Continue::VERSION.to_owned(),
            revision: i64::try_from(revision).unwrap_or(i64::MAX),
            last: format!("{}/{}", last.namespace, last.name),
            since,
        }
    }

    fn key(&self) -> Key {
        let (namespace, name) = self.last.split_once('/').unwrap_or_default();
        Key::new(namespace, name)
    }

    fn encode(&self) -> String {
        TOKEN.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(token: &str) -> Result<Continue, Status> {
        let bad = |why: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = TOKEN.decode(token).map_err(|_| {
            let is_strange = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
            let at = token.bytes().position(is_strange).unwrap_or(token.len() - token.len() % 4);
            bad(format!("illegal base64 data at input byte {at}"))
        })?;
        let token = Node::parse(&bytes).map_err(bad)?.into_value();
        let token: Continue = serde_json::from_value(token).map_err(|error| bad(error.to_string()))?;
        if token.version != Continue::VERSION {
            return Err(bad(format!("server does not recognize this encoded version {}", token.version)));
        }
        if token.revision == 0 {
            return Err(bad(format!("incorrect encoded start resourceVersion (version {})", token.version)));
        }
        if token.last.is_empty() {
            return Err(bad(format!("encoded start key empty (version {})", token.version)));
        }
        Ok(token)
    }
}

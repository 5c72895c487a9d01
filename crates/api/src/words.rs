//! Words that stand in JSON as strings: phases, actions, events.
//!
//! A word that a newer Volcano may add must survive a trip through this program, and decisions must still be exhaustive
//! matches. So each vocabulary is an enum with two extra variants: `Unset` for the empty string and for absence, and
//! `Other` for a word this program has never heard of.

/// Defines one vocabulary.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the variants are the words that users write")]
        pub enum $name {
            /// Nothing was written.
            #[default]
            Unset,
            $($(#[$doc])* $variant,)+
            /// A word newer than this program; it is kept as it is.
            Other(String),
        }

        impl $name {
            /// Every known word, in the order in which messages list them.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// As it stands in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $name::Unset => "",
                    $($name::$variant => $word,)+
                    $name::Other(word) => word,
                }
            }

            /// Whether nothing was written.
            pub fn is_unset(&self) -> bool {
                matches!(self, $name::Unset)
            }

            /// Whether the word is one that this program has never heard of.
            pub fn is_unknown_word(&self) -> bool {
                matches!(self, $name::Other(_))
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    "" => $name::Unset,
                    $($word => $name::$variant,)+
                    other => $name::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(word.as_deref().map($name::from).unwrap_or_default())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": $name::WORDS })
            }
        }
    };
}

pub(crate) use words;

//! Changes of a list, row by row, until the command is interrupted.

use std::sync::Arc;

use anyhow::Result;
use futures_util::stream::{StreamExt, select_all};
use krafla_api::Served;
use krafla_client::collection_path;

use super::rows::{self, Row};
use super::{Entry, Lister, Section, Sheet, Shown, TABLE, is_wanted, whole, written};
use crate::cli::target::Format;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::object_watch::{Change, changes};
use crate::resources::qualified;
use crate::screen::{self, print};

impl Lister<'_> {
    /// Prints changes after those of a sheet.
    pub(super) async fn watch(&self, section: &Section, sheet: Sheet) -> Result<()> {
        let name = match section.names.as_slice() {
            [] => None,
            [name] => Some(name.as_str()),
            _ => return Err(Failure::usage("--watch follows one object or all; fix: name one object").into()),
        };
        let shown = Shown {
            is_wide: self.args.output == Some(Format::Wide),
            has_namespace: self.args.all_namespaces,
            kind_in_name: None,
            has_header: false,
        };
        let width = screen::terminal_width();
        let rows: Vec<Vec<String>> = sheet.entries.iter().map(|entry| sheet.cells(entry, &shown)).collect();
        let layout = Layout::new(&sheet.headers(&shown), &rows, width);
        let watched = section.kinds.iter().filter(|of| sheet.revision(of).is_some());
        let streams = watched.map(|of| {
            let (client, path) = (self.connection.client.clone(), collection_path(&**of, self.namespace()));
            let accept = (!rows::has_own_columns(of)).then_some(TABLE);
            let revision = sheet.revision(of).unwrap_or_default().to_owned();
            let of = of.clone();
            changes(client, path, self.query(name), accept, revision)
                .map(move |change| (of.clone(), change))
                .boxed()
        });
        let mut changes = select_all(streams.collect::<Vec<_>>());
        while let Some((of, change)) = changes.next().await {
            let change = change.map_err(|error| self.connection.failure(error))?;
            let Some(row) = self.changed_row(&of, &change) else { continue };
            if is_wanted(&row, self.args.queue.as_deref(), &self.args.phase) {
                print(&self.changed_text(Entry { of, row }, &sheet, &shown, &layout, width.is_some()))?;
            }
        }
        Ok(())
    }

    fn changed_row(&self, of: &Arc<Served>, change: &Change) -> Option<Row> {
        let row = |json: &[u8]| {
            if rows::has_own_columns(of) {
                rows::own_row(of, json, self.making()).ok()
            } else {
                self.page(of, json).ok().and_then(|page| page.rows.into_iter().next())
            }
        };
        match change {
            Change::Put(json) => row(json),
            Change::Deleted(json) => row(json).map(|row| rows::deleted(of, row)),
            Change::Anew => None,
        }
    }

    fn changed_text(
        &self,
        entry: Entry,
        sheet: &Sheet,
        shown: &Shown,
        layout: &Layout,
        is_cut: bool,
    ) -> String {
        match self.args.output {
            Some(format @ (Format::Json | Format::Yaml)) => {
                let start = if format == Format::Yaml { "---\n" } else { "" };
                format!("{start}{}", written(&whole(&entry), Some(format)))
            }
            Some(Format::Name) => format!("{}\n", qualified(&entry.of, &entry.row.name)),
            None | Some(Format::Wide) => layout.line(&sheet.cells(&entry, shown), is_cut),
        }
    }
}

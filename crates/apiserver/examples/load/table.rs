//! What is printed in the end.

/// Rows of figures, one column for each server.
pub(crate) struct Table {
    other: Option<String>,
    is_other: bool,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    unit: &'static str,
    other: Option<f64>,
    ours: Option<f64>,
}

impl Table {
    /// An empty table. The other server, if there is one, comes first.
    pub(crate) fn new(other: Option<&str>) -> Self {
        Self { other: other.map(str::to_owned), is_other: other.is_some(), rows: Vec::new() }
    }

    /// Goes on to the embedded server.
    pub(crate) fn next_server(&mut self) {
        self.is_other = false;
    }

    /// Takes a figure, and says it at once: the whole takes minutes.
    pub(crate) fn add(&mut self, what: &str, unit: &'static str, figure: f64) {
        let who = if self.is_other { "other" } else { "krafla" };
        eprintln!("{who}: {what} {figure:.1} {unit}");
        let row = match self.rows.iter_mut().position(|row| row.what == what) {
            Some(at) => self.rows.get_mut(at),
            None => {
                self.rows.push(Row { what: what.to_owned(), unit, other: None, ours: None });
                self.rows.last_mut()
            }
        };
        let Some(row) = row else { return };
        *(if self.is_other { &mut row.other } else { &mut row.ours }) = Some(figure);
    }

    /// Prints everything.
    pub(crate) fn print(&self) {
        match &self.other {
            Some(other) => println!("\n{:<40} {:>12} {other:>24} {:>8}", "", "krafla", "ratio"),
            None => println!("\n{:<40} {:>12}", "", "krafla"),
        }
        for row in &self.rows {
            let show = |figure: Option<f64>| figure.map_or_else(String::new, |figure| format!("{figure:.1}"));
            let what = format!("{} ({})", row.what, row.unit);
            print!("{what:<40} {:>12}", show(row.ours));
            if self.other.is_some() {
                let ratio = row.ours.zip(row.other).map(|(ours, other)| ours / other);
                print!(
                    " {:>24} {:>8}",
                    show(row.other),
                    ratio.map_or_else(String::new, |r| format!("{r:.2}"))
                );
            }
            println!();
        }
    }
}

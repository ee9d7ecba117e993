//! The frame of a page: one HTML file that needs no other and asks nobody for anything.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The browser refuses anything from elsewhere.
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Where a page comes from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The command line that made it; empty if that is not known.
    pub command: String,
    /// Its figures as CSV, to be kept; empty if there are none.
    pub csv: String,
}

impl Source {
    fn render(&self) -> Markup {
        let csv = utf8_percent_encode(&self.csv, NON_ALPHANUMERIC);
        html! {
            @if !self.command.is_empty() { ", by " code { (self.command) } }
            @if !self.csv.is_empty() {
                ". " a download="hearth.csv" href={ "data:text/csv;charset=utf-8," (csv) } { "Its figures as CSV" }
            }
            ". The book explains the words: docs/measures.md, docs/concepts.md."
        }
    }
}

/// A page.
pub struct Page<'a> {
    /// What it is about, in the window's title.
    pub subject: &'a str,
    /// The same beside the name.
    pub heading: &'a str,
    /// What came out.
    pub summary: &'a str,
    /// What was done, in a line or two.
    pub about: Markup,
    /// What is missing, if results are.
    pub partial: Option<&'a str>,
    /// All the rest.
    pub body: Markup,
    /// On what it was made, after the program's name.
    pub made: &'a str,
    /// By what.
    pub source: &'a Source,
}

impl Page<'_> {
    /// The page as text.
    pub fn render(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(SECURITY);
                    meta name="generator" content={ "hearth " (env!("CARGO_PKG_VERSION")) };
                    title { (self.subject) " \u{b7} Hearth" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        b { "Hearth" }
                        span { (self.heading) }
                        button.script #theme type="button" { "Dark" }
                    }
                    main {
                        h1 { (self.summary) }
                        div.about { (self.about) }
                        @if let Some(missing) = self.partial { p.partial { "This is partial: " (missing) } }
                        (self.body)
                    }
                    footer { "Made by hearth " (env!("CARGO_PKG_VERSION")) " " (self.made) (self.source.render()) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_by_what_it_was_made_and_has_its_figures() {
        let page = |source: &Source| {
            let (text, none) = ("x", html! {});
            let (body, about) = (none.clone(), none);
            Page {
                subject: text,
                heading: text,
                summary: text,
                about,
                partial: None,
                body,
                made: "here",
                source,
            }
            .render()
        };
        let source = Source { command: "hearth compare <a>".into(), csv: "a,b\n1,\"2\"\n".into() };
        let made = page(&source);
        assert!(made.contains("here, by <code>hearth compare &lt;a&gt;</code>"), "{made}");
        assert!(made.contains("data:text/csv;charset=utf-8,a%2Cb%0A1%2C%222%22%0A\""), "{made}");
        assert!(!page(&Source::default()).contains("text/csv"));
    }
}

//! The frame of a page: one HTML file that needs no other and asks nobody for anything.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The browser refuses anything from elsewhere.
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

pub(super) struct Page<'a> {
    /// What it is about, in the window's title and beside the name.
    pub subject: &'a str,
    /// What came out.
    pub summary: &'a str,
    /// What was done, in a line or two.
    pub about: Markup,
    /// Whether results are missing.
    pub partial: bool,
    pub body: Markup,
}

impl Page<'_> {
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
                        span { (self.subject) }
                        button.script #theme type="button" { "Dark" }
                    }
                    main {
                        h1 { (self.summary) }
                        p.about { (self.about) }
                        @if self.partial { p.partial { "This is partial: some runs were not finished." } }
                        (self.body)
                    }
                    footer { "Made by hearth " (env!("CARGO_PKG_VERSION")) " on a simulated machine." }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

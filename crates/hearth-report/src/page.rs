//! The frame of a page: one HTML file that needs no other and asks nobody for anything.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The browser refuses anything from elsewhere.
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

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
                    footer { "Made by hearth " (env!("CARGO_PKG_VERSION")) " " (self.made) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

//! The attribute macro of `oarlock-sdk`.
//!
//! It reads token streams by hand, since it needs only the names of the functions in an `impl` block. A full Rust parser would
//! cost every plugin three crates and seconds of compile time.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Documented at its re-export in `oarlock_sdk`, where plugin authors look for it.
#[proc_macro_attribute]
pub fn slots(_arguments: TokenStream, input: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = input.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return error_tokens("`#[slots]` stands above an `impl` block");
    };
    if body.delimiter() != Delimiter::Brace || !tokens.iter().any(|token| token.to_string() == "impl") {
        return error_tokens("`#[slots]` stands above an `impl` block");
    }
    let names = function_names(body.stream());
    let list = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let constant = format!("const SLOTS: &'static [&'static str] = &[{list}];");
    let mut stream: TokenStream = constant.parse().expect("a constant of strings is valid Rust");
    stream.extend(body.stream());
    let mut group = Group::new(Delimiter::Brace, stream);
    group.set_span(body.span());
    tokens.push(TokenTree::Group(group));
    tokens.into_iter().collect()
}

/// The identifiers directly after `fn` in the block. Function bodies are groups, so nested functions are skipped.
fn function_names(body: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut after_fn = false;
    for token in body {
        if let TokenTree::Ident(word) = &token {
            let word = word.to_string();
            if after_fn {
                names.push(word.clone());
            }
            after_fn = word == "fn";
        } else {
            after_fn = false;
        }
    }
    names
}

fn error_tokens(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().expect("a call of compile_error is valid Rust")
}

//! Reads the text of a contract. Knows the grammar only; whether the contract makes sense is for `check`.

use crate::Error;
use crate::lexer::{Token, TokenKind, tokens};
use crate::model::{
    Callback, Constant, Contract, Direction, Field, Item, ItemKind, Member, Param, Slot, Stage, Table, Type,
};

pub(crate) fn parse(source: &str) -> Result<Contract, Error> {
    let mut parser = Parser { tokens: tokens(source)?, next: 0 };
    parser.docs();
    parser.expect_word("contract")?;
    let version = parser.word()?;
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| parser.error_before("a version such as `1.0`", format!("`{version}`")))?;
    let mut items = Vec::new();
    loop {
        let docs = parser.docs();
        if parser.peek() == &TokenKind::End {
            return Ok(Contract { major, minor, items });
        }
        items.push(parser.item(docs)?);
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn item(&mut self, docs: Vec<String>) -> Result<Item, Error> {
        let line = self.tokens[self.next].line;
        let stage = if self.accept_word("draft") {
            Stage::Draft
        } else if self.accept_word("trial") {
            Stage::Trial
        } else {
            Stage::Locked
        };
        let keyword = self.word()?;
        let name = self.word()?;
        let kind = match keyword.as_str() {
            "handle" => ItemKind::Handle,
            "enum" => ItemKind::Enum(self.constants()?),
            "flags" => {
                self.expect(':')?;
                let bits = match self.word()?.as_str() {
                    "u32" => 32,
                    "u64" => 64,
                    other => return Err(self.error_before("`u32` or `u64`", format!("`{other}`"))),
                };
                ItemKind::Flags(bits, self.constants()?)
            }
            "value" => ItemKind::Value(self.members()?),
            "struct" => ItemKind::Struct(self.members()?),
            "callback" => {
                let params = self.params()?;
                let fallible = self.accept('>');
                if fallible {
                    self.expect_word("error")?;
                }
                ItemKind::Callback(Callback { params, fallible })
            }
            "table" => {
                let profile =
                    if self.accept_word("profile") { Some((self.word()?, self.number()?)) } else { None };
                ItemKind::Table(Table { profile, members: self.members()? })
            }
            "rule" => {
                self.expect_word("by")?;
                ItemKind::Rule(self.word()?)
            }
            other => {
                let expected = "`handle`, `enum`, `flags`, `value`, `struct`, `callback`, `table` or `rule`, with or without `draft`";
                return Err(Error::new(line, expected, format!("`{other}`")));
            }
        };
        Ok(Item { docs, name, kind, stage, line })
    }

    fn constants(&mut self) -> Result<Vec<Constant>, Error> {
        self.block(|parser, docs| {
            let name = parser.word()?;
            parser.expect('=')?;
            let value = parser.number()?;
            Ok(Constant { docs, name, value, since: parser.since()? })
        })
    }

    fn members(&mut self) -> Result<Vec<Member>, Error> {
        self.block(|parser, docs| {
            let required = parser.accept_word("required");
            let optional = !required && parser.accept_word("optional");
            if parser.accept_word("fn") {
                return Ok(Member::Slot(parser.slot(docs, required)?));
            }
            if required || optional {
                return Err(parser.error_here("`fn`"));
            }
            let name = parser.word()?;
            parser.expect(':')?;
            let ty = parser.ty()?;
            Ok(Member::Field(Field { docs, name, ty, since: parser.since()? }))
        })
    }

    fn slot(&mut self, docs: Vec<String>, required: bool) -> Result<Slot, Error> {
        let name = self.word()?;
        let params = self.params()?;
        let default = if self.accept_word("default") { Some(self.text()?) } else { None };
        let spec = if self.accept_word("spec") { Some(self.word()?) } else { None };
        Ok(Slot { docs, name, required, default, spec, params, since: self.since()? })
    }

    fn params(&mut self) -> Result<Vec<Param>, Error> {
        self.expect('(')?;
        let mut params = Vec::new();
        while !self.accept(')') {
            let direction = if self.accept_word("in") {
                Direction::In
            } else if self.accept_word("out") {
                Direction::Out
            } else {
                Direction::Value
            };
            let name = self.word()?;
            self.expect(':')?;
            params.push(Param { name, ty: self.ty()?, direction });
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(params)
    }

    fn ty(&mut self) -> Result<Type, Error> {
        if self.accept('*') {
            if self.accept_word("void") {
                return Ok(Type::ReadOnlyPointer);
            }
            return Ok(Type::PointerTo(Box::new(self.ty()?)));
        }
        let word = self.word()?;
        Ok(match word.as_str() {
            "char" => Type::Number("char"),
            "u8" => Type::Number("u8"),
            "u32" => Type::Number("u32"),
            "u64" => Type::Number("u64"),
            "i32" => Type::Number("i32"),
            "i64" => Type::Number("i64"),
            "f64" => Type::Number("f64"),
            "ptr" => Type::Pointer,
            "bytes" => Type::Bytes,
            "list" => Type::List(Box::new(self.ty()?)),
            "callback" => Type::Callback(self.word()?),
            _ => Type::Named(word),
        })
    }

    fn since(&mut self) -> Result<u32, Error> {
        if !self.accept_word("since") {
            return Ok(0);
        }
        let version = self.word()?;
        version
            .split_once('.')
            .and_then(|(_, minor)| minor.parse().ok())
            .ok_or_else(|| self.error_before("a version such as `1.1`", format!("`{version}`")))
    }

    fn block<T>(
        &mut self,
        mut one: impl FnMut(&mut Self, Vec<String>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.expect('{')?;
        let mut all = Vec::new();
        loop {
            let docs = self.docs();
            if self.accept('}') {
                return Ok(all);
            }
            all.push(one(self, docs)?);
        }
    }

    fn docs(&mut self) -> Vec<String> {
        let mut docs = Vec::new();
        while let TokenKind::Doc(line) = self.peek() {
            docs.push(line.clone());
            self.next += 1;
        }
        docs
    }

    fn peek(&self) -> &TokenKind {
        &self.tokens[self.next].kind
    }

    fn word(&mut self) -> Result<String, Error> {
        match self.peek() {
            TokenKind::Word(word) => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.error_here("a name")),
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        match self.peek() {
            TokenKind::Text(text) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.error_here("quoted text")),
        }
    }

    fn number(&mut self) -> Result<u32, Error> {
        let word = self.word()?;
        word.parse().map_err(|_| self.error_before("a number", format!("`{word}`")))
    }

    fn accept(&mut self, mark: char) -> bool {
        let found = self.peek() == &TokenKind::Mark(mark);
        self.next += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Word(next) if next == word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), Error> {
        if self.accept(mark) { Ok(()) } else { Err(self.error_here(format!("`{mark}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.accept_word(word) { Ok(()) } else { Err(self.error_here(format!("`{word}`"))) }
    }

    fn error_here(&self, expected: impl Into<String>) -> Error {
        let token = &self.tokens[self.next];
        Error::new(token.line, expected, token.kind.to_string())
    }

    fn error_before(&self, expected: impl Into<String>, found: String) -> Error {
        Error::new(self.tokens[self.next - 1].line, expected, found)
    }
}

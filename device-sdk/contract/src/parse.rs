//! Parses the text of a contract. It knows the grammar only; `check` decides whether the contract makes sense.

use crate::ContractError;
use crate::lexer::{Token, TokenKind, tokenize};
use crate::model::{
    CallbackDefinition, ConstantDefinition, Contract, ContractItem, ContractType, FieldDefinition, ItemKind,
    ItemStage, MemberDefinition, ParameterDefinition, ParameterDirection, SlotDefinition, TableDefinition,
};

pub(crate) fn parse_contract(source: &str) -> Result<Contract, ContractError> {
    let mut parser = ContractParser { tokens: tokenize(source)?, next: 0 };
    parser.parse_docs();
    parser.expect_word("contract")?;
    let version = parser.parse_word()?;
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| parser.error_before("a version such as `1.0`", format!("`{version}`")))?;
    let mut items = Vec::new();
    loop {
        let docs = parser.parse_docs();
        if parser.peek() == &TokenKind::End {
            return Ok(Contract { major, minor, items });
        }
        items.push(parser.parse_item(docs)?);
    }
}

struct ContractParser {
    tokens: Vec<Token>,
    next: usize,
}

impl ContractParser {
    fn parse_item(&mut self, docs: Vec<String>) -> Result<ContractItem, ContractError> {
        let line = self.tokens[self.next].line;
        let stage = if self.accept_word("draft") {
            ItemStage::Draft
        } else if self.accept_word("trial") {
            ItemStage::Trial
        } else {
            ItemStage::Locked
        };
        let keyword = self.parse_word()?;
        let name = self.parse_word()?;
        let kind = match keyword.as_str() {
            "handle" => ItemKind::Handle,
            "enum" => ItemKind::Enum(self.parse_constants()?),
            "flags" => {
                self.expect_mark(':')?;
                let bits = match self.parse_word()?.as_str() {
                    "u32" => 32,
                    "u64" => 64,
                    other => return Err(self.error_before("`u32` or `u64`", format!("`{other}`"))),
                };
                ItemKind::Flags(bits, self.parse_constants()?)
            }
            "value" => ItemKind::Value(self.parse_members()?),
            "struct" => ItemKind::Struct(self.parse_members()?),
            "callback" => {
                let params = self.parse_params()?;
                let fallible = self.accept_mark('>');
                if fallible {
                    self.expect_word("error")?;
                }
                ItemKind::Callback(CallbackDefinition { params, fallible })
            }
            "table" => {
                let profile = if self.accept_word("profile") {
                    Some((self.parse_word()?, self.parse_number()?))
                } else {
                    None
                };
                ItemKind::Table(TableDefinition { profile, members: self.parse_members()? })
            }
            "rule" => {
                self.expect_word("by")?;
                ItemKind::Rule(self.parse_word()?)
            }
            other => {
                let expected = "`handle`, `enum`, `flags`, `value`, `struct`, `callback`, `table` or `rule`, with or without `draft`";
                return Err(ContractError::new(line, expected, format!("`{other}`")));
            }
        };
        Ok(ContractItem { docs, name, kind, stage, line })
    }

    fn parse_constants(&mut self) -> Result<Vec<ConstantDefinition>, ContractError> {
        self.parse_block(|parser, docs| {
            let name = parser.parse_word()?;
            parser.expect_mark('=')?;
            let value = parser.parse_number()?;
            Ok(ConstantDefinition { docs, name, value, since: parser.parse_since()? })
        })
    }

    fn parse_members(&mut self) -> Result<Vec<MemberDefinition>, ContractError> {
        self.parse_block(|parser, docs| {
            let required = parser.accept_word("required");
            let optional = !required && parser.accept_word("optional");
            if parser.accept_word("fn") {
                return Ok(MemberDefinition::Slot(parser.parse_slot(docs, required)?));
            }
            if required || optional {
                return Err(parser.error_here("`fn`"));
            }
            let name = parser.parse_word()?;
            parser.expect_mark(':')?;
            let ty = parser.parse_type()?;
            Ok(MemberDefinition::Field(FieldDefinition { docs, name, ty, since: parser.parse_since()? }))
        })
    }

    fn parse_slot(&mut self, docs: Vec<String>, required: bool) -> Result<SlotDefinition, ContractError> {
        let name = self.parse_word()?;
        let params = self.parse_params()?;
        let default = if self.accept_word("default") { Some(self.parse_text()?) } else { None };
        let spec = if self.accept_word("spec") { Some(self.parse_word()?) } else { None };
        Ok(SlotDefinition { docs, name, required, default, spec, params, since: self.parse_since()? })
    }

    fn parse_params(&mut self) -> Result<Vec<ParameterDefinition>, ContractError> {
        self.expect_mark('(')?;
        let mut params = Vec::new();
        while !self.accept_mark(')') {
            let direction = if self.accept_word("in") {
                ParameterDirection::In
            } else if self.accept_word("out") {
                ParameterDirection::Out
            } else {
                ParameterDirection::Value
            };
            let name = self.parse_word()?;
            self.expect_mark(':')?;
            params.push(ParameterDefinition { name, ty: self.parse_type()?, direction });
            if !self.accept_mark(',') {
                self.expect_mark(')')?;
                break;
            }
        }
        Ok(params)
    }

    fn parse_type(&mut self) -> Result<ContractType, ContractError> {
        if self.accept_mark('*') {
            if self.accept_word("void") {
                return Ok(ContractType::ReadOnlyPointer);
            }
            return Ok(ContractType::PointerTo(Box::new(self.parse_type()?)));
        }
        let word = self.parse_word()?;
        Ok(match word.as_str() {
            "char" => ContractType::Number("char"),
            "u8" => ContractType::Number("u8"),
            "u32" => ContractType::Number("u32"),
            "u64" => ContractType::Number("u64"),
            "i32" => ContractType::Number("i32"),
            "i64" => ContractType::Number("i64"),
            "f64" => ContractType::Number("f64"),
            "ptr" => ContractType::Pointer,
            "bytes" => ContractType::Bytes,
            "list" => ContractType::List(Box::new(self.parse_type()?)),
            "callback" => ContractType::Callback(self.parse_word()?),
            _ => ContractType::Named(word),
        })
    }

    fn parse_since(&mut self) -> Result<u32, ContractError> {
        if !self.accept_word("since") {
            return Ok(0);
        }
        let version = self.parse_word()?;
        version
            .split_once('.')
            .and_then(|(_, minor)| minor.parse().ok())
            .ok_or_else(|| self.error_before("a version such as `1.1`", format!("`{version}`")))
    }

    fn parse_block<T>(
        &mut self,
        mut one: impl FnMut(&mut Self, Vec<String>) -> Result<T, ContractError>,
    ) -> Result<Vec<T>, ContractError> {
        self.expect_mark('{')?;
        let mut all = Vec::new();
        loop {
            let docs = self.parse_docs();
            if self.accept_mark('}') {
                return Ok(all);
            }
            all.push(one(self, docs)?);
        }
    }

    fn parse_docs(&mut self) -> Vec<String> {
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

    fn parse_word(&mut self) -> Result<String, ContractError> {
        match self.peek() {
            TokenKind::Word(word) => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.error_here("a name")),
        }
    }

    fn parse_text(&mut self) -> Result<String, ContractError> {
        match self.peek() {
            TokenKind::Text(text) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.error_here("quoted text")),
        }
    }

    fn parse_number(&mut self) -> Result<u32, ContractError> {
        let word = self.parse_word()?;
        word.parse().map_err(|_| self.error_before("a number", format!("`{word}`")))
    }

    fn accept_mark(&mut self, mark: char) -> bool {
        let found = self.peek() == &TokenKind::Mark(mark);
        self.next += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Word(next) if next == word);
        self.next += usize::from(found);
        found
    }

    fn expect_mark(&mut self, mark: char) -> Result<(), ContractError> {
        if self.accept_mark(mark) { Ok(()) } else { Err(self.error_here(format!("`{mark}`"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), ContractError> {
        if self.accept_word(word) { Ok(()) } else { Err(self.error_here(format!("`{word}`"))) }
    }

    fn error_here(&self, expected: impl Into<String>) -> ContractError {
        let token = &self.tokens[self.next];
        ContractError::new(token.line, expected, token.kind.to_string())
    }

    fn error_before(&self, expected: impl Into<String>, found: String) -> ContractError {
        ContractError::new(self.tokens[self.next - 1].line, expected, found)
    }
}

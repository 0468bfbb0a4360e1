//! Protobuf messages as trees of fields, mutated without knowing their meaning. The result is still a message, so the decoder
//! alone does not reject it.

/// Nesting limit of messages.
const MAX_DEPTH: usize = 24;
/// Numbers with a meaning somewhere, or at a boundary.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    7,
    8,
    16,
    64,
    127,
    u64::MAX,
    u64::MAX - 1,
    1 << 31,
    (1 << 31) - 1,
    1 << 32,
    1 << 62,
    i64::MAX as u64,
];

/// A deterministic pseudo-random generator.
pub(crate) struct PseudoRandom(u64);

impl PseudoRandom {
    pub(crate) fn new(seed: u32) -> Self {
        Self((u64::from(seed) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }

    /// Pseudo-random bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// Mutates the message in an input and returns the new size. The message starts after the first byte; if it is not a message,
/// the whole input is mutated. `rest` returns the number of unrelated bytes after a message of a given size.
pub(crate) fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    rest: impl Fn(usize) -> usize,
    seed: u32,
) -> usize {
    let mut random = PseudoRandom::new(seed);
    let end = (1..=size).find(|end| end + rest(end - 1) >= size).unwrap_or(size);
    let made = if random.below(8) == 0 { None } else { changed(&data[1..end], &mut random) };
    match made.filter(|made| 1 + made.len() + rest(made.len()) <= max_size) {
        Some(made) => {
            let mut other = data[end..size].to_vec();
            other.resize(rest(made.len()), 0);
            let whole = [made, other].concat();
            data[1..=whole.len()].copy_from_slice(&whole);
            1 + whole.len()
        }
        None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
}

#[derive(Clone)]
enum Content {
    Number(u64),
    /// Four or eight bytes.
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

#[derive(Clone)]
struct Field {
    number: u64,
    content: Content,
}

/// The path to a field: its index in each list of fields on the way.
type Place = Vec<usize>;

/// A mutated message, or `None` if the bytes are not a message.
pub(crate) fn changed(bytes: &[u8], random: &mut PseudoRandom) -> Option<Vec<u8>> {
    let mut fields = read(bytes, 0)?;
    for _ in 0..1 + random.below(4) {
        change(&mut fields, random);
    }
    Some(written(&fields))
}

/// A message with some fields replaced by those of another, each within a message of the same kind.
pub(crate) fn crossed(into: &[u8], from: &[u8], random: &mut PseudoRandom) -> Option<Vec<u8>> {
    let (mut fields, other) = (read(into, 0)?, read(from, 0)?);
    let (theirs, ours) = (places(&other), places(&fields));
    for _ in 0..1 + random.below(4) {
        let taken = theirs.get(random.below(theirs.len()))?;
        let kind = kind_of(&other, taken);
        let fitting: Vec<&Place> = ours.iter().filter(|place| kind_of(&fields, place) == kind).collect();
        let Some(place) = fitting.get(random.below(fitting.len())) else { continue };
        let field = at(&other, taken).clone();
        // An insertion before it may have moved this field.
        let Some(list) = list_of(&mut fields, place) else { continue };
        let index = place[place.len() - 1].min(list.len());
        match list.get_mut(index) {
            Some(old) if random.below(2) == 0 => *old = field,
            _ => list.insert(index, field),
        }
    }
    Some(written(&fields))
}

fn change(fields: &mut Vec<Field>, random: &mut PseudoRandom) {
    let all = places(fields);
    let Some(place) = all.get(random.below(all.len())) else { return };
    let kind = kind_of(fields, place);
    let alike: Vec<&Place> = all.iter().filter(|other| kind_of(fields, other) == kind).collect();
    let other = at(fields, alike[random.below(alike.len())]).clone();
    let index = place[place.len() - 1];
    let Some(list) = list_of(fields, place) else { return };
    match random.below(12) {
        0 => _ = list.remove(index),
        1 => list.insert(index, other),
        2 => {
            let with = random.below(list.len());
            list.swap(index, with);
        }
        3 | 4 => list[index] = other,
        5 => list[index].number = 1 + random.below(16) as u64,
        _ => change_content(&mut list[index].content, random),
    }
}

fn change_content(content: &mut Content, random: &mut PseudoRandom) {
    match content {
        Content::Number(number) => {
            *number = match random.below(3) {
                0 => number.wrapping_add(random.below(5) as u64).wrapping_sub(2),
                _ => NUMBERS[random.below(NUMBERS.len())],
            };
        }
        Content::Fixed(bytes) => {
            let size = bytes.len();
            libfuzzer_sys::fuzzer_mutate(bytes, size, size);
        }
        Content::Bytes(bytes) => {
            let (size, most) = (bytes.len(), bytes.len() + 16);
            bytes.resize(most, 0);
            let size = libfuzzer_sys::fuzzer_mutate(bytes, size, most);
            bytes.truncate(size);
        }
        // Fields inside have their own turns.
        Content::Message(fields) => fields.truncate(random.below(fields.len() + 1)),
    }
}

/// Paths of all fields, outer ones first.
fn places(fields: &[Field]) -> Vec<Place> {
    fn walk(fields: &[Field], above: &Place, all: &mut Vec<Place>) {
        for (index, field) in fields.iter().enumerate() {
            let place = [above.as_slice(), &[index]].concat();
            all.push(place.clone());
            if let Content::Message(inner) = &field.content {
                walk(inner, &place, all);
            }
        }
    }
    let mut all = Vec::new();
    walk(fields, &Vec::new(), &mut all);
    all
}

/// The field numbers on the path to a field: fields with equal numbers mean the same.
fn kind_of(fields: &[Field], place: &[usize]) -> Vec<u64> {
    let mut list = fields;
    let number = |index: &usize| {
        let field = list.get(*index)?;
        list = if let Content::Message(inner) = &field.content { inner } else { &[] };
        Some(field.number)
    };
    place.iter().map_while(number).collect()
}

fn at<'a>(fields: &'a [Field], place: &[usize]) -> &'a Field {
    match (&fields[place[0]], &place[1..]) {
        (field, []) => field,
        (Field { content: Content::Message(inner), .. }, rest) => at(inner, rest),
        (field, _) => field,
    }
}

/// The list that contains a field.
fn list_of<'a>(fields: &'a mut Vec<Field>, place: &[usize]) -> Option<&'a mut Vec<Field>> {
    match place {
        [] => None,
        [_] => Some(fields),
        [index, rest @ ..] => match &mut fields.get_mut(*index)?.content {
            Content::Message(inner) => list_of(inner, rest),
            _ => None,
        },
    }
}

/// Parses the fields of a message. Bytes that could be a message are treated as one, unless they are text.
fn read(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = read_number(&mut bytes)?;
        let content = match tag & 7 {
            0 => Content::Number(read_number(&mut bytes)?),
            1 => Content::Fixed(bytes.split_off(..8)?.to_vec()),
            5 => Content::Fixed(bytes.split_off(..4)?.to_vec()),
            2 => {
                let size = usize::try_from(read_number(&mut bytes)?).ok()?;
                let inner = bytes.split_off(..size)?;
                let is_text = inner.iter().all(|byte| (b' '..=b'~').contains(byte));
                let message = if is_text || depth == MAX_DEPTH { None } else { read(inner, depth + 1) };
                message.map_or_else(|| Content::Bytes(inner.to_vec()), Content::Message)
            }
            _ => return None,
        };
        fields.push(Field { number: (tag >> 3).max(1), content });
    }
    Some(fields)
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn written(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        let mut tag = |kind| write_number(&mut bytes, field.number << 3 | kind);
        match &field.content {
            Content::Number(number) => {
                tag(0);
                write_number(&mut bytes, *number);
            }
            Content::Fixed(fixed) => {
                tag(if fixed.len() == 8 { 1 } else { 5 });
                bytes.extend(fixed);
            }
            Content::Bytes(content) => {
                tag(2);
                write_number(&mut bytes, content.len() as u64);
                bytes.extend(content);
            }
            Content::Message(inner) => {
                tag(2);
                let inner = written(inner);
                write_number(&mut bytes, inner.len() as u64);
                bytes.extend(inner);
            }
        }
    }
    bytes
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

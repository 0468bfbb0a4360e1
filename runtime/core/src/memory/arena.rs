//! The books of a pool: which chunks it has, and which pieces of them are held, free or not yet free.
//!
//! A chunk is what was taken of the device; a piece is a part of one. Pieces of a chunk know their neighbours, so that
//! free ones grow together again. A free piece belongs to the stream that used it last: for that stream it is free at
//! once, for all others when the stream is past its last use, which makes it everybody's. Nothing here calls a device.

use std::collections::HashMap;

use crate::memory::bins::Bins;
use crate::stream::Label;

/// No piece.
pub(super) const NONE: u32 = u32::MAX;
/// The owner of pieces that everybody may use.
const EVERYBODY: u32 = 0;
/// The count of a free piece of a stream whose last use is not dated yet.
const UNDATED: u64 = u64::MAX;
/// A rest of a large piece that is smaller than this is not worth a life of its own.
const SMALLEST_LARGE_REST: u64 = 1 << 20;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Many small pieces, or pieces of every size where small ones are not kept apart.
    Shared = 0,
    /// Few large pieces.
    Large = 1,
    /// One request, given back to the device with it.
    Straight = 2,
}

/// What a piece is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is no piece; its place can be used for one.
    Vacant,
    Free,
    Held,
    /// Given back, while streams still work on it.
    Cooling,
}

/// A part of a chunk.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) size: u64,
    /// The previous and the next free piece of the same list; for vacant places the second is the next vacant one.
    pub(super) links: [u32; 2],
    offset: u64,
    /// The pieces before and after it in its chunk.
    neighbours: [u32; 2],
    chunk: u32,
    /// The stream that used it last, or uses it.
    owner: u32,
    /// How many launches its stream had when it was let go, once anybody else asked for it.
    date: u64,
    label: Label,
    state: State,
}

#[derive(Debug)]
struct Chunk<B> {
    block: B,
    size: u64,
    kind: Kind,
}

/// A piece as the program gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) piece: u32,
    pub(super) chunk: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// All chunks and pieces of a pool. `B` is what the device gave for a chunk.
#[derive(Debug)]
pub(super) struct Arena<B> {
    unit: u64,
    pieces: Vec<Piece>,
    vacant: u32,
    chunks: Vec<Option<Chunk<B>>>,
    /// The free pieces of each owner and kind.
    bins: Vec<[Bins; 2]>,
}

impl<B> Arena<B> {
    pub(super) fn new(unit: u64) -> Self {
        Self {
            unit,
            pieces: Vec::new(),
            vacant: NONE,
            chunks: Vec::new(),
            bins: vec![[Bins::new(), Bins::new()]],
        }
    }

    /// What the device gave for a chunk.
    pub(super) fn block(&self, chunk: u32) -> Option<&B> {
        self.chunks.get(chunk as usize)?.as_ref().map(|chunk| &chunk.block)
    }

    /// Takes a free piece of `size` bytes, a multiple of the unit, that the stream may use now.
    pub(super) fn take(&mut self, size: u64, owner: u32, kind: Kind, label: Label) -> Option<Place> {
        let units = size / self.unit;
        let mine = self.bins.get(owner as usize).filter(|_| owner != EVERYBODY);
        let index = mine
            .and_then(|bins| bins[kind as usize].find(&self.pieces, size, units))
            .or_else(|| self.bins[EVERYBODY as usize][kind as usize].find(&self.pieces, size, units))?;
        self.unlink(index, kind);
        self.cut(index, size, kind);
        Some(self.hold(index, owner, label))
    }

    /// Adds a chunk and takes a piece of `size` bytes of it.
    pub(super) fn add(
        &mut self,
        block: B,
        chunk_size: u64,
        kind: Kind,
        size: u64,
        owner: u32,
        label: Label,
    ) -> Place {
        let chunk = Some(Chunk { block, size: chunk_size, kind });
        let free = self.chunks.iter().position(Option::is_none);
        let number = free.unwrap_or(self.chunks.len());
        match free {
            Some(number) => self.chunks[number] = chunk,
            None => self.chunks.push(chunk),
        }
        let index = self.new_piece(Piece {
            size: chunk_size,
            links: [NONE; 2],
            offset: 0,
            neighbours: [NONE; 2],
            chunk: number as u32,
            owner: EVERYBODY,
            date: UNDATED,
            label,
            state: State::Free,
        });
        self.cut(index, size, kind);
        self.hold(index, owner, label)
    }

    /// Gives a held piece back; it is free for its stream at once. For a piece that went straight to the device, its
    /// block comes back.
    pub(super) fn release(&mut self, index: u32) -> Option<(B, u64)> {
        let piece = &mut self.pieces[index as usize];
        let chunk = piece.chunk;
        piece.state = State::Free;
        piece.date = UNDATED;
        match self.kind(chunk) {
            Kind::Straight => self.remove_chunk(index),
            kind => {
                self.free(index, kind);
                None
            }
        }
    }

    /// Notes that a held piece was given back while streams still work on it; [`Arena::release`] ends that.
    pub(super) fn cool(&mut self, index: u32) {
        self.pieces[index as usize].state = State::Cooling;
    }

    pub(super) fn size_of(&self, index: u32) -> u64 {
        self.pieces[index as usize].size
    }

    /// Whether the piece went straight to the device.
    pub(super) fn is_straight(&self, index: u32) -> bool {
        self.kind(self.pieces[index as usize].chunk) == Kind::Straight
    }

    /// Dates the free pieces of streams: whoever is past the streams' present counts is past their last use.
    pub(super) fn date(&mut self, positions: &[u64]) {
        for piece in &mut self.pieces {
            if piece.state == State::Free
                && piece.owner != EVERYBODY
                && piece.date == UNDATED
                && let Some(position) = positions.get(piece.owner as usize)
            {
                piece.date = *position;
            }
        }
    }

    /// Makes the pieces everybody's whose streams are past their last use.
    pub(super) fn settle(&mut self, passed: &[u64]) {
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let is_past = piece.date != UNDATED
                && passed.get(piece.owner as usize).is_some_and(|passed| *passed >= piece.date);
            if piece.state == State::Free && piece.owner != EVERYBODY && is_past {
                let kind = self.kind(piece.chunk);
                self.unlink(index as u32, kind);
                self.pieces[index].owner = EVERYBODY;
                self.pieces[index].date = UNDATED;
                self.free(index as u32, kind);
            }
        }
    }

    /// Takes out the chunks that nobody uses, with their sizes.
    pub(super) fn take_unused(&mut self) -> Vec<(B, u64)> {
        let mut unused = Vec::new();
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let is_whole = piece.state == State::Free && piece.neighbours == [NONE; 2];
            if is_whole && piece.owner == EVERYBODY {
                let kind = self.kind(piece.chunk);
                self.unlink(index as u32, kind);
                unused.extend(self.remove_chunk(index as u32));
            }
        }
        unused
    }

    /// The largest piece that the stream could have now.
    pub(super) fn largest_free(&self, owner: u32) -> u64 {
        let usable = |piece: &&Piece| piece.state == State::Free && [EVERYBODY, owner].contains(&piece.owner);
        self.pieces.iter().filter(usable).map(|piece| piece.size).max().unwrap_or(0)
    }

    /// Who holds how many bytes in how many pieces.
    pub(super) fn holders(&self) -> HashMap<Label, (u64, u64)> {
        let mut holders = HashMap::new();
        for piece in self.pieces.iter().filter(|piece| piece.state == State::Held) {
            let (bytes, count) = holders.entry(piece.label).or_insert((0, 0));
            *bytes += piece.size;
            *count += 1;
        }
        holders
    }

    fn kind(&self, chunk: u32) -> Kind {
        self.chunks[chunk as usize].as_ref().map_or(Kind::Straight, |chunk| chunk.kind)
    }

    fn hold(&mut self, index: u32, owner: u32, label: Label) -> Place {
        let piece = &mut self.pieces[index as usize];
        piece.state = State::Held;
        piece.owner = owner;
        piece.label = label;
        Place { piece: index, chunk: piece.chunk, offset: piece.offset, size: piece.size }
    }

    /// Cuts what is more than `size` off a piece that is in no list, where that is worth it.
    fn cut(&mut self, index: u32, size: u64, kind: Kind) {
        let piece = &self.pieces[index as usize];
        let rest = piece.size - size;
        let worth = if kind == Kind::Large { SMALLEST_LARGE_REST } else { self.unit };
        if rest < worth || kind == Kind::Straight {
            return;
        }
        let after = piece.neighbours[1];
        let piece = Piece {
            size: rest,
            links: [NONE; 2],
            offset: piece.offset + size,
            neighbours: [index, after],
            ..*piece
        };
        let owner = piece.owner as usize;
        let cut = self.new_piece(Piece { state: State::Free, ..piece });
        self.pieces[index as usize].size = size;
        self.pieces[index as usize].neighbours[1] = cut;
        if after != NONE {
            self.pieces[after as usize].neighbours[0] = cut;
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, cut, rest / self.unit);
    }

    /// Lets a piece that is free and in no list grow together with its free neighbours, and puts it into a list.
    fn free(&mut self, index: u32, kind: Kind) {
        let mut index = index;
        let [before, after] = self.pieces[index as usize].neighbours;
        if self.can_join(index, after) {
            self.unlink(after, kind);
            self.join(index, after);
        }
        if self.can_join(index, before) {
            self.unlink(before, kind);
            self.join(before, index);
            index = before;
        }
        let piece = &self.pieces[index as usize];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        while self.bins.len() <= owner {
            self.bins.push([Bins::new(), Bins::new()]);
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, index, units);
    }

    fn can_join(&self, index: u32, other: u32) -> bool {
        other != NONE
            && self.pieces[other as usize].state == State::Free
            && self.pieces[other as usize].owner == self.pieces[index as usize].owner
    }

    /// Makes one piece of two neighbours that are in no list.
    fn join(&mut self, first: u32, second: u32) {
        let Piece { size, neighbours: [_, after], .. } = self.pieces[second as usize];
        let joined = &mut self.pieces[first as usize];
        joined.size += size;
        joined.neighbours[1] = after;
        joined.date = UNDATED;
        if after != NONE {
            self.pieces[after as usize].neighbours[0] = first;
        }
        self.vacate(second);
    }

    fn unlink(&mut self, index: u32, kind: Kind) {
        let piece = &self.pieces[index as usize];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        self.bins[owner][kind as usize].remove(&mut self.pieces, index, units);
    }

    fn remove_chunk(&mut self, index: u32) -> Option<(B, u64)> {
        let chunk = self.pieces[index as usize].chunk;
        self.vacate(index);
        self.chunks[chunk as usize].take().map(|chunk| (chunk.block, chunk.size))
    }

    fn vacate(&mut self, index: u32) {
        self.pieces[index as usize].state = State::Vacant;
        self.pieces[index as usize].links[1] = self.vacant;
        self.vacant = index;
    }

    fn new_piece(&mut self, piece: Piece) -> u32 {
        let index = self.vacant;
        if index == NONE {
            self.pieces.push(piece);
            return (self.pieces.len() - 1) as u32;
        }
        self.vacant = self.pieces[index as usize].links[1];
        self.pieces[index as usize] = piece;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 64;

    fn label() -> Label {
        Label::from("test")
    }

    fn arena() -> Arena<()> {
        Arena::new(UNIT)
    }

    #[test]
    fn pieces_that_are_released_in_any_order_grow_together_to_the_whole_chunk() {
        let mut arena = arena();
        let first = arena.add((), 100 * UNIT, Kind::Shared, UNIT, 0, label());
        let mut held = vec![first];
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..10_000 {
            if draw(2) == 0 || held.is_empty() {
                held.extend(arena.take((1 + draw(20)) * UNIT, 0, Kind::Shared, label()));
            } else {
                let place = held.swap_remove(draw(held.len() as u64) as usize);
                assert!(arena.release(place.piece).is_none());
            }
            let mut ranges: Vec<(u64, u64)> =
                held.iter().map(|place| (place.offset, place.offset + place.size)).collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "pieces overlap: {ranges:?}");
        }
        for place in held {
            arena.release(place.piece);
        }
        assert_eq!((arena.largest_free(0), arena.take_unused().len()), (100 * UNIT, 1));
        assert!(arena.take(UNIT, 0, Kind::Shared, label()).is_none());
    }

    #[test]
    fn a_piece_of_a_stream_is_everybodys_once_the_stream_is_past_its_date() {
        let mut arena = arena();
        let held = arena.add((), 4 * UNIT, Kind::Shared, 4 * UNIT, 2, label());
        arena.release(held.piece);
        arena.settle(&[0, 0, 9]);
        assert!(arena.take(UNIT, 0, Kind::Shared, label()).is_none(), "it has no date yet");
        arena.date(&[0, 0, 7]);
        arena.settle(&[0, 0, 6]);
        assert!(arena.take(UNIT, 1, Kind::Shared, label()).is_none(), "the stream is not past it");
        assert!(arena.take_unused().is_empty());
        arena.settle(&[0, 0, 7]);
        assert!(arena.take(4 * UNIT, 1, Kind::Shared, label()).is_some());
    }

    #[test]
    fn what_a_stream_lets_go_again_needs_a_new_date() {
        let mut arena = arena();
        let held = arena.add((), 4 * UNIT, Kind::Shared, 4 * UNIT, 1, label());
        arena.release(held.piece);
        arena.date(&[0, 5]);
        let again = arena.take(UNIT, 1, Kind::Shared, label()).unwrap();
        arena.release(again.piece);
        arena.settle(&[0, 5]);
        assert!(arena.take(UNIT, 0, Kind::Shared, label()).is_none());
    }

    #[test]
    fn large_pieces_are_only_cut_where_the_rest_is_large_too() {
        let mut arena = arena();
        let held = arena.add((), 4 << 20, Kind::Large, (3 << 20) + UNIT, 0, label());
        assert_eq!(held.size, 4 << 20);
        let held = arena.add((), 4 << 20, Kind::Large, 3 << 20, 0, label());
        assert_eq!(held.size, 3 << 20);
    }

    #[test]
    fn what_went_straight_to_the_device_comes_back_at_once() {
        let mut arena = arena();
        let held = arena.add((), 4 * UNIT, Kind::Straight, 4 * UNIT, 0, label());
        assert!(arena.is_straight(held.piece));
        assert_eq!(arena.release(held.piece), Some(((), 4 * UNIT)));
        assert!(arena.block(held.chunk).is_none());
    }
}

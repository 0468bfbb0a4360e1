//! The books of a pool: which chunks it has, and which pieces of them are held, free or not yet free.
//!
//! A chunk is what was taken of the device; a piece is a part of one. Pieces of a chunk know their neighbours, so that
//! free ones grow together again. A free piece belongs to the stream that used it last: for that stream it is free at
//! once, for all others when the stream is past its last use, which makes it everybody's. Nothing here calls a device.

mod pieces;
mod recent;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub(super) use self::pieces::{NONE, Pieces};
use self::pieces::{Piece, State};
use self::recent::Recent;
use crate::memory::bins::Bins;
use crate::stream::Label;

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
    pieces: Pieces,
    chunks: Vec<Option<Chunk<B>>>,
    /// The free pieces of each owner and kind.
    bins: Vec<[Bins; 2]>,
    /// Shared pieces of everybody that are not in the bins yet.
    recent: Recent,
}

impl<B> Arena<B> {
    pub(super) fn new(unit: u64) -> Self {
        Self {
            unit,
            pieces: Pieces::new(),
            chunks: Vec::new(),
            bins: vec![[Bins::new(), Bins::new()]],
            recent: Recent::new(),
        }
    }

    /// What the device gave for a chunk.
    pub(super) fn block(&self, chunk: u32) -> Option<&B> {
        self.chunks.get(chunk as usize)?.as_ref().map(|chunk| &chunk.block)
    }

    /// Takes a free piece of `size` bytes, a multiple of the unit, that the stream may use now.
    #[inline]
    pub(super) fn take(&mut self, size: u64, owner: u32, kind: Kind, label: Label) -> Option<Place> {
        let recent = if kind == Kind::Shared { self.recent.take(size) } else { None };
        let index = match recent {
            Some(index) => index,
            None => self.take_listed(size, owner, kind)?,
        };
        Some(self.hold(index, owner, label))
    }

    fn take_listed(&mut self, size: u64, owner: u32, kind: Kind) -> Option<u32> {
        let found = self.find(size, owner, kind).or_else(|| {
            self.list_recent();
            self.find(size, owner, kind)
        });
        let index = found?;
        self.unlink(index, kind);
        self.cut(index, size, kind);
        Some(index)
    }

    fn find(&self, size: u64, owner: u32, kind: Kind) -> Option<u32> {
        let units = size / self.unit;
        let mine = self.bins.get(owner as usize).filter(|_| owner != EVERYBODY);
        mine.and_then(|bins| bins[kind as usize].find(&self.pieces, size, units))
            .or_else(|| self.bins[EVERYBODY as usize][kind as usize].find(&self.pieces, size, units))
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
        let index = self.pieces.add(Piece {
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
    #[inline]
    pub(super) fn release(&mut self, index: u32) -> Option<(B, u64)> {
        let piece = &mut self.pieces[index];
        let (chunk, size, owner) = (piece.chunk, piece.size, piece.owner);
        piece.date = UNDATED;
        match self.kind(chunk) {
            Kind::Straight => return self.remove_chunk(index),
            Kind::Shared if owner == EVERYBODY => {
                self.pieces[index].state = State::Recent;
                if let Some(old) = self.recent.put(size, index) {
                    self.free(old, Kind::Shared);
                }
            }
            kind => self.free(index, kind),
        }
        None
    }

    /// Puts the pieces that came back lately into their lists, where they grow together with their neighbours.
    fn list_recent(&mut self) {
        for index in self.recent.drain() {
            self.free(index, Kind::Shared);
        }
    }

    /// Notes that a held piece was given back while streams still work on it; [`Arena::release`] ends that.
    pub(super) fn cool(&mut self, index: u32) {
        self.pieces[index].state = State::Cooling;
    }

    pub(super) fn size_of(&self, index: u32) -> u64 {
        self.pieces[index].size
    }

    /// Whether the piece went straight to the device.
    pub(super) fn is_straight(&self, index: u32) -> bool {
        self.kind(self.pieces[index].chunk) == Kind::Straight
    }

    /// Dates the free pieces of streams: whoever is past the streams' present counts is past their last use.
    pub(super) fn date(&mut self, positions: &[u64]) {
        for piece in self.pieces.iter_mut() {
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
        for index in self.pieces.numbers() {
            let piece = &self.pieces[index];
            let is_past = piece.date != UNDATED
                && passed.get(piece.owner as usize).is_some_and(|passed| *passed >= piece.date);
            if piece.state == State::Free && piece.owner != EVERYBODY && is_past {
                let kind = self.kind(piece.chunk);
                self.unlink(index, kind);
                self.pieces[index].owner = EVERYBODY;
                self.pieces[index].date = UNDATED;
                self.free(index, kind);
            }
        }
    }

    /// Takes out the chunks that nobody uses, with their sizes.
    pub(super) fn take_unused(&mut self) -> Vec<(B, u64)> {
        self.list_recent();
        let mut unused = Vec::new();
        for index in self.pieces.numbers() {
            let piece = &self.pieces[index];
            let is_whole = piece.state == State::Free && piece.neighbours == [NONE; 2];
            if is_whole && piece.owner == EVERYBODY {
                let kind = self.kind(piece.chunk);
                self.unlink(index, kind);
                unused.extend(self.remove_chunk(index));
            }
        }
        unused
    }

    /// The largest piece that the stream could have now.
    pub(super) fn largest_free(&mut self, owner: u32) -> u64 {
        self.list_recent();
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
        let piece = &mut self.pieces[index];
        piece.state = State::Held;
        piece.owner = owner;
        piece.label = label;
        Place { piece: index, chunk: piece.chunk, offset: piece.offset, size: piece.size }
    }

    /// Cuts what is more than `size` off a piece that is in no list, where that is worth it.
    fn cut(&mut self, index: u32, size: u64, kind: Kind) {
        let piece = &self.pieces[index];
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
        let cut = self.pieces.add(Piece { state: State::Free, ..piece });
        self.pieces[index].size = size;
        self.pieces[index].neighbours[1] = cut;
        if after != NONE {
            self.pieces[after].neighbours[0] = cut;
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, cut, rest / self.unit);
    }

    /// Makes a piece that is in no list free: it grows together with its free neighbours, and goes into a list.
    fn free(&mut self, index: u32, kind: Kind) {
        let mut index = index;
        self.pieces[index].state = State::Free;
        let [before, after] = self.pieces[index].neighbours;
        if self.can_join(index, after) {
            self.unlink(after, kind);
            self.join(index, after);
        }
        if self.can_join(index, before) {
            self.unlink(before, kind);
            self.join(before, index);
            index = before;
        }
        let piece = &self.pieces[index];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        while self.bins.len() <= owner {
            self.bins.push([Bins::new(), Bins::new()]);
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, index, units);
    }

    fn can_join(&self, index: u32, other: u32) -> bool {
        other != NONE
            && self.pieces[other].state == State::Free
            && self.pieces[other].owner == self.pieces[index].owner
    }

    /// Makes one piece of two neighbours that are in no list.
    fn join(&mut self, first: u32, second: u32) {
        let Piece { size, neighbours: [_, after], .. } = self.pieces[second];
        let joined = &mut self.pieces[first];
        joined.size += size;
        joined.neighbours[1] = after;
        joined.date = UNDATED;
        if after != NONE {
            self.pieces[after].neighbours[0] = first;
        }
        self.pieces.vacate(second);
    }

    fn unlink(&mut self, index: u32, kind: Kind) {
        let piece = &self.pieces[index];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        self.bins[owner][kind as usize].remove(&mut self.pieces, index, units);
    }

    fn remove_chunk(&mut self, index: u32) -> Option<(B, u64)> {
        let chunk = self.pieces[index].chunk;
        self.pieces.vacate(index);
        self.chunks[chunk as usize].take().map(|chunk| (chunk.block, chunk.size))
    }
}

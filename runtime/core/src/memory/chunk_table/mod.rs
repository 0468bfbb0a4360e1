//! The bookkeeping of a pool: its chunks, and which of their pieces are allocated, free or still in use by streams.
//!
//! A chunk is one allocation of the device; a piece is part of a chunk. Pieces know their neighbors in the chunk, so
//! adjacent free ones can merge. A free piece belongs to the stream that used it last. That stream may reuse it
//! immediately; it becomes free for all once the stream is past its last use. This module never calls a device.

mod bins;
mod piece_table;
mod recent_pieces;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::bins::SizeBins;
pub(super) use self::piece_table::NO_PIECE;
use self::piece_table::{MemoryPiece, PieceState, PieceTable};
use self::recent_pieces::RecentPieces;
use crate::stream::InternedLabel;

/// The owner of pieces that any stream may use.
const SHARED_OWNER: u32 = 0;
/// The launch count of a free piece whose last use has no launch count yet.
const UNDATED: u64 = u64::MAX;
/// The smallest remainder that is split off a piece of a large chunk.
const SMALLEST_LARGE_REST: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkKind {
    /// For many small pieces, or for pieces of any size if small ones are not kept apart.
    Shared = 0,
    /// For a few large pieces.
    Large = 1,
    /// For a single request; returned to the device together with it.
    Straight = 2,
}

#[derive(Debug)]
struct MemoryChunk<B> {
    block: B,
    size: u64,
    kind: ChunkKind,
}

/// A piece that the pool has allocated to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceHandle {
    pub(super) piece: u32,
    pub(super) chunk: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// All chunks and pieces of a pool. `B` is the device block of a chunk.
#[derive(Debug)]
pub(super) struct ChunkTable<B> {
    unit: u64,
    pieces: PieceTable,
    chunks: Vec<Option<MemoryChunk<B>>>,
    /// Free pieces by owner and kind.
    bins: Vec<[SizeBins; 2]>,
    /// Free pieces without an owner that are not in the bins yet.
    recent: RecentPieces,
}

impl<B> ChunkTable<B> {
    pub(super) fn new(unit: u64) -> Self {
        Self {
            unit,
            pieces: PieceTable::new(),
            chunks: Vec::new(),
            bins: vec![[SizeBins::new(), SizeBins::new()]],
            recent: RecentPieces::new(),
        }
    }

    pub(super) fn chunk_block(&self, chunk: u32) -> Option<&B> {
        self.chunks.get(chunk as usize)?.as_ref().map(|chunk| &chunk.block)
    }

    /// Takes a free piece of `size` bytes, a multiple of the unit, that the stream may use now.
    #[inline]
    pub(super) fn take_free(
        &mut self,
        size: u64,
        owner: u32,
        kind: ChunkKind,
        label: InternedLabel,
    ) -> Option<PieceHandle> {
        let recent = if kind == ChunkKind::Shared { self.recent.take_exact(size) } else { None };
        let index = match recent {
            Some(index) => index,
            None => self.take_listed(size, owner, kind)?,
        };
        Some(self.hold_piece(index, owner, label))
    }

    fn take_listed(&mut self, size: u64, owner: u32, kind: ChunkKind) -> Option<u32> {
        let found = self.find_free(size, owner, kind).or_else(|| {
            self.list_recent();
            self.find_free(size, owner, kind)
        });
        let index = found?;
        self.unlink_piece(index, kind);
        self.split_piece(index, size, kind);
        Some(index)
    }

    fn find_free(&self, size: u64, owner: u32, kind: ChunkKind) -> Option<u32> {
        let units = size / self.unit;
        let mine = self.bins.get(owner as usize).filter(|_| owner != SHARED_OWNER);
        mine.and_then(|bins| bins[kind as usize].find_fit(&self.pieces, size, units))
            .or_else(|| self.bins[SHARED_OWNER as usize][kind as usize].find_fit(&self.pieces, size, units))
    }

    /// Adds a chunk and takes a piece of `size` bytes from it.
    pub(super) fn add_chunk(
        &mut self,
        block: B,
        chunk_size: u64,
        kind: ChunkKind,
        size: u64,
        owner: u32,
        label: InternedLabel,
    ) -> PieceHandle {
        let chunk = Some(MemoryChunk { block, size: chunk_size, kind });
        let free = self.chunks.iter().position(Option::is_none);
        let number = free.unwrap_or(self.chunks.len());
        match free {
            Some(number) => self.chunks[number] = chunk,
            None => self.chunks.push(chunk),
        }
        let index = self.pieces.add_piece(MemoryPiece {
            size: chunk_size,
            links: [NO_PIECE; 2],
            offset: 0,
            neighbors: [NO_PIECE; 2],
            chunk: number as u32,
            owner: SHARED_OWNER,
            date: UNDATED,
            label,
            state: PieceState::Free,
        });
        self.split_piece(index, size, kind);
        self.hold_piece(index, owner, label)
    }

    /// Releases an allocated piece, which is then free for its stream. If its chunk was only for this piece, returns the block.
    #[inline]
    pub(super) fn release_piece(&mut self, index: u32) -> Option<(B, u64)> {
        let piece = &mut self.pieces[index];
        let (chunk, size, owner) = (piece.chunk, piece.size, piece.owner);
        piece.date = UNDATED;
        match self.chunk_kind(chunk) {
            ChunkKind::Straight => return self.remove_chunk(index),
            ChunkKind::Shared if owner == SHARED_OWNER => {
                self.pieces[index].state = PieceState::Recent;
                if let Some(old) = self.recent.push_recent(size, index) {
                    self.free_piece(old, ChunkKind::Shared);
                }
            }
            kind => self.free_piece(index, kind),
        }
        None
    }

    /// Moves recent pieces to the bins, where they merge with their neighbors.
    fn list_recent(&mut self) {
        for index in self.recent.drain_all() {
            self.free_piece(index, ChunkKind::Shared);
        }
    }

    /// Marks an allocated piece as released but still in use by streams. [`ChunkTable::release_piece`] completes the release.
    pub(super) fn defer_release(&mut self, index: u32) {
        self.pieces[index].state = PieceState::Cooling;
    }

    pub(super) fn piece_size(&self, index: u32) -> u64 {
        self.pieces[index].size
    }

    /// True if the piece has a chunk of its own.
    pub(super) fn is_dedicated(&self, index: u32) -> bool {
        self.chunk_kind(self.pieces[index].chunk) == ChunkKind::Straight
    }

    /// Stamps the free pieces of streams with the current launch counts. Once a stream is past its count, it is past the
    /// last use of its pieces.
    pub(super) fn date_free_pieces(&mut self, positions: &[u64]) {
        for piece in self.pieces.iter_mut() {
            if piece.state == PieceState::Free
                && piece.owner != SHARED_OWNER
                && piece.date == UNDATED
                && let Some(position) = positions.get(piece.owner as usize)
            {
                piece.date = *position;
            }
        }
    }

    /// Makes pieces free for all whose streams are past their last use.
    pub(super) fn share_passed_pieces(&mut self, passed: &[u64]) {
        for index in self.pieces.piece_indices() {
            let piece = &self.pieces[index];
            let is_past = piece.date != UNDATED
                && passed.get(piece.owner as usize).is_some_and(|passed| *passed >= piece.date);
            if piece.state == PieceState::Free && piece.owner != SHARED_OWNER && is_past {
                let kind = self.chunk_kind(piece.chunk);
                self.unlink_piece(index, kind);
                self.pieces[index].owner = SHARED_OWNER;
                self.pieces[index].date = UNDATED;
                self.free_piece(index, kind);
            }
        }
    }

    /// Removes the chunks without pieces in use, and returns them with their sizes.
    pub(super) fn take_unused_chunks(&mut self) -> Vec<(B, u64)> {
        self.list_recent();
        let mut unused = Vec::new();
        for index in self.pieces.piece_indices() {
            let piece = &self.pieces[index];
            let is_whole = piece.state == PieceState::Free && piece.neighbors == [NO_PIECE; 2];
            if is_whole && piece.owner == SHARED_OWNER {
                let kind = self.chunk_kind(piece.chunk);
                self.unlink_piece(index, kind);
                unused.extend(self.remove_chunk(index));
            }
        }
        unused
    }

    /// The largest piece that the stream could get now.
    pub(super) fn largest_free(&mut self, owner: u32) -> u64 {
        self.list_recent();
        let usable = |piece: &&MemoryPiece| {
            piece.state == PieceState::Free && [SHARED_OWNER, owner].contains(&piece.owner)
        };
        self.pieces.iter().filter(usable).map(|piece| piece.size).max().unwrap_or(0)
    }

    /// For each label, the bytes and the number of allocated pieces.
    pub(super) fn holders(&self) -> HashMap<InternedLabel, (u64, u64)> {
        let mut holders = HashMap::new();
        for piece in self.pieces.iter().filter(|piece| piece.state == PieceState::Held) {
            let (bytes, count) = holders.entry(piece.label).or_insert((0, 0));
            *bytes += piece.size;
            *count += 1;
        }
        holders
    }

    fn chunk_kind(&self, chunk: u32) -> ChunkKind {
        self.chunks[chunk as usize].as_ref().map_or(ChunkKind::Straight, |chunk| chunk.kind)
    }

    fn hold_piece(&mut self, index: u32, owner: u32, label: InternedLabel) -> PieceHandle {
        let piece = &mut self.pieces[index];
        piece.state = PieceState::Held;
        piece.owner = owner;
        piece.label = label;
        PieceHandle { piece: index, chunk: piece.chunk, offset: piece.offset, size: piece.size }
    }

    /// Splits an unlisted piece after `size` bytes, if the remainder is large enough.
    fn split_piece(&mut self, index: u32, size: u64, kind: ChunkKind) {
        let piece = &self.pieces[index];
        let rest = piece.size - size;
        let worth = if kind == ChunkKind::Large { SMALLEST_LARGE_REST } else { self.unit };
        if rest < worth || kind == ChunkKind::Straight {
            return;
        }
        let after = piece.neighbors[1];
        let piece = MemoryPiece {
            size: rest,
            links: [NO_PIECE; 2],
            offset: piece.offset + size,
            neighbors: [index, after],
            ..*piece
        };
        let owner = piece.owner as usize;
        let cut = self.pieces.add_piece(MemoryPiece { state: PieceState::Free, ..piece });
        self.pieces[index].size = size;
        self.pieces[index].neighbors[1] = cut;
        if after != NO_PIECE {
            self.pieces[after].neighbors[0] = cut;
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, cut, rest / self.unit);
    }

    /// Frees an unlisted piece: merges it with free neighbors and adds it to a bin.
    fn free_piece(&mut self, index: u32, kind: ChunkKind) {
        let mut index = index;
        self.pieces[index].state = PieceState::Free;
        let [before, after] = self.pieces[index].neighbors;
        if self.can_merge(index, after) {
            self.unlink_piece(after, kind);
            self.merge_pieces(index, after);
        }
        if self.can_merge(index, before) {
            self.unlink_piece(before, kind);
            self.merge_pieces(before, index);
            index = before;
        }
        let piece = &self.pieces[index];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        while self.bins.len() <= owner {
            self.bins.push([SizeBins::new(), SizeBins::new()]);
        }
        self.bins[owner][kind as usize].insert(&mut self.pieces, index, units);
    }

    fn can_merge(&self, index: u32, other: u32) -> bool {
        other != NO_PIECE
            && self.pieces[other].state == PieceState::Free
            && self.pieces[other].owner == self.pieces[index].owner
    }

    /// Merges two neighbors, both unlisted.
    fn merge_pieces(&mut self, first: u32, second: u32) {
        let MemoryPiece { size, neighbors: [_, after], .. } = self.pieces[second];
        let joined = &mut self.pieces[first];
        joined.size += size;
        joined.neighbors[1] = after;
        joined.date = UNDATED;
        if after != NO_PIECE {
            self.pieces[after].neighbors[0] = first;
        }
        self.pieces.vacate_slot(second);
    }

    fn unlink_piece(&mut self, index: u32, kind: ChunkKind) {
        let piece = &self.pieces[index];
        let (owner, units) = (piece.owner as usize, piece.size / self.unit);
        self.bins[owner][kind as usize].remove(&mut self.pieces, index, units);
    }

    fn remove_chunk(&mut self, index: u32) -> Option<(B, u64)> {
        let chunk = self.pieces[index].chunk;
        self.pieces.vacate_slot(index);
        self.chunks[chunk as usize].take().map(|chunk| (chunk.block, chunk.size))
    }
}

//! Tests of the invariants of the table.

use super::*;

const UNIT: u64 = 64;

fn test_label() -> InternedLabel {
    InternedLabel::from("test")
}

fn test_table() -> ChunkTable<()> {
    ChunkTable::new(UNIT)
}

#[test]
fn pieces_that_are_released_in_any_order_grow_together_to_the_whole_chunk() {
    let mut table = test_table();
    let first = table.add_chunk((), 100 * UNIT, ChunkKind::Shared, UNIT, 0, test_label());
    let mut held = vec![first];
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for _ in 0..10_000 {
        if draw(2) == 0 || held.is_empty() {
            held.extend(table.take_free((1 + draw(20)) * UNIT, 0, ChunkKind::Shared, test_label()));
        } else {
            let place = held.swap_remove(draw(held.len() as u64) as usize);
            assert!(table.release_piece(place.piece).is_none());
        }
        let mut ranges: Vec<(u64, u64)> =
            held.iter().map(|place| (place.offset, place.offset + place.size)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "pieces overlap: {ranges:?}");
    }
    for place in held {
        table.release_piece(place.piece);
    }
    assert_eq!((table.largest_free(0), table.take_unused_chunks().len()), (100 * UNIT, 1));
    assert!(table.take_free(UNIT, 0, ChunkKind::Shared, test_label()).is_none());
}

#[test]
fn a_piece_of_a_stream_is_everybodys_once_the_stream_is_past_its_date() {
    let mut table = test_table();
    let held = table.add_chunk((), 4 * UNIT, ChunkKind::Shared, 4 * UNIT, 2, test_label());
    table.release_piece(held.piece);
    table.share_passed_pieces(&[0, 0, 9]);
    assert!(table.take_free(UNIT, 0, ChunkKind::Shared, test_label()).is_none(), "it has no date yet");
    table.date_free_pieces(&[0, 0, 7]);
    table.share_passed_pieces(&[0, 0, 6]);
    assert!(table.take_free(UNIT, 1, ChunkKind::Shared, test_label()).is_none(), "the stream is not past it");
    assert!(table.take_unused_chunks().is_empty());
    table.share_passed_pieces(&[0, 0, 7]);
    assert!(table.take_free(4 * UNIT, 1, ChunkKind::Shared, test_label()).is_some());
}

#[test]
fn what_a_stream_lets_go_again_needs_a_new_date() {
    let mut table = test_table();
    let held = table.add_chunk((), 4 * UNIT, ChunkKind::Shared, 4 * UNIT, 1, test_label());
    table.release_piece(held.piece);
    table.date_free_pieces(&[0, 5]);
    let again = table.take_free(UNIT, 1, ChunkKind::Shared, test_label()).unwrap();
    table.release_piece(again.piece);
    table.share_passed_pieces(&[0, 5]);
    assert!(table.take_free(UNIT, 0, ChunkKind::Shared, test_label()).is_none());
}

#[test]
fn large_pieces_are_only_cut_where_the_rest_is_large_too() {
    let mut table = test_table();
    let held = table.add_chunk((), 4 << 20, ChunkKind::Large, (3 << 20) + UNIT, 0, test_label());
    assert_eq!(held.size, 4 << 20);
    let held = table.add_chunk((), 4 << 20, ChunkKind::Large, 3 << 20, 0, test_label());
    assert_eq!(held.size, 3 << 20);
}

#[test]
fn what_went_straight_to_the_device_comes_back_at_once() {
    let mut table = test_table();
    let held = table.add_chunk((), 4 * UNIT, ChunkKind::Straight, 4 * UNIT, 0, test_label());
    assert!(table.is_dedicated(held.piece));
    assert_eq!(table.release_piece(held.piece), Some(((), 4 * UNIT)));
    assert!(table.chunk_block(held.chunk).is_none());
}

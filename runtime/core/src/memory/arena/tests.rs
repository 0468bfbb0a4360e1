//! What the books promise.

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

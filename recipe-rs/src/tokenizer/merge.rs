//! Byte-pair merging of one word.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::large_slice::LargeSlice;

/// Rank of a pair that no merge joins.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// Stands for a byte that has no token.
pub(crate) const NO_ID: u32 = u32::MAX;

const FILTER_BITS: u32 = 20;

/// Up to this many symbols, scanning for the best pair is faster than a heap.
const MAX_SCANNED_SYMBOLS: usize = 64;

/// Symbols whose ranks are scanned as one vector.
pub(crate) const SHORT: usize = 16;
const PLACE_BITS: u32 = 4;

/// Ids and ranks that fit into a slot of the table.
const FIELD_BITS: u32 = 21;
const FIELD_LIMIT: usize = (1 << FIELD_BITS) - 1;

/// The merge rules: which pairs of ids join, in which order, and into what.
#[derive(Debug)]
pub(crate) struct MergeTable {
    /// Open-addressed: left id, right id and rank in one word; `EMPTY` where a slot is free.
    slots: LargeSlice<u64>,
    shift: u32,
    /// One bit for each hash of a pair that some merge joins: most pairs that none joins end here.
    filter: Box<[u64]>,
    /// Rank by the two bytes of a pair of single-byte tokens.
    byte_ranks: Box<[u32]>,
    byte_ids: [u32; 256],
    /// Id of the product of each merge, by rank; none where the ids of the products themselves serve as ranks.
    products: Option<Box<[u32]>>,
    /// Parts of each token that a merge makes, and the rank of that merge, by id; `NO_RANK` for the others.
    parts: Box<[Parts]>,
    /// Whether the parts of every merge are bytes or products of earlier merges, and no two merges make one token.
    is_ordered: bool,
    /// Whether every byte has a token.
    has_all_bytes: bool,
}

/// How a token comes about.
#[derive(Debug, Clone, Copy)]
struct Parts {
    left: u32,
    right: u32,
    rank: u32,
}

const EMPTY: u64 = u64::MAX;

/// Buffers of a merge, reused from word to word.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    ids: Vec<u32>,
    ranks: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    previous: Vec<u32>,
    next: Vec<u32>,
}

const NO_LINK: u32 = u32::MAX;

impl MergeTable {
    /// Builds the table from the token of each byte ([`NO_ID`] for none) and the merges `(left, right, product)` in the
    /// order of their ranks; `None` when there are too many of them or of ids.
    ///
    /// The first of several merges of one pair counts.
    #[must_use]
    pub(crate) fn new(byte_ids: &[u32; 256], merges: &[(u32, u32, u32)]) -> Option<Self> {
        let largest_id = merges
            .iter()
            .map(|merge| merge.0.max(merge.1).max(merge.2))
            .max()
            .unwrap_or(0) as usize;
        if merges.len() >= FIELD_LIMIT || largest_id >= FIELD_LIMIT {
            return None;
        }
        let bits = (merges.len() * 2 + 1).next_power_of_two().trailing_zeros();
        let none = Parts {
            left: NO_ID,
            right: NO_ID,
            rank: NO_RANK,
        };
        let mut parts = vec![none; largest_id + 1];
        let mut is_ordered = true;
        // Where the ids of the products ascend with the ranks, they tell which merge comes first as well.
        let ascends = merges.windows(2).all(|pair| pair[0].2 < pair[1].2);
        let rank_of = |rank: u32, product: u32| if ascends { product } else { rank };
        for (&(left, right, product), rank) in merges.iter().zip(0_u32..) {
            let rank = rank_of(rank, product);
            let is_ready =
                |part: u32| parts[part as usize].rank != NO_RANK || byte_ids.contains(&part);
            is_ordered &=
                is_ready(left) && is_ready(right) && parts[product as usize].rank == NO_RANK;
            parts[product as usize] = Parts { left, right, rank };
        }
        is_ordered &= byte_ids
            .iter()
            .all(|&id| id > largest_id as u32 || parts[id as usize].rank == NO_RANK);
        let mut table = Self {
            slots: LargeSlice::new(1 << bits, || EMPTY),
            shift: 64 - bits,
            filter: vec![0; 1 << (FILTER_BITS - 6)].into(),
            byte_ranks: vec![NO_RANK; 1 << 16].into(),
            byte_ids: *byte_ids,
            products: (!ascends).then(|| merges.iter().map(|merge| merge.2).collect()),
            parts: parts.into(),
            is_ordered,
            has_all_bytes: !byte_ids.contains(&NO_ID),
        };
        for (&(left, right, product), rank) in merges.iter().zip(0_u32..) {
            let pair = pair_key(left, right);
            let slot = table.slot(pair);
            if table.slots[slot] == EMPTY {
                table.slots[slot] = pair << FIELD_BITS | u64::from(rank_of(rank, product));
                let bit = pair_hash(pair) >> (64 - FILTER_BITS);
                table.filter[bit as usize >> 6] |= 1 << (bit & 63);
            }
        }
        for pair in 0_u16..=u16::MAX {
            let [left, right] = pair.to_be_bytes().map(|byte| byte_ids[usize::from(byte)]);
            if left != NO_ID && right != NO_ID {
                table.byte_ranks[usize::from(pair)] = table.rank(left, right);
            }
        }
        Some(table)
    }

    /// Whether merging parts of a word and repairing the seams gives what merging the whole gives.
    #[must_use]
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether merging the bytes of `id` gives `id`.
    #[must_use]
    pub(crate) fn is_own_result(&self, id: u32, word: &[u8], scratch: &mut MergeScratch) -> bool {
        if self.is_ordered
            && let Some(parts) = self.parts.get(id as usize)
            && parts.rank != NO_RANK
        {
            return self.stays_apart(parts.left, parts.right, parts.rank);
        }
        let mut merged = Vec::new();
        self.merge(word, scratch, &mut merged);
        merged == [id]
    }

    /// Whether merging the bytes of two tokens in a row gives the two tokens, both being their own results.
    ///
    /// Only for [ordered](Self::is_ordered) rules.
    #[must_use]
    pub(crate) fn is_stable(&self, left: u32, right: u32) -> bool {
        self.rank(left, right) == NO_RANK && self.stays_apart(left, right, NO_RANK)
    }

    /// Whether no merge of a rank below `limit` crosses the boundary between two tokens while they come about.
    ///
    /// Only the last part of the left and the first part of the right touch the boundary. They are undone in the
    /// reverse order of their ranks; a pair of them joins if its merge comes before either is used up, the left of two
    /// equal merges first.
    fn stays_apart(&self, mut left: u32, mut right: u32, limit: u32) -> bool {
        let parts = |id: u32| {
            self.parts
                .get(id as usize)
                .filter(|parts| parts.rank != NO_RANK)
        };
        let (mut left_used, mut right_used) = (limit, limit);
        loop {
            let next = match (parts(left), parts(right)) {
                (None, None) => return true,
                (Some(made), None) => (made, true),
                (None, Some(made)) => (made, false),
                (Some(a), Some(b)) => {
                    if a.rank >= b.rank {
                        (a, true)
                    } else {
                        (b, false)
                    }
                }
            };
            if next.1 {
                (left, left_used) = (next.0.right, next.0.rank);
            } else {
                (right, right_used) = (next.0.left, next.0.rank);
            }
            let rank = self.rank(left, right);
            if rank != NO_RANK && rank < left_used && rank <= right_used && rank < limit {
                return false;
            }
        }
    }

    /// Rank of the merge that makes `id`, [`NO_RANK`] if none does; only for [ordered](Self::is_ordered) rules.
    #[must_use]
    pub(crate) fn rank_of_product(&self, id: u32) -> u32 {
        self.parts
            .get(id as usize)
            .map_or(NO_RANK, |parts| parts.rank)
    }

    /// What the merge of a rank makes.
    #[must_use]
    #[inline(always)]
    pub(crate) fn product(&self, rank: u32) -> u32 {
        match &self.products {
            Some(products) => products[rank as usize],
            None => rank,
        }
    }

    /// Slot of `pair`, or the free slot where it would go; one is always free.
    #[inline(always)]
    fn slot(&self, pair: u64) -> usize {
        let mut slot = (pair_hash(pair) >> self.shift) as usize;
        while self.slots[slot] >> FIELD_BITS != pair && self.slots[slot] != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// Rank of the merge of two ids, [`NO_RANK`] if there is none.
    #[must_use]
    #[inline(always)]
    pub(crate) fn rank(&self, left: u32, right: u32) -> u32 {
        let pair = pair_key(left, right);
        let bit = pair_hash(pair) >> (64 - FILTER_BITS);
        if self.filter[bit as usize >> 6] >> (bit & 63) & 1 == 0 {
            return NO_RANK;
        }
        match self.slots[self.slot(pair)] {
            EMPTY => NO_RANK,
            found => (found as usize & FIELD_LIMIT) as u32,
        }
    }

    /// Merges the bytes of `word` as far as the rules go and appends the ids to `out`.
    ///
    /// Of all pairs the one of the lowest rank joins first, the leftmost of several. A byte without a token is left
    /// out.
    pub(crate) fn merge(&self, word: &[u8], scratch: &mut MergeScratch, out: &mut Vec<u32>) {
        if let Some((ids, count)) = self.merge_short(word) {
            out.extend_from_slice(&ids[..count]);
            return;
        }
        let MergeScratch { ids, ranks, .. } = scratch;
        ids.clear();
        ids.extend(word.iter().map(|&byte| self.byte_ids[usize::from(byte)]));
        ranks.clear();
        if ids.contains(&NO_ID) {
            ids.retain(|&id| id != NO_ID);
            ranks.extend(ids.windows(2).map(|pair| self.rank(pair[0], pair[1])));
        } else {
            let rank =
                |pair: &[u8]| self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            ranks.extend(word.windows(2).map(rank));
        }
        ranks.resize(ids.len(), NO_RANK);
        if ids.len() <= MAX_SCANNED_SYMBOLS {
            let count = self.merge_by_scan(ids, ranks);
            out.extend_from_slice(&ids[..count]);
        } else {
            self.merge_by_heap(scratch, out);
        }
    }

    /// Ids of a word of one to [`SHORT`] bytes and how many they are; `None` for other words, and where some byte has no
    /// token.
    #[inline(always)]
    pub(crate) fn merge_short(&self, word: &[u8]) -> Option<([u32; SHORT], usize)> {
        if word.is_empty() || word.len() > SHORT || !self.has_all_bytes {
            return None;
        }
        let mut ids = [0; SHORT];
        let mut orders = [u32::MAX; SHORT];
        for (id, &byte) in ids.iter_mut().zip(word) {
            *id = self.byte_ids[usize::from(byte)];
        }
        for (place, pair) in word.windows(2).enumerate().take(SHORT) {
            let rank = self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            orders[place] = order(rank, place);
        }
        let alive = u32::MAX >> (32 - word.len());
        let alive = self.merge_places(&mut ids, &mut orders, alive);
        let count = move_together(&mut ids, alive);
        Some((ids, count))
    }

    /// Merges 3 to [`SHORT`] symbols in place and returns how many remain; `ranks[i]` is that of symbols i and i + 1.
    #[inline(always)]
    pub(crate) fn merge_few(&self, ids: &mut [u32], ranks: &[u32]) -> usize {
        if let [first, _, third] = *ids {
            let is_left_first = ranks[0] <= ranks[1];
            let rank = if is_left_first { ranks[0] } else { ranks[1] };
            if rank == NO_RANK {
                return 3;
            }
            let joined = self.product(rank);
            let (left, right) = if is_left_first {
                (joined, third)
            } else {
                (first, joined)
            };
            return match self.rank(left, right) {
                NO_RANK => {
                    (ids[0], ids[1]) = (left, right);
                    2
                }
                rank => {
                    ids[0] = self.product(rank);
                    1
                }
            };
        }
        let (mut places, mut orders) = ([0; SHORT], [u32::MAX; SHORT]);
        places[..ids.len()].copy_from_slice(ids);
        for (place, &rank) in ranks[..ids.len() - 1].iter().enumerate() {
            orders[place] = order(rank, place);
        }
        let alive = u32::MAX >> (32 - ids.len());
        let alive = self.merge_places(&mut places, &mut orders, alive);
        let count = move_together(&mut places, alive);
        ids[..count].copy_from_slice(&places[..count]);
        count
    }

    /// Merges symbols that stay at their places, of which `alive` has those that have one, and returns which remain.
    ///
    /// `orders` holds the [`order`] of every symbol that joins the next.
    #[inline(always)]
    fn merge_places(
        &self,
        ids: &mut [u32; SHORT],
        orders: &mut [u32; SHORT],
        mut alive: u32,
    ) -> u32 {
        loop {
            let first = orders
                .iter()
                .fold(u32::MAX, |first, &order| first.min(order));
            if first == u32::MAX {
                return alive;
            }
            let place = first as usize & (SHORT - 1);
            let id = self.product(first >> PLACE_BITS);
            ids[place] = id;
            let behind = alive & (u32::MAX - 1) << place;
            let joined = behind.trailing_zeros() as usize & (SHORT - 1);
            orders[joined] = u32::MAX;
            alive &= !(1 << joined);
            let behind = behind & behind.wrapping_sub(1);
            orders[place] = if behind == 0 {
                u32::MAX
            } else {
                let next = behind.trailing_zeros() as usize & (SHORT - 1);
                order(self.rank(id, ids[next]), place)
            };
            let before = alive & !(u32::MAX << place);
            if before != 0 {
                let last = before.ilog2() as usize & (SHORT - 1);
                orders[last] = order(self.rank(ids[last], id), last);
            }
        }
    }

    /// Merges in place and returns how many symbols remain; `ranks[i]` is that of symbols i and i + 1.
    pub(crate) fn merge_by_scan(&self, ids: &mut [u32], ranks: &mut [u32]) -> usize {
        let mut count = ids.len();
        loop {
            let best = ranks[..count].iter().copied().min().unwrap_or(NO_RANK);
            if best == NO_RANK {
                return count;
            }
            let at = ranks[..count]
                .iter()
                .position(|&rank| rank == best)
                .unwrap_or(0);
            ids.copy_within(at + 2..count, at + 1);
            ranks.copy_within(at + 1..count, at);
            count -= 1;
            ids[at] = self.product(best);
            ranks[at] = if at + 1 < count {
                self.rank(ids[at], ids[at + 1])
            } else {
                NO_RANK
            };
            if at > 0 {
                ranks[at - 1] = self.rank(ids[at - 1], ids[at]);
            }
        }
    }

    fn merge_by_heap(&self, scratch: &mut MergeScratch, out: &mut Vec<u32>) {
        let MergeScratch {
            ids,
            ranks,
            heap,
            previous,
            next,
        } = scratch;
        let count = ids.len() as u32;
        heap.clear();
        heap.extend(
            ranks
                .iter()
                .zip(0..)
                .filter(|(rank, _)| **rank != NO_RANK)
                .map(|(&rank, at)| Reverse((rank, at))),
        );
        previous.clear();
        previous.extend((0..count).map(|at| at.wrapping_sub(1)));
        next.clear();
        next.extend((1..count).chain([NO_LINK]));
        while let Some(Reverse((rank, at))) = heap.pop() {
            let slot = at as usize;
            // An entry is stale when its symbol was joined to another or got another neighbour.
            if ranks[slot] != rank {
                continue;
            }
            let right = next[slot] as usize;
            let after = next[right];
            ids[slot] = self.product(rank);
            ranks[right] = NO_RANK;
            next[slot] = after;
            ranks[slot] = NO_RANK;
            if after != NO_LINK {
                previous[after as usize] = at;
                ranks[slot] = self.rank(ids[slot], ids[after as usize]);
                if ranks[slot] != NO_RANK {
                    heap.push(Reverse((ranks[slot], at)));
                }
            }
            let before = previous[slot];
            if before != NO_LINK {
                let slot_before = before as usize;
                ranks[slot_before] = self.rank(ids[slot_before], ids[slot]);
                if ranks[slot_before] != NO_RANK {
                    heap.push(Reverse((ranks[slot_before], before)));
                }
            }
        }
        let mut at = 0;
        while at != NO_LINK {
            out.push(ids[at as usize]);
            at = next[at as usize];
        }
    }
}

/// Rank and place of a symbol that joins the next: the smallest comes first, of equal ranks the leftmost.
#[inline(always)]
fn order(rank: u32, place: usize) -> u32 {
    if rank == NO_RANK {
        u32::MAX
    } else {
        rank << PLACE_BITS | place as u32
    }
}

/// Moves the ids at the places of `alive` to the front and returns how many they are.
#[inline(always)]
fn move_together(ids: &mut [u32; SHORT], mut alive: u32) -> usize {
    let count = alive.count_ones() as usize;
    for to in 0..count {
        ids[to & (SHORT - 1)] = ids[alive.trailing_zeros() as usize & (SHORT - 1)];
        alive &= alive.wrapping_sub(1);
    }
    count
}

#[inline]
fn pair_hash(pair: u64) -> u64 {
    pair.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[inline]
fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << FIELD_BITS | u64::from(right)
}

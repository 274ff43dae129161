//! Byte-pair merging of one pre-token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rank of a pair that no merge joins.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// Up to this many symbols, scanning for the best pair is faster than a heap.
const MAX_SCANNED_SYMBOLS: usize = 48;

/// The merge rules: which pairs of ids join, in which order, and into what.
#[derive(Debug, Clone)]
pub(crate) struct MergeTable {
    /// Open-addressed table of pairs, `EMPTY_PAIR` where a slot is free.
    pairs: Vec<u64>,
    ranks: Vec<u32>,
    mask: usize,
    /// Id of the product of each merge, by rank.
    products: Vec<u32>,
}

const EMPTY_PAIR: u64 = u64::MAX;

/// Buffers of [`MergeTable::merge`], reused from word to word.
#[derive(Debug, Default)]
pub(crate) struct MergeScratch {
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    links: Vec<Link>,
}

/// A token and the rank of its merge with the next one.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: u32,
    rank: u32,
}

/// Neighbours in the list of the heap variant; `NO_LINK` at the ends.
#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

const NO_LINK: u32 = u32::MAX;

impl MergeTable {
    /// Builds the table from merges `(left, right, product)` in the order of their ranks.
    ///
    /// The first of several merges of one pair counts.
    #[must_use]
    pub(crate) fn new(merges: &[(u32, u32, u32)]) -> Self {
        let capacity = (merges.len() * 2 + 1).next_power_of_two();
        let mut table = Self {
            pairs: vec![EMPTY_PAIR; capacity],
            ranks: vec![NO_RANK; capacity],
            mask: capacity - 1,
            products: merges.iter().map(|merge| merge.2).collect(),
        };
        for (&(left, right, _), rank) in merges.iter().zip(0..) {
            let pair = pair_key(left, right);
            let slot = table.slot(pair);
            if table.pairs[slot] == EMPTY_PAIR {
                table.pairs[slot] = pair;
                table.ranks[slot] = rank;
            }
        }
        table
    }

    /// Slot of `pair`, or the free slot where it would go; one is always free.
    #[inline]
    fn slot(&self, pair: u64) -> usize {
        let mut slot = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & self.mask;
        while self.pairs[slot] != pair && self.pairs[slot] != EMPTY_PAIR {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    /// Rank of the merge of two ids, [`NO_RANK`] if there is none.
    #[must_use]
    #[inline]
    pub(crate) fn rank(&self, left: u32, right: u32) -> u32 {
        self.ranks[self.slot(pair_key(left, right))]
    }

    /// Merges `ids` as far as the rules go and appends the result to `out`.
    ///
    /// Of all pairs the one of the lowest rank joins first, the leftmost of several.
    pub(crate) fn merge(
        &self,
        ids: impl Iterator<Item = u32>,
        scratch: &mut MergeScratch,
        out: &mut Vec<u32>,
    ) {
        let symbols = &mut scratch.symbols;
        symbols.clear();
        symbols.extend(ids.map(|id| Symbol { id, rank: NO_RANK }));
        for index in 1..symbols.len() {
            symbols[index - 1].rank = self.rank(symbols[index - 1].id, symbols[index].id);
        }
        if symbols.len() <= MAX_SCANNED_SYMBOLS {
            self.merge_by_scan(symbols);
            out.extend(symbols.iter().map(|symbol| symbol.id));
        } else {
            self.merge_by_heap(scratch, out);
        }
    }

    fn merge_by_scan(&self, symbols: &mut Vec<Symbol>) {
        loop {
            let best = symbols
                .iter()
                .enumerate()
                .min_by_key(|(_, symbol)| symbol.rank);
            let Some((at, &Symbol { rank, .. })) =
                best.filter(|(_, symbol)| symbol.rank != NO_RANK)
            else {
                return;
            };
            symbols.remove(at + 1);
            symbols[at].id = self.products[rank as usize];
            symbols[at].rank = match symbols.get(at + 1) {
                Some(next) => self.rank(symbols[at].id, next.id),
                None => NO_RANK,
            };
            if at > 0 {
                symbols[at - 1].rank = self.rank(symbols[at - 1].id, symbols[at].id);
            }
        }
    }

    fn merge_by_heap(&self, scratch: &mut MergeScratch, out: &mut Vec<u32>) {
        let MergeScratch {
            symbols,
            heap,
            links,
        } = scratch;
        let count = symbols.len() as u32;
        heap.clear();
        heap.extend(
            symbols
                .iter()
                .zip(0..)
                .filter(|(symbol, _)| symbol.rank != NO_RANK)
                .map(|(symbol, at)| Reverse((symbol.rank, at))),
        );
        links.clear();
        links.extend((0..count).map(|at| Link {
            previous: at.wrapping_sub(1),
            next: if at + 1 < count { at + 1 } else { NO_LINK },
        }));
        while let Some(Reverse((rank, at))) = heap.pop() {
            let at_slot = at as usize;
            // An entry is stale when its symbol was joined to another or got another neighbour.
            if symbols[at_slot].rank != rank {
                continue;
            }
            let right = links[at_slot].next;
            let after = links[right as usize].next;
            symbols[at_slot].id = self.products[rank as usize];
            symbols[right as usize].rank = NO_RANK;
            links[at_slot].next = after;
            symbols[at_slot].rank = if after == NO_LINK {
                NO_RANK
            } else {
                links[after as usize].previous = at;
                self.rank(symbols[at_slot].id, symbols[after as usize].id)
            };
            if symbols[at_slot].rank != NO_RANK {
                heap.push(Reverse((symbols[at_slot].rank, at)));
            }
            let before = links[at_slot].previous;
            if before != NO_LINK {
                let slot = before as usize;
                symbols[slot].rank = self.rank(symbols[slot].id, symbols[at_slot].id);
                if symbols[slot].rank != NO_RANK {
                    heap.push(Reverse((symbols[slot].rank, before)));
                }
            }
        }
        let mut at = 0;
        while at != NO_LINK {
            out.push(symbols[at as usize].id);
            at = links[at as usize].next;
        }
    }
}

#[inline]
fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

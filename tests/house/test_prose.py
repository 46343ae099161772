"""Ceiling of avoided phrases in the prose of each corpus."""

from collections import Counter

from tests.house.prose import ProseBlock, phrases, prose

# Hits in 1 000 words, and percent of the blocks with a hit. Well-written libraries have 2 to 5.
CEILINGS = {
    "code": (6, 15),
    "strings": (6, 15),
    "templates": (6, 15),
    "docs": (6, 15),
    "tests": (12, 15),
}
SHOWN_MOST = 20


def test_the_prose_stays_under_its_ceiling() -> None:
    """On a failure, rewrite the listed blocks: name the component that acts."""
    over = []
    for corpus, (rate_most, share_most) in CEILINGS.items():
        blocks = [block for block in prose() if block.corpus == corpus]
        hits = [len(block.hits()) for block in blocks]
        rate = 1_000 * sum(hits) / sum(block.words for block in blocks)
        share = 100 * sum(map(bool, hits)) / len(blocks)
        if rate > rate_most or share > share_most:
            worst = Counter[str]()
            for block, count in zip(blocks, hits, strict=True):
                worst[block.place] += count
            said = f"{corpus}: {rate:.1f} hits in 1 000 words, {share:.1f} % of the blocks"
            over.append(f"{said}; most: {worst.most_common(SHOWN_MOST)}")
    assert over == []


def test_a_phrase_is_found_in_each_kind_of_block() -> None:
    assert ProseBlock("code", "", "What nobody was told.").hits() == [
        "nobody",
        "what-subject",
        "tell",
    ]
    assert ProseBlock("code", "", "Returns the newest row.").hits() == []
    assert len(phrases()) > 20
    assert {block.corpus for block in prose()} == set(CEILINGS)

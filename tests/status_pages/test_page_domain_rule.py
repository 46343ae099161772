"""The proof of a domain: what serves it, what moves it, and which names no page can have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.domain_evidence import (
    RECORD_PREFIX,
    TEXT_PREFIX,
    DomainEvidence,
    token_of_alias,
    token_of_text,
)
from leadline.storage.status_pages.rules.page_domain import (
    LABEL_LONGEST,
    TOKEN_RANDOM_BYTES,
    DomainHolder,
    MissingProof,
    ProofOutcome,
    domain_fault,
    domain_token,
    judge_proof,
)

OURS, THEIRS, FOREIGN = "ours", "theirs", "foreign"
tokens = st.sampled_from([OURS, THEIRS, FOREIGN])
evidence = st.builds(
    DomainEvidence,
    records=st.frozensets(tokens),
    file=st.sampled_from(["", OURS, THEIRS, FOREIGN]),
    is_answered=st.booleans(),
    is_local=st.booleans(),
)
holders = st.sampled_from([None, DomainHolder(None), DomainHolder(THEIRS)])
names = st.from_regex(r"[a-z]([a-z0-9]{0,5})(\.[a-z]([a-z0-9]{0,5})){1,3}", fullmatch=True)


@given(holders, evidence)
def test_a_domain_is_proved_only_by_its_own_token(
    holder: DomainHolder | None, seen: DomainEvidence
) -> None:
    """The records and files of others, of which there can be any number, prove nothing."""
    if judge_proof(OURS, holder, seen) is ProofOutcome.PROVED:
        assert OURS in seen.records or seen.file == OURS
        assert not seen.is_local


@given(evidence)
def test_a_holder_keeps_a_domain_while_its_record_may_exist(seen: DomainEvidence) -> None:
    verdict = judge_proof(OURS, DomainHolder(THEIRS), seen)
    if THEIRS in seen.records or not seen.is_answered or OURS not in seen.records:
        assert verdict is not ProofOutcome.PROVED
    elif not seen.is_local:
        assert verdict is ProofOutcome.PROVED


@given(holders, evidence)
def test_of_two_claims_with_the_same_evidence_only_one_takes_the_domain_from_the_other(
    holder: DomainHolder | None, seen: DomainEvidence
) -> None:
    """Otherwise a domain would change its page with each check."""
    if judge_proof(OURS, holder, seen) is ProofOutcome.PROVED:
        after = judge_proof(THEIRS, DomainHolder(OURS), seen)
        assert after is not ProofOutcome.PROVED or OURS not in seen.records


@given(holders, evidence)
def test_silence_is_never_a_missing_record(
    holder: DomainHolder | None, seen: DomainEvidence
) -> None:
    verdict = judge_proof(OURS, holder, seen)
    if verdict in (MissingProof.NOT_FOUND, MissingProof.OTHER_TOKEN):
        assert seen.is_answered


def test_a_domain_without_a_proof_of_its_own_moves_to_the_owner_of_the_dns() -> None:
    """It was set before proofs existed, possibly by someone else than its owner."""
    seen = DomainEvidence(records=frozenset({OURS}), is_answered=True)
    assert judge_proof(OURS, DomainHolder(None), seen) is ProofOutcome.PROVED
    by_file = DomainEvidence(file=OURS, is_answered=True)
    assert judge_proof(OURS, DomainHolder(None), by_file) is MissingProof.RECORD_NEEDED
    assert judge_proof(OURS, None, by_file) is ProofOutcome.PROVED


@given(st.binary(min_size=TOKEN_RANDOM_BYTES, max_size=TOKEN_RANDOM_BYTES))
def test_a_token_is_found_in_each_form(random_bytes: bytes) -> None:
    token = domain_token(random_bytes)
    assert len(token) <= LABEL_LONGEST
    assert domain_fault(f"{token}.example.com", ()) is None
    assert token_of_text(f" {TEXT_PREFIX}{token}\n") == token
    for spelt in (token, token.upper()):
        assert token_of_alias(f"{spelt}.up.example.com.") == token


@given(st.text())
def test_a_text_without_the_prefix_has_no_token(text: str) -> None:
    token = token_of_text(text)
    assert token == "" or text.strip() == TEXT_PREFIX + token


@pytest.mark.parametrize("text", [TEXT_PREFIX, f"{TEXT_PREFIX}{'x' * 64}", "", "leadline", "ours"])
def test_a_text_that_is_no_proof_has_no_token(text: str) -> None:
    assert token_of_text(text) == ""


@given(names, names)
def test_names_of_the_installation_are_no_domains(name: str, other: str) -> None:
    assert domain_fault(name, {name}) is not None
    if name != other:
        assert domain_fault(name, {other}) == domain_fault(name, ())


@pytest.mark.parametrize(
    "name",
    [
        *("localhost", "up", "127.0.0.1", "[::1]", "0x7f.1", "10.1", "status.example.com."),
        *("up.localhost", "nas.local", "web.localdomain", f"{'x' * 64}.com", f"{'x.' * 130}com"),
    ],
)
def test_names_of_every_host_are_no_domains(name: str) -> None:
    assert domain_fault(name, ()) is not None


@pytest.mark.parametrize("name", ["status.example.com", "local.example", "a.internal", "x--1.io"])
def test_other_names_are_domains(name: str) -> None:
    assert domain_fault(name, ("up.example.com",)) is None
    assert not name.startswith(RECORD_PREFIX)

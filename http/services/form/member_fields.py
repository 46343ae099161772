"""Member and policy fields of the service forms, rendered and parsed.

Members are found by typing: the page has the chosen monitors and the first options only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from ....storage.core.instant import Instant, from_text
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.services.queries.pickable_objects import PickableKind
from ....storage.services.rules.epoch import Revision
from ....storage.services.rules.service_declaration import floor_us, spelt_floor
from ....storage.services.rules.service_health import (
    AggregationMode,
    MissingData,
    Policies,
    RegionMode,
)
from ....storage.services.transactions.declare_service import DeclarationDraft
from ...ui.form_inputs import NONE, FieldFault, uuids
from ...ui.form_values import stripped, value_of, whole_number
from ...ui.pickers.fields import ADD, DROP
from ...ui.pickers.objects import PickPlace, field_of, with_picks
from ...ui.shown_time import zone_shown
from ...ui.time_inputs import instant_typed
from ...wire.errors import Problem
from ...wire.route import Request

MEMBER: Final = "member"
_POLICY = "policies"
MODES: Final = (
    (AggregationMode.ALL, "all must be up"),
    (AggregationMode.ANY, "degraded if one is up, healthy if all are"),
    (AggregationMode.QUORUM, "at least N must be up"),
)
REGION_MODES: Final = (
    (RegionMode.ALL_REGIONS, "the worst region decides"),
    (RegionMode.ANY_REGION, "the best region decides"),
    (RegionMode.PER_REGION, "at least N regions must be healthy"),
)
MISSING: Final = (
    (MissingData.UNKNOWN, "is unknown"),
    (MissingData.BAD, "counts as down"),
    (MissingData.IGNORE, "is left out while another member has data"),
)


async def with_members(ask: Request, place: PickPlace) -> tuple[Request, FieldFault]:
    """Returns the request after the buttons of the members, and the fault of a typed name.

    A new member counts toward the SLI.
    """
    given = set(ask.form.get(MEMBER, ()))
    form, faults = await with_picks(ask, place, {MEMBER: PickableKind.MONITOR})
    added = [uid for uid in form.get(MEMBER, ()) if uid not in given]
    removed = value_of(ask, "act").removeprefix(f"{DROP}{MEMBER}.")
    sli = dict.fromkeys([*form.get("sli", ()), *added])
    form["sli"] = [uid for uid in sli if uid != removed]
    said = f"Members: {faults[MEMBER]}." if faults else ""
    return replace(ask, form=form), FieldFault("monitors", said) if said else NONE


def policies_typed(policies: Policies) -> dict[str, str]:
    return {
        "mode": policies.mode.value,
        "healthy_min": str(policies.healthy_min),
        "degraded_min": str(policies.degraded_min),
        "region_mode": policies.region_mode.value,
        "healthy_min_regions": str(policies.healthy_min_regions),
        "degraded_min_regions": str(policies.degraded_min_regions),
        "missing_data": policies.missing_data.value,
        "active_multiplier": str(policies.active_multiplier),
        "active_floor": spelt_floor(policies.active_floor_us),
    }


def with_defaults(typed: Mapping[str, str]) -> dict[str, str]:
    return {**policies_typed(Policies()), **typed}


def draft_of(ask: Request) -> DeclarationDraft:
    """Returns the declaration of the form. An SLI monitor is always a member."""
    sli = uuids(ask.form.get("sli", []))
    members = uuids([*ask.form.get("member", []), *ask.form.get("sli", [])])
    past = stripped(ask, "backfill_from")
    return DeclarationDraft(
        expected_revision=whole_number("revision", stripped(ask, "revision") or "0"),
        monitors=members,
        sli=sli,
        policies=_policies(ask),
        backfill_from=_backfill_start(past) if past else None,
    )


def _backfill_start(text: str) -> Instant:
    return from_text(instant_typed("backfill_from", text, zone_shown()))


def _policies(ask: Request) -> Policies:
    floor = floor_us(stripped(ask, "active_floor"))
    if floor is None:
        field = f"{_POLICY}.freshness.active_floor"
        raise Refused("invalid", field, "must be a duration such as 90s or 1m30s")

    def least(part: str, name: str) -> int:
        return whole_number(f"{_POLICY}.{part}.{name}", stripped(ask, name))

    try:
        return Policies(
            mode=AggregationMode(stripped(ask, "mode")),
            healthy_min=least("aggregation", "healthy_min"),
            degraded_min=least("aggregation", "degraded_min"),
            region_mode=RegionMode(stripped(ask, "region_mode")),
            healthy_min_regions=least("region", "healthy_min_regions"),
            degraded_min_regions=least("region", "degraded_min_regions"),
            missing_data=MissingData(stripped(ask, "missing_data")),
            active_multiplier=least("freshness", "active_multiplier"),
            active_floor_us=floor,
        )
    except ValueError:
        raise Problem("Unknown action") from None


async def values(
    tx: Tx,
    place: PickPlace,
    typed: Mapping[str, str],
    members: Sequence[str],
    sli: Sequence[str],
) -> dict[str, Any]:
    """Returns the template values that both forms share."""
    text = typed.get(f"{ADD}{MEMBER}", "")
    keys = [*members, *sli]
    return {
        "members": await field_of(tx, place, PickableKind.MONITOR, MEMBER, keys, text),
        "counting": set(sli),
        "modes": [(mode.value, words) for mode, words in MODES],
        "region_modes": [(mode.value, words) for mode, words in REGION_MODES],
        "missings": [(mode.value, words) for mode, words in MISSING],
    }


def declared(
    revision: Revision | None, uids: Mapping[int, UUID]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Returns the newest revision as form values: fields, members and SLI members."""
    if revision is None:
        return policies_typed(Policies()), [], []
    members = [str(uids[key]) for key in revision.monitors if key in uids]
    sli = [str(uids[key]) for key in revision.sli if key in uids]
    return policies_typed(revision.policies), members, sli

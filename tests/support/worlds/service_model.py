"""A model of the health of a service, which follows the specification."""

from leadline.storage.services.rules.service_health import MemberState, Policies

_RANK = {"down": 0, "degraded": 1, "healthy": 2}


def by_hand(policies: Policies, members: list[tuple[str, MemberState]]) -> tuple[str, str | None]:
    """Returns (condition, health) by the rules of the specification, one member after the other."""
    present = [(region, seen) for region, seen in members if seen != "maintenance"]
    if policies.missing_data == "bad":
        present = [(r, MemberState.DOWN if s == "missing" else s) for r, s in present]
    if policies.missing_data == "ignore" and any(s in ("up", "down") for _, s in present):
        present = [(r, s) for r, s in present if s not in ("missing", "not_begun")]
    if not present:
        return "excluded", None
    answers = []
    for guess in (MemberState.UP, MemberState.DOWN):
        guessed = [(r, guess if s in ("missing", "not_begun", "paused") else s) for r, s in present]
        answers.append(_answer(policies, guessed))
    if answers[0] == answers[1]:
        return ("bad" if answers[0] == "down" else "good"), answers[0]
    if "down" in answers:
        return "unknown", "unknown"
    return "good", "unknown"


def _answer(policies: Policies, members: list[tuple[str, MemberState]]) -> str:
    of_region = []
    for region in {region for region, _ in members}:
        ups = [seen == "up" for where, seen in members if where == region]
        if policies.mode == "all":
            of_region.append("healthy" if all(ups) else "down")
        elif policies.mode == "any":
            of_region.append("healthy" if all(ups) else "degraded" if any(ups) else "down")
        elif sum(ups) >= min(policies.healthy_min, len(ups)):
            of_region.append("healthy")
        else:
            enough = sum(ups) >= min(policies.degraded_min, len(ups))
            of_region.append("degraded" if enough else "down")
    if policies.region_mode == "any_region":
        return max(of_region, key=_RANK.__getitem__)
    if policies.region_mode == "all_regions":
        return min(of_region, key=_RANK.__getitem__)
    if of_region.count("healthy") >= min(policies.healthy_min_regions, len(of_region)):
        return "healthy"
    serving = sum(said != "down" for said in of_region)
    return "degraded" if serving >= min(policies.degraded_min_regions, len(of_region)) else "down"

"""Composite monitors. They have no probe: storage computes their state from the children."""

from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm

CHILDREN_MOST = 50
MODES = ("all", "any", "quorum")


def _rule(_target: str, config: Config) -> list[SpecFault]:
    quorum = config.get("quorum")
    if config.get("mode") != "quorum":
        return [SpecFault("config.quorum", "is used by mode quorum only")] if quorum else []
    if quorum is None:
        return [SpecFault("config.quorum", "is required by mode quorum")]
    children = config.get("children")
    many = len(children) if isinstance(children, list) else 0
    if not isinstance(quorum, int) or not 1 <= quorum <= many:
        return [SpecFault("config.quorum", "must be 1 to the number of children")]
    return []


SPEC = Spec(
    type=MonitorType.COMPOSITE,
    help="Computed from other monitors, its children. It is never probed.",
    target=TargetForm.NONE,
    fields=(
        Field(
            name="children",
            type=FieldType.IDS,
            help="Ids of its children, monitors of this project.",
            required=True,
            most=CHILDREN_MOST,
        ),
        Field(
            name="mode",
            type=FieldType.CHOICE,
            help="all: all children must be up; any: one must be up; quorum: see quorum.",
            default="all",
            choices=MODES,
        ),
        Field(
            name="quorum",
            type=FieldType.INTEGER,
            help="For mode quorum: number of down children that makes it down.",
            least=1,
            most=CHILDREN_MOST,
        ),
    ),
    probed=False,
    rule=_rule,
)

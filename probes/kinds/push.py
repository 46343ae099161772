"""Push: the target reports in by itself, so there is nothing to probe and nothing to set."""

from ..check.monitor_spec import MonitorType, Spec, TargetForm

SPEC = Spec(
    type=MonitorType.PUSH,
    help="The target calls us; silence past the interval and its grace is DOWN.",
    target=TargetForm.NONE,
    probed=False,
)

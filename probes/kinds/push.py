"""Push monitors. The target reports in, so they have no probe and no settings."""

from ..check.monitor_spec import MonitorType, Spec, TargetForm

SPEC = Spec(
    type=MonitorType.PUSH,
    help="The target calls us; silence past the interval and its grace is DOWN.",
    target=TargetForm.NONE,
    probed=False,
)

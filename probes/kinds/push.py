"""Push monitors. The target reports in, so they have no probe."""

from ..check.monitor_spec import Field, FieldType, MonitorType, Spec, TargetForm

SPEC = Spec(
    type=MonitorType.PUSH,
    help="The target calls us; silence past the interval and its grace is DOWN.",
    target=TargetForm.NONE,
    probed=False,
    fields=(
        Field(
            name="failure_keywords",
            type=FieldType.TEXT,
            help="One in each line. A report whose body contains one of them is down.",
            default="",
            multiline=True,
        ),
        Field(
            name="success_keywords",
            type=FieldType.TEXT,
            help="One in each line. A report whose body contains none of them is down.",
            default="",
            multiline=True,
        ),
        Field(
            name="keep_bodies",
            type=FieldType.BOOLEAN,
            help="Keep the last 20 bodies, encrypted and for editors only.",
            default=False,
        ),
    ),
)

"""The option --profile, and the completion of its values."""

import os

import click
from click.shell_completion import CompletionItem

from ....storage.core.slug import is_slug
from .profile_file import BadProfiles, profile_path, read_profiles


class ProfileParam(click.ParamType[str]):
    """Name of a profile. It has the form of a slug."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if not is_slug(str(value)):
            self.fail("must have lower-case letters, digits and hyphens only", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Returns the known names. Completion prints no errors, so a bad file has no names."""
        try:
            known = read_profiles(profile_path(os.environ)).profiles
        except BadProfiles:
            return []
        return [CompletionItem(name) for name in sorted(known) if name.startswith(incomplete)]


profile_option = click.option(
    "--profile",
    type=ProfileParam(),
    help="Profile of `leadline login`.  [default: $LEADLINE_PROFILE, else the last sign-in]",
)

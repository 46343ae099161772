"""A directory of bundles: the projects that its scope allows, and the status of a wrong file."""

import pytest

from leadline.storage.bundles.rules.file_provider import FileStatus, may_name, scope_of, wrong


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("", True),
        ("harbour/shop", True),
        ("harbour/*", True),
        ("harbour/other", False),
        ("other/shop", False),
        ("other/*", False),
        ("harbour", False),
        ("harbour/shop/more", False),
    ],
)
def test_a_scope_allows_the_projects_that_it_names(scope: str, allowed: bool) -> None:
    assert may_name(scope, "harbour", "shop") is allowed


def test_a_scope_is_of_the_instance_an_organization_or_a_project() -> None:
    assert scope_of("") == ("instance", "", "")
    assert scope_of("harbour/*") == ("organization", "harbour", "")
    assert scope_of("harbour/shop") == ("project", "harbour", "shop")


def test_a_wrong_file_is_degraded_where_older_content_of_it_is_applied() -> None:
    assert wrong(0) is FileStatus.REJECTED
    assert wrong(1) is FileStatus.DEGRADED

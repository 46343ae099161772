"""The file of the encryption key: its owner, and a symbolic link in its place."""

import os
import pwd
from pathlib import Path

import pytest

from leadline.daemon.process.first_start import write_key_file
from leadline.storage.engine.embedded_layout import give_to_owner

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes users")


@as_root
def test_a_key_of_root_belongs_to_the_owner_of_its_folder(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(tmp_path, nobody.pw_uid, nobody.pw_gid)
    write_key_file(tmp_path / "key", "k")
    status = (tmp_path / "key").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (nobody.pw_uid, 0o600)


@as_root
def test_a_link_that_replaces_the_new_file_exposes_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the folder can replace the file as soon as it exists."""
    nobody = pwd.getpwnam("nobody")
    folder, target = tmp_path / "data", tmp_path / "of-root"
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    target.write_text("secret")

    def replace_and_give(descriptor: int, of: Path) -> None:
        (folder / "key").unlink()
        (folder / "key").symlink_to(target)
        give_to_owner(descriptor, of)

    monkeypatch.setattr("leadline.daemon.process.first_start.give_to_owner", replace_and_give)
    write_key_file(folder / "key", "k")
    assert target.stat().st_uid == 0
    assert target.read_text() == "secret"

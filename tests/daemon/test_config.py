"""Configuration: all errors are reported together, and an unknown key is an error."""

from pathlib import Path

import pytest

from leadline.daemon.config.load import BadConfig, load


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "leadline.toml"
    file.write_text(text)
    return file


def faults(tmp_path: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        load(write(tmp_path, text), environ)
    return caught.value.faults


def test_the_defaults_apply_without_a_file_or_environment() -> None:
    settings = load(None, {})
    assert settings.server.listen == "127.0.0.1:8080"
    assert settings.heartbeats.retention_days == 30
    assert settings.prober.regions == ("core",)


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    text = 'nope = 1\n[server]\nlitsen = "x"\n[prober]\nconcurrency = "many"\n'
    found = faults(tmp_path, text, LEADLINE_GATE__INFLIGHT="9")
    assert len(found) == 4
    for part in ("nope", "server.litsen", "prober.concurrency", "gate.inflight"):
        assert any(fault.startswith(part) for fault in found), part


def test_a_wrong_type_hides_no_other_fault(tmp_path: Path) -> None:
    text = (
        '[server]\nlisten = "nowhere"\n'
        '[prober]\nconcurrency = "many"\nconnectivity_check = "zz"\n'
        '[session]\nsecure = "perhaps"\n[mail]\nsmtp_username = "u"\n'
        "[security]\nadmin_email = 7\n"
        '[providers.file.Shop]\ndirectory = "bundles"\n[providers.file.mill]\n'
        "[log]\nlevel = 1\n"
    )
    assert sorted(fault.split(":")[0] for fault in faults(tmp_path, text)) == [
        "log.level",
        "mail.smtp_password",
        "prober.concurrency",
        "prober.connectivity_check",
        "providers.file.Shop",
        "providers.file.Shop.directory",
        "providers.file.mill.directory",
        "security.admin_email",
        "server.listen",
        "session.secure",
    ]


@pytest.mark.parametrize("section", ["mail = 1\n", "[mail]\nenabled = true\nsmtp_port = 'x'\n"])
def test_a_default_in_place_of_a_wrong_value_is_no_fault(tmp_path: Path, section: str) -> None:
    (fault,) = faults(tmp_path, section)
    assert fault.startswith(("mail: must be a section", "mail.smtp_port: "))


@pytest.mark.parametrize("text", ["zz", "host", "host:", ":443", "host:0", "host:65536", "443"])
def test_the_connectivity_check_is_a_host_and_a_port(tmp_path: Path, text: str) -> None:
    found = faults(tmp_path, f'[prober]\nconnectivity_check = "{text}"\n')
    assert found == ["prober.connectivity_check: must be host:port"]
    for good in ("host:443", "[::1]:53"):
        load(write(tmp_path, f'[prober]\nconnectivity_check = "{good}"\n'), {})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('enabled = true\nfrom = "a@b.test"\n', "mail.smtp_host"),
        ('enabled = true\nsmtp_host = "mx"\n', "mail.from"),
        ('enabled = true\nsmtp_host = "mx"\nfrom = "nobody"\n', "mail.from"),
        ('enabled = true\nsmtp_host = "mx"\nfrom = "a@b.test\\nBcc: c@d"\n', "mail.from"),
        ('smtp_username = "u"\n', "mail.smtp_password"),
    ],
)
def test_incomplete_mail_settings_are_errors(tmp_path: Path, text: str, key: str) -> None:
    found = faults(tmp_path, f"[mail]\n{text}")
    assert [fault.split(":")[0] for fault in found] == [key]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('token = "short"', ["pull.token"]),
        ('regions = [{ name = "The attic" }]', ["pull.regions[0].name"]),
        ('regions = [{ name = "eu" }, { name = "eu" }]', ["pull.regions[1].name"]),
        ('regions = [{ name = "eu", organizations = ["A b"] }]', ["pull.regions[0].organizations"]),
        ('agents = [{ name = "a", region = "eu", token = "" }]', ["pull.agents[0].token"]),
        (
            'agents = [{ name = "a", region = "eu", token = "fifteen-letters" }]',
            ["pull.agents[0].token"],
        ),
        (
            'agents = [{ name = "a", region = "eu", token = "sixteen-letters-1" },'
            ' { name = "a", region = "E", token = "sixteen-letters-2" }]',
            ["pull.agents[1].name", "pull.agents[1].region"],
        ),
        (
            'agents = [{ name = "a", region = "eu", token = "sixteen-letters-1" },'
            ' { name = "b", region = "us", token = "sixteen-letters-1" }]',
            ["pull.agents[1].token"],
        ),
        (
            'token = "sixteen-letters-1"\n'
            'agents = [{ name = " ", region = "eu", token = "sixteen-letters-1" }]',
            ["pull.agents[0].name", "pull.agents[0].token"],
        ),
        ('regions = [{ name = "eu", orgs = ["a"] }]', ["pull.regions[0].orgs"]),
        ('agents = [{ name = "a", region = "eu" }]', ["pull.agents[0].token"]),
        (
            'agents = [{ name = "a", region = 1, token = "sixteen-letters-1" }, 7,'
            ' { name = "a", region = "E", token = 1 }]',
            [
                "pull.agents[0].region",
                "pull.agents[1]",
                "pull.agents[2].token",
                "pull.agents[2].name",
                "pull.agents[2].region",
            ],
        ),
    ],
)
def test_the_identity_of_an_agent_must_be_plain(tmp_path: Path, text: str, keys: list[str]) -> None:
    found = faults(tmp_path, f"[pull]\n{text}\n")
    assert [fault.split(":")[0] for fault in found] == keys
    assert "letters" not in str(found)


def test_agents_and_their_regions_are_read(tmp_path: Path) -> None:
    pull = load(
        write(
            tmp_path,
            '[pull]\nregions = [{ name = "attic", organizations = ["acme"] }]\n'
            'agents = [{ name = "a", region = "eu", token = "sixteen-letters-1" }]\n',
        ),
        {},
    ).pull
    assert (pull.regions[0].name, pull.regions[0].organizations) == ("attic", ("acme",))
    assert pull.agents[0].region == "eu"


def test_a_sender_may_have_a_name(tmp_path: Path) -> None:
    text = '[mail]\nenabled = true\nsmtp_host = "mx"\nfrom = "Lead Line <a@b.test>"\n'
    assert load(write(tmp_path, text), {}).mail.from_ == "Lead Line <a@b.test>"


@pytest.mark.parametrize(
    ("text", "is_fault"),
    [
        ("[server]\nprocesses = 4\n", False),
        ("[server]\nprocesses = 5\n", True),
        ("[server]\nprocesses = 5\n[database]\npool_size = 8\n", False),
        ("[server]\nprocesses = 16\n[database]\ndsn = 'host=db'\n", False),
        ("[server]\nprocesses = 17\n[database]\ndsn = 'host=db'\n", True),
        ("[server]\nprocesses = 0\n", True),
    ],
)
def test_the_processes_fit_the_connections_of_the_database(
    tmp_path: Path, text: str, is_fault: bool
) -> None:
    if is_fault:
        (fault,) = faults(tmp_path, text)
        assert fault.startswith("server.processes: ")
    else:
        load(write(tmp_path, text), {})


def test_contradicting_settings_are_errors(tmp_path: Path) -> None:
    text = '[server]\nlisten = "nowhere"\n[security]\nencryption_key = "short"\n'
    found = faults(tmp_path, text)
    assert [fault.split(":")[0] for fault in found] == ["server.listen", "security.encryption_key"]


def test_no_fault_repeats_a_secret(tmp_path: Path) -> None:
    text = '[security]\nencryption_key = "hunter2-hunter2"\nadmin_email = "a@b.c"\n'
    text += 'admin_password = "hunter2"\n'
    assert all("hunter2" not in fault for fault in faults(tmp_path, text))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "[gate]\nevaluate_inflight_process = 3\n")
    environ = {
        "LEADLINE_GATE__EVALUATE_INFLIGHT_PROCESS": "9",
        "LEADLINE_PROBER__REGIONS": "core,eu",
        "LEADLINE_PROBER__DENY_NETWORKS": '["10.0.0.0/8"]',
        "LEADLINE_SESSION__SECURE": "true",
        "LEADLINE_DATA_DIR": "/var/lib/x",
        "LEADLINE_URL": "https://not.configuration",
        "LEADLINE_TOKEN": "not configuration either",
    }
    settings = load(file, environ)
    assert settings.gate.evaluate_inflight_process == 9
    assert settings.prober.regions == ("core", "eu")
    assert settings.prober.deny_networks == ("10.0.0.0/8",)
    assert settings.session.secure is True
    assert settings.data_dir == "/var/lib/x"


def test_a_credential_of_systemd_gives_a_secret(tmp_path: Path) -> None:
    (tmp_path / "database.dsn").write_text("host=db\n")
    settings = load(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert settings.database.dsn == "host=db"


def test_a_credential_over_64_kib_is_a_fault_and_not_cut(tmp_path: Path) -> None:
    """The limit counts bytes: ä has two."""
    file, environ = tmp_path / "database.dsn", {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    longest = "ä" * (32 << 10)
    file.write_text(longest, encoding="utf-8")
    assert load(None, environ).database.dsn == longest
    file.write_text(longest + "b", encoding="utf-8")
    with pytest.raises(BadConfig, match=r"database\.dsn: .* larger than 65536 bytes"):
        load(None, environ)


def test_a_file_that_is_not_there_is_a_fault_and_no_default(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="No such file"):
        load(tmp_path / "missing.toml", {})


@pytest.mark.parametrize("text", ["[server", "a = ", "\x00"])
def test_a_file_that_is_not_toml_is_an_error(tmp_path: Path, text: str) -> None:
    assert len(faults(tmp_path, text)) == 1


def test_single_sign_on_reports_its_keys_only_if_it_is_enabled(tmp_path: Path) -> None:
    lan = '[server]\npublic_base_url = "http://nas.lan:8080"\n'
    for text in (lan, lan + '[oidc]\nissuer = "http://idp.lan"\n'):
        assert load(write(tmp_path, text), {}).server.public_base_url == "http://nas.lan:8080"
    enabled = faults(tmp_path, lan + '[oidc]\nenabled = true\nissuer = "http://idp.lan"\n')
    assert {fault.partition(":")[0] for fault in enabled} >= {"oidc.redirect_url", "oidc.issuer"}


def test_the_public_address_and_the_path_prefix_are_compared(tmp_path: Path) -> None:
    text = '[server]\nbase_path = "/leadline"\npublic_base_url = "https://apps.example.com"\n'
    (found,) = faults(tmp_path, text)
    assert found == ("server.public_base_url: must have the path of server.base_path, /leadline")
    (found,) = faults(tmp_path, '[server]\nbase_path = "leadline/"\n')
    assert found.startswith("server.base_path: must be empty or a path such as /leadline")
    (found,) = faults(tmp_path, '[server]\nbase_path = "/status"\n')
    assert found.startswith("server.base_path: must not begin with one of /admin, ")

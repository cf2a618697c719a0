from __future__ import annotations

import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.redaction import Redactor
from services.telemetry.logs import LineFormatter

TOKEN = "MTA5" + "x" * 22 + ".GabcDE." + "y" * 38
KEY_LINE, KEY_END = "Kq3Zr8Tn5Wv1Ym6P" * 4, "-----END RSA PRIVATE KEY-----"
HIDDEN = "[redacted: private key]\n"
KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0000000000\nabc=\n-----END RSA PRIVATE KEY-----"
redact = Redactor().text
PREFIXES = [
    "npm_",
    "pypi-AgE",
    "dop_v1_",
    "doo_v1_",
    "shpat_",
    "shpss_",
    "lin_oauth_",
    "nfp_",
    "PMAK-",
    "CFPAT-",
    "ATCTT3x",
    "whsec_",
    "glsa_",
    "glrt-",
    "dckr_pat_",
    "gsk_",
    "xai-",
    "nvapi-",
    "tskey-auth-",
    "sntrys_",
    "figd_",
    "lin_api_",
    "hvs.",
    "ya29.",
    "ATATT3x",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"login with {TOKEN} failed", "login with [redacted: discord token] failed"),
        ("CREATE USER x IDENTIFIED BY 'hunter2hunter2';", "CREATE USER x IDENTIFIED BY '[redacted: secret]';"),
        ("alter role x with password 'hunter2hunter2'", "alter role x with password '[redacted: secret]'"),
        ("mfa." + "a1" * 40, "[redacted: discord token]"),
        ("POST https://discord.com/api/webhooks/1234567890/abc-DEF_9 404", "POST [redacted: webhook] 404"),
        ("https://canary.discordapp.com/api/v10/interactions/1/tok/callback", "[redacted: webhook]/callback"),
        ("https://hooks.slack.com/services/T0/B0/x", "[redacted: webhook]"),
        ("use sk-proj-abcDEF1234567890abcdef.", "use [redacted: api key]."),
        ("sk_live_abcDEF1234567890abcdef", "[redacted: api key]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted: api key]"),
        ("AIza" + "Sy0123456789012345678901234567890123", "[redacted: api key]"),
        ("ghp_" + "a" * 36, "[redacted: api key]"),
        ("github_pat_" + "a" * 50, "[redacted: api key]"),
        ("xoxb-1234567890-abcdef", "[redacted: api key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted: api key]"),
        *((each + "a1B2" * 16, "[redacted: api key]") for each in PREFIXES),
        ("SG." + "aB1" * 7 + "." + "cD2" * 14, "[redacted: api key]"),
        ("the bot 110201543:AA" + "Hb1" * 11 + ", is it right?", "the bot [redacted: api key], is it right?"),
        ("https://x.webhook.office.com/webhookb2/a-1@b-2/IncomingWebhook/c3/d-4", "[redacted: webhook]"),
        ("https://hooks.zapier.com/hooks/catch/123456/abcdefg", "[redacted: webhook]"),
        ("Set-Cookie: sid=aB3dE5fG7hI9jK1l; HttpOnly", "Set-Cookie: sid=[redacted: secret]; HttpOnly"),
        (
            "https://a.blob.core/c?sv=1&sig=aB3dE5f%2FG7%3D&se=2",
            "https://a.blob.core/c?sv=1&sig=[redacted: secret]&se=2",
        ),
        ("client-key-data: LS0tLS1CRUdJTg==", "client-key-data: [redacted: secret]"),
        ("machine x login bob password aB3dE5fG7h", "machine x login bob password [redacted: secret]"),
        ("curl -u admin:aB3dE5fG7h http://x", "curl -u admin:[redacted: secret] http://x"),
        ('{"auth": "YWRtaW46aHVudGVyMg=="}', '{"auth": "[redacted: secret]"}'),
        ("postgres://app:Tr0ub@dor3@xyz@db/x?a=b@c", "postgres://[redacted: secret]@db/x?a=b@c"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted: secret]"),
        ("basic: Basic dXNlcjpwYXNzd29yZA==", "basic: Basic [redacted: secret]"),
        ("login user=a pw=hunter2 ok", "login user=a pw=[redacted: secret] ok"),
        ("password%3Dhunter17 x", "password%3D[redacted: secret] x"),
        ("password\\u003dhunter16 x", "password\\u003d[redacted: secret] x"),
        ("&lt;password&gt;hunter20&lt;/password&gt;", "&lt;password&gt;[redacted: secret]&lt;/password&gt;"),
        ("aws AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY ok", "aws [redacted: api key] ok"),
        ("aws AKIAIOSFODNN7EXAMPLE denied", "aws [redacted: api key] denied"),
        ('{"Authorization": "Bot abc.def"}', '{"Authorization": "Bot [redacted: secret]"}'),
        ("curl -H 'authorization:abcdef'", "curl -H 'authorization:[redacted: secret]'"),
        ("got Bearer abc123def456 back", "got Bearer [redacted: secret] back"),
        ("password=hunter2", "password=[redacted: secret]"),
        ("Passwd : hunter2, then", "Passwd : [redacted: secret] then"),
        ("DB_PWD='two words' # why", "DB_PWD='[redacted: secret]' # why"),
        ('"client_secret": "a\\"b c", "x": 1', '"client_secret": "[redacted: secret]", "x": 1'),
        (r"{\"token\": \"abc def\", \"x\": 1}", r"{\"token\": \"[redacted: secret]\", \"x\": 1}"),
        ("https://x.org/?token=abc&page=2", "https://x.org/?token=[redacted: secret]&page=2"),
        ("api_key: abc", "api_key: [redacted: secret]"),
        ("password: token: abc", "password: token: [redacted: secret]"),
        ('token = "unfinished', 'token = "[redacted: secret]'),
        ('secret="""abc', 'secret="""[redacted: secret]'),
        ("secret='''abc", "secret='''[redacted: secret]"),
        ('secret="""abc\ndef"', 'secret="""[redacted: secret]\n[redacted: secret]'),
        ('secret="""abc\n\ndef', 'secret="""[redacted: secret]\n[redacted: secret]\n[redacted: secret]'),
        ('secret="""abc\ndef""" # two', 'secret="""[redacted: secret]\n[redacted: secret]""" # two'),
        ('secret="""abc""" # one' + "\n" * 30_000, 'secret="""[redacted: secret]""" # one' + "\n" * 30_000),
        ('secret="""abc\n' + "next\n" * 9_000, 'secret="""[redacted: secret]\n' + "next\n" * 9_000),
        ("postgres://bob:hunter2@db.example.org/x", "postgres://[redacted: secret]@db.example.org/x"),
        ("redis://:hunter2@cache", "redis://[redacted: secret]@cache"),
        *(
            (before + "Zq7Yh2Kp9Vx4Lm3Tn8Rb5Wc6" + after, f"{before}[redacted: secret]{after}")
            for before, after in (
                ("**token:** ", ""),
                ("**API key**: `", "`."),
                ("run tool --password ", " now"),
                ("tool --auth-token '", "'"),
                ("git clone https://", "@github.com/x.git"),
            )
        ),
        *(
            (f"{each}{'Zq7Yh2Kp' * 4}", "[redacted: api key]")
            for each in ("GOCSPX-", "sbp_", "pscale_tkn_", "lsv2_pt_")
        ),
        (
            f"Public-Lines: 1\n{KEY_LINE}\nPrivate-Lines: 3\n{KEY_LINE}\n{KEY_LINE}\nab=\nPrivate-MAC: 00",
            f"Public-Lines: 1\n{KEY_LINE}\nPrivate-Lines: 3\n{HIDDEN * 3}Private-MAC: 00",
        ),
        ("Private-Lines: 14", "Private-Lines: 14"),
        *(
            (f"{before}Zq7Yh2Kp9Zq7Yh2KpXw{after}", f"{before}[redacted: secret]{after}")
            for before, after in (
                ("<password>", "</password>"),
                ('{"auths":{"r.io":{"auth":"', '"}}}'),
                ("sshpass -p ", " ssh x"),
                ("mysql -u root -p", " db"),
            )
        ),
        (f'{{"kty":"RSA","n":"x","d":"{KEY_LINE}"}}', '{"kty":"RSA","n":"x","d":"[redacted: secret]"}'),
        ("<password>hunter</password> <password>${DB_PASSWORD_1}</password>",) * 2,
        (KEY_BLOCK, "\n".join(["[redacted: private key]"] * 4)),
        (f"a\n{KEY_BLOCK}\nb", "a\n" + "[redacted: private key]\n" * 4 + "b"),
        (KEY_BLOCK.replace("\n", "\\n"), "[redacted: private key]"),
        # The second message of two that hold a key, and a key with heads of which the end is missing.
        (f"so:\n{KEY_LINE}\n{KEY_LINE}\n{KEY_LINE[:30]}\n{KEY_END}\nwhy?", "so:\n" + HIDDEN * 4 + "why?"),
        (f"so:\n> {KEY_LINE}\n> {KEY_LINE}\n> ab=\n> {KEY_END}\nwhy?", "so:\n> " + HIDDEN * 4 + "why?"),
        (KEY_BLOCK[:31] + f"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n{KEY_LINE}\nwhy?", HIDDEN * 5 + "why?"),
        (f"what ends with {KEY_END}", f"what ends with {KEY_END}"),
        (
            KEY_BLOCK[:58] + "\nThe rest is prose.",
            "[redacted: private key]\n[redacted: private key]\nThe rest is prose.",
        ),
    ],
)
def test_the_shapes_of_secrets_are_known(text: str, expected: str) -> None:
    """Pitfalls 22 and 47."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "pass --token before --port 8080, and **token:** <yours>, https://documentation-of-the-project@x",
        "postgres://application_of_the_team@db.example.org/x",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "job 123e4567-e89b-12d3-a456-426614174000 on <#1458745245675032710> by 80351110224678912",
        "qa_20260201_031056.228000 in 2026-W05.txt",
        "https://example.org/docs/install.html?page=2#top and user@example.org",
        "http://localhost:8080/a@b",
        "the scikit sk-learn-based-classification task-abcdefghijklmnopqrs1",
        "a bearer token, bearer authentication, and the Bot is offline",
        'set token: "<your bot token>" or password=${DB_PASSWORD} or secret: {{ secret }} or pwd=$PWD',
        "token: null, password=None; max_tokens: 4000, llm_tokens_total{step} 12",
        "What is a token? A secret: ",
        'secret="""""" # none yet',
        'set secret="""',
        "api key:\n\nas above",
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "AAAAC3NzaC1lZDI1NTE5AAAAIJ1cmZhbHNlcm9vdEB3aGVyZXZlcg0123456789",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "",
    ],
)
def test_what_people_ask_about_stays(text: str) -> None:
    assert redact(text) == text


fragments = st.one_of(
    st.text(st.characters(), max_size=6),
    st.sampled_from(
        [
            *(TOKEN, KEY_BLOCK, KEY_BLOCK[:70], "password", "token", "secret", "api key", "Authorization: Bearer "),
            *(
                "bearer ",
                "=",
                ": ",
                '"',
                "'",
                "\\",
                '\\"',
                '"""',
                "&",
                "://",
                "@",
                ":",
                "a1b2c3d4e5f6",
                "hunter2",
                "\n",
                "\r\n",
            ),
            *("\u2028", "\x85", " ", "<x>", "[redacted: secret]", "[redacted: ", "]", "null", "*", "${"),
            *("https://discord.com/api/webhooks/1/a", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
            "sk-abcDEF1234567890ab",
        ]
    ),
)
texts = st.lists(fragments, max_size=12).map("".join)
secrets = st.lists(st.text('abcXYZ019_-+/=. "\\%$', min_size=8, max_size=12), max_size=3)


@given(texts)
def test_the_number_of_lines_stays(text: str) -> None:
    redacted = redact(text)
    assert redacted.count("\n") == text.count("\n")
    assert len(redacted.splitlines()) == len(text.splitlines())


@given(texts)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(secrets, st.data())
def test_known_values_never_survive(known: list[str], data: st.DataObject) -> None:
    """Pitfall 22."""
    redactor = Redactor(known)
    parts = data.draw(st.lists(st.one_of(fragments, st.sampled_from(known)) if known else fragments, max_size=8))
    text = "".join(parts)
    redacted = redactor.text(text)
    for value in known:
        if len(value.strip()) >= 6:
            assert value.strip() not in redacted
    assert len(redacted.splitlines()) == len(text.splitlines())
    assert redactor.text(redacted) == redacted


def test_known_values_are_found_as_they_are_and_in_urls_and_json() -> None:
    redactor = Redactor(['pä"ss word/1', "first line\nsecond line", "none", "", "secret"])
    text = 'x pä"ss word/1 p%C3%A4%22ss%20word%2F1 p\\u00e4\\"ss word/1 pä\\"ss word/1 y second line\nfirst line none'
    label = "[redacted: known secret]"
    assert redactor.text(text) == f"x {label} {label} {label} {label} y {label}\n{label} none"
    assert redactor.text('password=pä"ss word/1') == f"password={label}"


def test_a_known_value_that_is_no_proper_text_is_hidden_all_the_same() -> None:
    assert Redactor(["half\ud83d of it"]).text("x half\ud83d of it") == "x [redacted: known secret]"


def test_values_too_short_to_be_secrets_hide_nothing() -> None:
    assert Redactor(["abcde", "uvwxyz"]).text("abcde uvwxyz") == "abcde [redacted: known secret]"


def test_how_many_there_were_of_each_kind_is_told() -> None:
    """Two shapes may have one label."""
    redactor = Redactor(["never-to-be-seen"])
    text, counts = redactor.redact_and_count(
        f"password=hunter2 and Bearer abc123def456, pwd=x1 {REAL} never-to-be-seen"
    )
    assert counts == {"[redacted: known secret]": 1, "[redacted: api key]": 1, "[redacted: secret]": 3}
    assert sum(text.count(label) for label in counts) == 5
    assert redactor.redact_and_count("nothing to hide") == ("nothing to hide", {})


def test_the_longest_known_value_goes_first() -> None:
    assert Redactor(["abcdef", "abcdefghij"]).text("abcdefghij") == "[redacted: known secret]"


def test_finished_log_lines_are_redacted_with_their_tracebacks() -> None:
    """Pitfall 22."""
    formatter = LineFormatter("text", Redactor(["s3cr3t-value"]).text)
    try:
        raise ValueError("bad s3cr3t-value, password=x1")  # noqa: TRY301 (its traceback is wanted)
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, "f", 1, "%s failed", (f"token={TOKEN}",), __import__("sys").exc_info()
        )
    lines = formatter.format(record).splitlines()
    assert "token=[redacted: discord token] failed" in lines[0]
    assert lines[-1] == "ValueError: bad [redacted: known secret], password=[redacted: secret]"
    assert "s3cr3t-value" not in "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "token:" * 20_000,
        "-----BEGIN PRIVATE KEY-----\n" * 5000,
        "-----END PRIVATE KEY-----\n" * 5000,
        ("A" * 64 + "\n") * 2000 + "-----END PRIVATE KEY-----" * 500,
        "-----BEGIN PRIVATE KEY-----" + "\nDEK-Info: x" * 10_000,
        "://" * 30_000 + "@",
        "M" * 100_000,
        "A" * 100_000 + " token secret bearer :// @ sk- eyJ authorization -----BEGIN",
        "eyJ" * 30_000,
        "Private-Lines: 1\n" * 5_000 + "A" * 100_000,
        "Private-Lines: 1\n" + ("A" * 64 + "\n") * 2_000,
        "mysql " * 20_000,
        '"auth":"' * 15_000 + "A" * 50_000,
        "<password>" * 12_000,
        "<" + "password" * 15_000,
        "authorization: " * 10_000,
        "sk-" * 30_000,
        'password="' + "\\" * 100_000,
        "a" * 50_000 + ".b" * 25_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 2


REAL = "sk-proj-Qm7vR2kLz9TbW4nXc1pYh8Jd"


@pytest.mark.parametrize(
    "text",
    [
        "git clone https://<user>:<pass>@git.example.org/x.git and postgres://user:pass@db/x",
        "[Tokens](tokens.md#token=abc) and [secret]: https://x.example/?token=abc",
        "export RESTIC_PASSWORD=hunter2 && curl -H 'Authorization: Bearer $TOKEN'",
        'password: "correct horse battery staple"  # a sample',
        "key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "OPENAI_API_KEY=sk-your-key-comes-here-0000",
        "ghp_" + "x" * 36,
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ],
)
def test_what_documentation_shows_stays(text: str) -> None:
    assert Redactor(["never-to-be-seen"]).documentation_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use never-to-be-seen", "use [redacted: known secret]"),
        (f"key {REAL}", "key [redacted: api key]"),
        ("MTA5NDIyMzQ0NTU2Njc3ODg5.GabcDE.Kq3Zr8Tn5Wv1Ym6Pb2Lc9Xd4Fh7Js0Gt", "[redacted: discord token]"),
        ("https://discord.com/api/webhooks/1458745245675032710/Kq3Zr8_DEF-9", "[redacted: webhook]"),
        (
            f"a\n-----BEGIN OPENSSH PRIVATE KEY-----\n{'AAAAAAAB' * 8}\n-----END OPENSSH PRIVATE KEY-----\nb",
            "a\n" + "[redacted: private key]\n" * 3 + "b",
        ),
    ],
)
def test_known_secrets_and_working_tokens_are_hidden_in_documentation_too(text: str, expected: str) -> None:
    """Pitfall 22."""
    assert Redactor(["never-to-be-seen"]).documentation_text(text) == expected

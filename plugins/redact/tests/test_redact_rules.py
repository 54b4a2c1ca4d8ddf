"""What the shipped rules take for a secret, and what not. Each secret is made up, and put together at run time."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable

import pytest
from dsh_plugin_redact import Redactor, build_redactor
from hypothesis import given
from hypothesis import strategies as st

LETTERS = "fAkE0" * 40


def fake(length: int) -> str:
    """So many characters that no service ever gave out."""
    return LETTERS[:length]


def pem(kind: str) -> str:
    dashes = "-" * 5
    return f"{dashes}BEGIN {kind}{dashes}\n{fake(64)}\n{fake(40)}==\n{dashes}END {kind}{dashes}"


def basic(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


#: A name for the case, the secret, the kind that its mask shows.
SECRETS: list[tuple[str, str, str]] = [
    ("rsa", pem("RSA PRIVATE " + "KEY"), "private-key"),
    ("pkcs8", pem("PRIVATE " + "KEY"), "private-key"),
    ("openssh", pem("OPENSSH PRIVATE " + "KEY"), "private-key"),
    ("pgp", pem("PGP PRIVATE " + "KEY BLOCK"), "private-key"),
    ("one-line", pem("EC PRIVATE " + "KEY").replace("\n", "\\n"), "private-key"),
    ("aws", "AKIA" + "FAKE" * 4, "aws-key"),
    ("aws-session", "ASIA" + "FAKE" * 4, "aws-key"),
    ("gcp", "AIza" + fake(35), "gcp-key"),
    ("gcp-oauth", "ya29." + fake(60), "gcp-key"),
    ("gcp-client", "GOCSPX-" + fake(28), "gcp-key"),
    ("azure-client", fake(3) + "8Q~" + fake(34), "azure-key"),
    *((f"github-{mark}", f"gh{mark}_" + fake(36), "github-token") for mark in "pousr"),
    ("github-fine", "github_" + "pat_" + fake(22) + "_" + fake(59), "github-token"),
    ("gitlab", "glpat" + "-" + fake(20), "gitlab-token"),
    ("gitlab-routable", "glpat" + "-" + fake(24) + ".01." + fake(9), "gitlab-token"),
    ("bitbucket", "ATBB" + fake(32), "bitbucket-token"),
    ("atlassian", "ATATT3" + "xFfGF0" + fake(60), "bitbucket-token"),
    ("openai", "sk-" + fake(48), "model-key"),
    ("openai-project", "sk-" + "proj-" + fake(60), "model-key"),
    ("anthropic", "sk-" + "ant-api03-" + fake(80), "model-key"),
    ("groq", "gsk_" + fake(52), "model-key"),
    ("hugging-face", "hf_" + fake(34), "model-key"),
    ("xai", "xai-" + fake(60), "model-key"),
    ("slack-bot", "xoxb" + "-1234567890-" + fake(24), "slack-token"),
    ("slack-app", "xapp" + "-1-A0FAKE-" + fake(24), "slack-token"),
    ("slack-refresh", "xoxe.xoxp" + "-1-" + fake(30), "slack-token"),
    ("jwt", "eyJ" + fake(20) + "." + "eyJ" + fake(40) + "." + fake(43), "json-web-token"),
    ("jwt-unsigned", "eyJ" + fake(20) + "." + "eyJ" + fake(40) + ".", "json-web-token"),
    ("stripe", "sk" + "_live_" + fake(24), "service-token"),
    ("npm", "npm_" + fake(36), "service-token"),
    ("pypi", "pypi-A" + fake(60), "service-token"),
    ("vault", "hvs" + "." + fake(30), "service-token"),
    ("sendgrid", "SG" + "." + fake(22) + "." + fake(43), "service-token"),
]

#: A text with ``{}`` where a secret stands, the secret, the kind that its mask shows.
PLACED: list[tuple[str, str, str]] = [
    ("curl -H 'X-Auth: Bearer {}'", fake(12), "bearer-credential"),
    ("sent bearer {} to it", "x" * 24, "bearer-credential"),
    ("Proxy sent Basic {} again", basic("ada:not-a-password"), "basic-credential"),
    ("Secret access key: {}", fake(40), "aws-secret"),
    ("aws_access_key {}", fake(40), "aws-secret"),
    ("https://acct.blob.example/x?sv=2024&sig={}&se=1", fake(43) + "%3D", "azure-key"),
    ("DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=core.example", fake(86) + "==", "secret"),
    ("Endpoint=sb://x.example/;SharedAccessKey={}", fake(43) + "=", "secret"),
    ("https://hooks.slack.com/services/{}", "T0FAKE/B0FAKE/" + fake(24), "slack-token"),
    ("postgresql://ada:{}@db.example:5432/app", "not-a-p@ssword", "url-password"),
    ("redis://:{}@cache.example", "not-a-password", "url-password"),
    ("https://{}@git.example/a.git", fake(24), "url-password"),
    ("password={}", "hunter2", "secret"),
    ("DB_PASS={} ./run", "hunter2", "secret"),
    ("password: {}, then", "hunter2", "secret"),
    ("--password {} --verbose", "hunter2", "secret"),
    ("--api-key={}", "hunter2", "secret"),
    ('{{"apiKey": "{}", "n": 1}}', "a b \\\" c", "secret"),
    ("{{'client_secret': '{}'}}", "hunter 2", "secret"),
    ('{{\\"accessToken\\": \\"{}\\"}}', "hunter 2", "secret"),
    ("Authorization: {}", "Custom hunter 2", "secret"),
    ("Set-Cookie: {}", "sid=hunter2; Path=/", "secret"),
    ("config.private_key = b'{}'", "hunter2", "secret"),
    ('os.environ["DB_PASSWORD"] = "{}"', "hunter2", "secret"),
    ("<password>{}</password>", "hunter2", "secret"),
    ("secret => {}", "hunter2", "secret"),
    ("passphrase = '''{}'''", "two\nlines", "secret"),
    ("tokens: {}", '["hunter2", "hunter3"]', "secret"),
    ("data:\n  password: |\n{}\nkind: Secret", "    two\n    lines", "secret"),
    ("password: >-\n{}", "  two\n  lines", "secret"),
    ("PGPASSWORD={} psql", "hunter2", "secret"),
    ("x-auth-token: {}", "hunter2", "secret"),
    ("?access_token={}&page=2", "hunter2", "secret"),
    ("session_id={}", "hunter2", "secret"),
    ('{{"credentials": {{"user": "{}", "on": true}}, "after": 2}}', "hunter 2", "secret"),
    ('{{"credentials": {{"a": {{"b": [null, ["{}"]]}}}}}}', "hunter2", "secret"),
    ('{{\\"secrets\\": {{\\"a\\": \\"{}\\"}}}}', "hunter 2", "secret"),
    ("credentials: {{user: ada, other: {}}}, more", "hunter2", "secret"),
    ("{{'password': {{'old': '{}'", "hunter2", "secret"),
    ('{{"name": "DB_PASSWORD", "value": "{}", "n": 1}}', "hunter 2", "secret"),
    ('{{"value": "{}", "name": "DB_PASSWORD"}}', "hunter 2", "secret"),
    ("[{{'key': 'x-api-key', 'value': '{}'}}]", "hunter 2", "secret"),
    ('{{\\"header\\": \\"Cookie\\", \\"value\\": \\"{}\\"}}', "sid=hunter2", "secret"),
    ("env:\n- name: DB_PASSWORD\n  value: {}\n- name: HOST\n  value: db\n", "hunter2", "secret"),
    ('[["X-Api-Key", "{}"], ["Accept", "*/*"]]', "hunter2", "secret"),
    ("[('accept', '*/*'), ('cookie', '{}')]", "sid=hunter2", "secret"),
    ("[(b'accept', b'*/*'), (b'authorization', b'{}')]", "Custom hunter2", "secret"),
    ('["mysql", "--password", "{}", "--quick"]', "hunter 2", "secret"),
    ("['tool', '--api-key', '{}']", "hunter2", "secret"),
    ('{{\\"argv\\": [\\"--token\\", \\"{}\\"]}}', "hunter2", "secret"),
    ('<add key="DB_PASSWORD" value="{}"/>', "hunter 2", "secret"),
    ('<input value="{}" name="csrf_token">', "hunter2", "secret"),
    ('{{"Name": "DB_PASSWORD", "Value": "{}"}}', "hunter 2", "secret"),
    ("https://x.example/?next=%2Flogin%3Fpassword%3D{}", "hunter2%26page%3D2", "secret"),
    ("%7B%22api_key%22%3A%22{}", "hunter2%22%7D", "secret"),
    ("%7B%22api_key%22%3A%20{}", "hunter2", "secret"),
    ("access_token\\u003d{}", "hunter2", "secret"),
    ("to=https%3A%2F%2Fada%3A{}%40db.example%2Fapp", "hunter%232", "url-password"),
    ("to=https%3a%2f%2f{}%40git.example%2fa.git", fake(24), "url-password"),
    ("sent=Bearer%20{}&n=1", fake(12), "bearer-credential"),
    ("sent=Bearer+{}", fake(12), "bearer-credential"),
    ("sent=Basic%20{}&n=1", basic("ada:hunter2>>?").replace("+", "%2B").replace("=", "%3D"), "basic-credential"),
    ('{{"auths": {{"r.example": {{"auth": "{}"}}}}}}', basic("ada:hunter2"), "basic-credential"),
    ('{{\\"auth\\": \\"{}\\"}}', basic("ada:hunter2"), "basic-credential"),
    ("curl -s -u ada:{} https://x.example", "hunter2", "basic-credential"),
    ("curl --user 'ada:{}' https://x.example", "hunter2", "basic-credential"),
    ('["curl", "-u", "ada:{}"]', "hunter2", "basic-credential"),
    ("//r.example/:_auth={}", basic("ada:hunter2"), "basic-credential"),
]

HARMLESS = [
    "The quick brown fox jumps over the lazy dog.",
    "max_tokens: 4096, input_tokens=12, token_count=5, tokens: 17",
    "def login(token: str, password: str | None = None) -> None:",
    "self.token = token",
    "password=password",
    "password = os.environ['DB_PASSWORD']",
    "api_key: ${API_KEY}",
    "secret: {{ vault_secret }}",
    "token: $GITHUB_TOKEN",
    '{"password": "", "token": null, "cookie": true}',
    '{"password": {"type": "string"}}',
    "Basic authentication, then bearer authentication",
    "a bearer certificate",
    "task-runner, risk-averse, disk-usage-of-the-last-12-months",
    "sk-fading-circle sk-cube-grid-of-nine-cells",
    "https://example.com:8080/a@b/c?sig=1",
    "git@github.example:a/b.git and ada@example.com",
    "ssh://git@host.example/a.git",
    "the tokenizer=gpt2 of secretary=Ada",
    "password_policy=strict token_type: Bearer secret_name=db",
    "PASS: 12 tests, bypass=yes, passed: 3",
    "primary_key=id keyboard: de foreign-key: 3 monkey: 1",
    "AKIA is a prefix, eyJ another, ghp_ a third, xoxb- a fourth",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
    "cookie_name = x",
    "if password > 5 and token != 3: pass",
    '["password", "username"]',
    "keys = ('token', 'session')",
    "password: { type: String, required: true }",
    "token: {see below for what it is, and why",
    '{"name": "token_count", "value": "seven"}',
    '{"name": "HOST", "value": "db"}',
    '[["Accept", "*/*"], ["Content-Type", "text/html"]]',
    "max_tokens: {a: 5, b: [6, 7]}",
    '["--password-file", "a.txt", "--token", "--quiet"]',
    '{"auth": "none", "oauth": "authorization-code"}',
    "see https%3A%2F%2Fexample.com%3A8080%2Fa%40b and basic%20authentication",
    '<input name="page" value="2">',
    "curl -u ada https://x.example:8080/top-up:1",
    "docker run -u 1000:1000 image",
    "monkey%3D1%26keyboard%3Dde",
]


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return build_redactor()


@pytest.mark.parametrize(("secret", "kind"), [case[1:] for case in SECRETS], ids=[case[0] for case in SECRETS])
@pytest.mark.parametrize("frame", ["{}", "see {} there", '["{}"]', "a={}\n", "(`{}`)", "é{}é", "\n{}\n"])
def test_a_secret_is_masked_wherever_it_stands(redactor: Redactor, secret: str, kind: str, frame: str) -> None:
    assert redactor.text(frame.format(secret)) == frame.format(f"[redacted: {kind}]")


@pytest.mark.parametrize(("frame", "secret", "kind"), PLACED, ids=[case[0][:30] for case in PLACED])
def test_a_secret_is_masked_behind_what_gives_it_away(redactor: Redactor, frame: str, secret: str, kind: str) -> None:
    masked = redactor.text(frame.format(secret))
    assert masked.endswith(frame.format("|").rpartition("|")[2])
    assert f"[redacted: {kind}]" in masked
    assert secret not in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_the_very_same_text(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) is text


def test_a_private_key_that_is_cut_off_is_masked_to_where_it_breaks(redactor: Redactor) -> None:
    text = pem("PRIVATE " + "KEY").partition("==")[0] + "\n" + '"then": 1'
    assert redactor.text(text) == '[redacted: private-key]"then": 1'


def test_an_aws_secret_right_behind_its_id_goes_with_it(redactor: Redactor) -> None:
    assert redactor.text(f"{'AKIA' + 'FAKE' * 4},{fake(40)}\n") == "[redacted: aws-key]\n"


def test_a_known_kind_is_shown_also_behind_a_secret_name(redactor: Redactor) -> None:
    assert redactor.text(f"api_key=sk-{fake(40)}") == "api_key=[redacted: model-key]"


def test_a_secret_right_behind_another_one_does_not_survive(redactor: Redactor) -> None:
    masked = redactor.text("AKIA" + "FAKE" * 4 + "," + "eyJ" + fake(20) + "." + fake(20) + "." + fake(20))
    assert "fAkE" not in masked


def test_what_follows_a_mask_under_a_secret_name_is_masked_too(redactor: Redactor) -> None:
    assert redactor.text("password=[redacted: secret]hunter2") == "password=[redacted: secret]"


def test_a_text_that_is_masked_already_stays_the_very_same(redactor: Redactor) -> None:
    text = "password: [redacted: secret], Authorization: [redacted: bearer-credential]"
    assert redactor.text(text) is text


def test_a_rule_can_be_left_out() -> None:
    from dsh_plugin_redact import Config

    lenient = build_redactor(Config(without=("secret", "aws-key")))
    text = "password=hunter2 " + "AKIA" + "FAKE" * 4
    assert lenient.text(text) is text


def test_upper_case_letters_that_grow_when_lowered_do_not_shift_the_mask(redactor: Redactor) -> None:
    assert redactor.text("İİİ password=hunter2 İ") == "İİİ password=[redacted: secret] İ"


def joined(make: Callable[[str], str]) -> st.SearchStrategy[tuple[str, str]]:
    body = st.text(string.ascii_letters + string.digits, min_size=36, max_size=60)
    return st.tuples(body.map(lambda text: text[:-1] + "7")).map(lambda drawn: (make(drawn[0]), drawn[0]))


FORMED = st.one_of(
    joined(lambda body: "ghp_" + body),
    joined(lambda body: "sk-" + body),
    joined(lambda body: "Bearer " + body),
    joined(lambda body: f"password={body}"),
    joined(lambda body: f'"api_key": "{body}"'),
    joined(lambda body: f"https://ada:{body}@host.example"),
    joined(lambda body: f"eyJ{body}.{body}.{body}"),
)
AROUND = st.lists(st.sampled_from([*" \n\"'{}[](),.;:=é<>&", "[redacted: x]"]), max_size=12).map("".join)


@given(AROUND, FORMED, AROUND, FORMED, AROUND)
def test_masking_twice_is_masking_once(
    a: str, first: tuple[str, str], b: str, second: tuple[str, str], c: str
) -> None:
    redactor = build_redactor()
    once = redactor.text(a + first[0] + b + second[0] + c)
    assert redactor.text(once) == once


@given(st.lists(st.sampled_from(
    ["password", "=", ":", " ", '"', "'", "\\", "[redacted: x]", "[redacted:", "]", "sk-", "a1" * 12, "ghp_", "eyJ",
     ".", "cookie", "\n", "Bearer", "://", "@", "é", "tokens", "3", "[", "{", "--token", "AKIA" + "A" * 16, "Q~", "/"]
), max_size=24))
def test_masking_twice_is_masking_once_also_where_rules_meet(pieces: list[str]) -> None:
    redactor = build_redactor()
    once = redactor.text("".join(pieces))
    assert redactor.text(once) == once


@given(AROUND, FORMED, AROUND)
def test_no_secret_survives_between_punctuation(before: str, formed: tuple[str, str], behind: str) -> None:
    text, secret = formed
    assert secret not in build_redactor().text(before + text + behind)

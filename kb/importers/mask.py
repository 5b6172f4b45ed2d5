"""Masks keys, tokens and passwords in text that people pasted, and removes control characters.

A secret is recognised by the prefix of its maker, by the header around it, or by the name it is assigned to. A wrong
mask costs a reviewer a look; a missed secret is served for years.

detect-secrets 1.5 is no base for this: without its entropy rules it finds 5 of the 10 tokens and 2 of the 33 placed
secrets of tests/test_importers.py, and with them it takes ordinary words for secrets. It looks for keys in source code,
not for what people paste into an issue, and knows no Chinese.
"""

from __future__ import annotations

import re

__all__ = ["MASK", "mask_secrets", "tidy"]

MASK = "[masked]"

_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(
    "\x1b\\[[0-9;]{0,20}[A-Za-z]|"
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255}|glpat-[\w-]{16,64}|hf_[A-Za-z0-9]{16,64}|"
    r"sk-[\w-]{16,200}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abeoprs]-[\w-]{10,200}|ya29\.[\w-]{20,300}|"
    r"LTAI[A-Za-z0-9]{12,30}|AKID[A-Za-z0-9]{13,40}|"
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,200}|SG\.[\w-]{10,64}\.[\w-]{10,64}|nvapi-[\w-]{16,100}|gsk_[A-Za-z0-9]{16,100}|"
    r"r8_[A-Za-z0-9]{16,64}|gl(?:rt|dt|ptt|cbt|ft)-[\w-]{16,64}|"
    r"MII[A-Za-z0-9+/]{45,4000}={0,2}|"  # a line of a key without the header around it
    r"npm_[A-Za-z0-9]{30,64}|pypi-[\w-]{30,300}|dckr_pat_[\w-]{20,64}|eyJ[\w-]{10,400}\.[\w-]{10,2000}\.[\w-]{5,600})"
)
_OPEN = r"(?![$<{*\[%])"  # `$TOKEN`, `<your token>` and `***` are placeholders, not secrets
_GIVEN = r"[\"']?[ \t]{0,4}[:=：][ \t]{0,4}[\"'`]?"
# `passwd`, `DB_PASS`, `MYSQL_ROOT_PWD`, `passphrase`; `pass` alone is an ordinary word, and so is the folder of `pwd`
_NAMED_PASSWORD = (
    r"(?:passw(?:or)?d|passphrase|(?<![A-Za-z])(?:[A-Za-z0-9]{1,40}_){1,5}(?:pass|pwd)|(?<![\w-])PASS(?==)|"
    r"(?<![\w-])pwd(?=[\"']?[ \t]{0,4}[:=：][ \t]{0,4}[\"']?[^\s\"'/.~$][^\s\"'/]*(?:[\s\"',;)}\]`]|$)))"
)
_PLACES = (
    re.compile(r"(?i)\b(?P<keep>bearer[ \t]{1,4})[\w.~+/=-]{8,2000}"),
    re.compile(
        r"(?i)(?P<keep>\bauthorization[\"']?[ \t]{0,4}[:=][ \t\"']{0,4}(?:basic|token)[ \t]{1,4})[^\s\"']{6,2000}"
    ),
    re.compile(r"(?i)(?P<keep>\bcookie[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?)(?=[^\n\"'=]{1,80}=)[^\n\"']{4,8000}"),
    re.compile(rf"(?P<keep>://[^\s/:@\"'<>]{{0,64}}:){_OPEN}[^\s/\"'<>]{{1,200}}(?=@)"),
    re.compile(
        r"(?i)(?P<keep>(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?key)?|private[_-]?key|"
        rf"(?:access|auth|refresh|session|bot|api|hf|git(?:hub|lab))[_-]?token){_GIVEN}){_OPEN}[^\s\"',;)}}\]`&]{{6,500}}"
    ),
    # a quoted value ends at its quote, which may stand behind several words
    re.compile(
        rf"(?i)(?P<keep>{_NAMED_PASSWORD}[\"']?[ \t]{{0,4}}[:=：][ \t]{{0,4}})"
        rf"(?:\"{_OPEN}[^\"\n]{{4,500}}\"|'{_OPEN}[^'\n]{{4,500}}')"
    ),
    re.compile(
        rf"(?i)(?P<keep>{_NAMED_PASSWORD}{_GIVEN}){_OPEN}(?!(?:none|null|true|false|yes|no)\b)"
        r"[^\s\"',;)}\]`]{4,500}"
    ),
    # without a sign between: quoted, or of letters and digits, unlike "password is wrong" and "pass: 3 of 4"
    re.compile(rf"(?i)(?P<keep>{_NAMED_PASSWORD}[ \t]{{1,4}})(?:\"{_OPEN}[^\"\n]{{4,500}}\"|'{_OPEN}[^'\n]{{4,500}}')"),
    re.compile(
        rf"(?i)(?P<keep>(?:{_NAMED_PASSWORD}[ \t]{{1,4}}(?:is|was)[ \t]{{1,4}}|(?<![\w-])pass{_GIVEN})){_OPEN}"
        r"(?=[^\s\"']{0,80}[A-Za-z])(?=[^\s\"']{0,80}\d)[^\s\"']{8,500}"
    ),
    re.compile(r"(?i)(?P<keep>\bapi[ _-]?key[ \t]{1,4}(?:is[ \t]{1,4})?[\"']?)[\w-]{24,200}"),
    re.compile(r"(?i)(?P<keep>[?&](?:sig|signature|x-amz-signature|x-oss-signature)=)[\w%+/=.-]{6,500}"),
    # programs that take it as an option: a letter that means something else to others
    re.compile(
        r"(?P<keep>\b(?:mysql|mariadb)\w{0,10}[ \t][^\n|;&]{0,300}?(?<=[ \t])-p)"
        rf"{_OPEN}[^\s\"'-][^\s\"']{{2,200}}"
    ),
    re.compile(
        r"(?P<keep>\b(?:docker|podman|helm|oc)[ \t][^\n|;&]{0,200}?\blogin[ \t][^\n|;&]{0,200}?(?<=[ \t])-p[ \t=]{1,4}"
        rf"[\"']?){_OPEN}[^\s\"']{{3,200}}"
    ),
    re.compile(rf"(?P<keep>\bredis-cli[ \t][^\n|;&]{{0,300}}?(?<=[ \t])-a[ \t]{{1,4}}[\"']?){_OPEN}[^\s\"']{{3,200}}"),
    re.compile(r"(?P<keep>\"auth\"[ \t]{0,4}:[ \t]{0,4}\")[A-Za-z0-9+/=]{8,500}"),
    re.compile(r"(?i)(?P<keep>\b(?:account|shared[_-]?access)[_-]?key(?:name)?=)[A-Za-z0-9+/=]{16,200}"),
    re.compile(rf"(?P<keep>(?:密码|口令|密钥|秘钥|令牌)(?:[是为]|{_GIVEN})[ \t]{{0,4}}){_OPEN}[!#-&(-+\--~]{{4,200}}"),
    re.compile(
        rf"(?i)(?P<keep>(?<![\w-])token{_GIVEN}){_OPEN}(?=[A-Za-z_./+=~-]{{0,80}}\d|[\w-]{{20}})[\w.~+/=-]{{8,500}}"
    ),
    re.compile(
        r"(?i)(?P<keep>(?<![\w-])--(?:(?:hf|api|access|auth|user|use[_-]auth|git(?:hub|lab))[_-])?"
        rf"(?:token|api[_-]?key|passw(?:or)?d|secret)[ \t=]{{1,4}})"
        rf"(?:\"{_OPEN}[^\"\n]{{4,500}}\"|'{_OPEN}[^'\n]{{4,500}}'|{_OPEN}(?![-\"'])[^\s\"'`]{{4,500}})"
    ),
    re.compile(
        r"(?P<keep>\b[A-Z][A-Z0-9_]{1,40}_(?:TOKEN|KEY|PAT)[\"']?[ \t]{0,4}[:=][ \t\"']{0,4})"
        r"(?![$<{*\[])[^\s\"',;]{8,500}"
    ),
    re.compile(
        r"(?P<keep>\bwandb(?:[ \t]{1,4}login[ \t]{1,4}(?:--?[\w-]{1,20}[ \t]{1,4}){0,3}|"
        r"\.login\([^()\n]{0,80}key[ \t]{0,2}=[ \t]{0,2})[\"']?)[0-9a-zA-Z_]{32,100}"
    ),
    re.compile(
        rf"(?P<keep>\bsshpass[ \t]{{1,4}}-p[ \t]{{0,4}})"
        rf"(?:\"{_OPEN}[^\"\n]{{1,200}}\"|'[^'\n]{{1,200}}'|{_OPEN}[^\s\"']{{1,200}})"
    ),
    re.compile(
        r"(?P<keep>\bcurl[ \t][^\n]{0,300}?(?<=[ \t])(?:-u|--user)[ \t=]{0,4}[\"']?[^\s:\"']{1,80}:)"
        rf"{_OPEN}[^\s\"']{{1,200}}"
    ),
    # addresses that are secrets: robots of Slack, Discord, Feishu, WeCom (DingTalk's has an access_token)
    re.compile(
        r"(?P<keep>\bhooks\.slack\.com/(?:services|workflows|triggers)/|\bdiscord(?:app)?\.com/api/webhooks/|"
        r"\bopen\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/|"
        r"\bqyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=)[\w/-]{6,300}"
    ),
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,16000}(?:-(?!----)[^-]{0,16000}){0,400}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)


def tidy(text: str) -> str:
    """The text with line feeds as line ends, without control characters, direction marks and lone surrogates."""
    return _CONTROL.sub("", _BREAKS.sub("\n", text))


def mask_secrets(text: str) -> str:
    """The text with `[masked]` in place of each key, token and password."""
    text = _TOKENS.sub(MASK, _PEM.sub(MASK, text))
    for place in _PLACES:
        text = place.sub(rf"\g<keep>{MASK}", text)
    return text

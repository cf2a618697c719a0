from __future__ import annotations

import time

import pytest

from services.search.questions import (
    EARLIER_QUESTION,
    asking_sentences,
    asks_for_something,
    current_question,
    is_follow_up,
    is_question,
    looks_finished,
    may_ask,
    words_to_search,
)
from tests.services.search.questions_by_language import LABELLED


@pytest.mark.parametrize(
    "text",
    [
        "How do I rotate the key",
        "hey all, what does E-17 mean?",
        "wondering whether this runs on ARM",
        "it keeps restarting",
        "I get an error when I log in",
        "Error: cannot open the socket",
        "The import won't start",
        "anyone know where the logs are",
        "could you explain the second step",
        "thanks! one more thing: can I change the port?",
        "Maria: which of the two is it?",
        "stuck at 3 %\n```\nlog\n```",
    ],
)
def test_requests_and_reports_are_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hi",
        "thank you so much!",
        "ok",
        "really?",
        "https://example.org/?a=b",
        "see https://example.org/search?q=how+do+i",
        "> how do I do that?\nlike Ana said",
        "```\nwhat is this?\n```",
        "you should check the port, it fails when it is taken",
        "Tom: that fails because the disk is full",
        "Tom: have you restarted it?",
        "what version are you on?",
        "it works now, the error was mine",
        "are you serious?",
        "[image: how.png]",
        "hey, what's up?",
    ],
)
def test_chatter_links_quotes_and_advice_are_not(text: str) -> None:
    assert not is_question(text)


def test_asking_on_is_told_from_thanking() -> None:
    assert is_follow_up("and on Windows?")
    assert is_follow_up("ok thanks, what about the app")
    assert not is_follow_up("and that was it")
    assert not is_follow_up("thanks, works")


@pytest.mark.parametrize(
    "text",
    [
        "404 handler on my blueprint is never called for unknown paths",
        "my lock file resolves another version of numpy on the build server",
        "ValueError: invalid literal for int while parsing the export of last night",
        "container has several ports and the proxy picks the wrong one",
        "ci should fail when coverage is below 80",
        "want to skip all node_modules",
        "wildcard certificate for subdomains",
        "redirect www to non www",
    ],
)
def test_a_report_of_trouble_a_need_and_a_few_words_may_ask(text: str) -> None:
    assert may_ask(text)


@pytest.mark.parametrize(
    "text",
    [
        "my build broke",  # too short to tell what of it
        "the release of numpy resolves another version on several build servers",  # nobody's own trouble
        "your lock file resolves another version of numpy on my build server",  # to somebody else
        "Tom: my lock file resolves another version of numpy on the server",
        "try my lock file, it resolves another version of numpy on servers",
        "my lock file resolves another version of numpy, but it works now",
        "my lock file resolves another version of numpy, I figured it out",
        "unfortunately it doesn't have const traits yet",
        "the type parameter is on the trait, not the method",
        "redirects work",
        "phew, fingerprints match again",
        "macros of that kind are rare in practice",
        "some reading about wildcard certificates: https://docs.example/wildcard",
    ],
)
def test_what_is_short_settled_or_said_to_others_does_not(text: str) -> None:
    assert not may_ask(text)


@pytest.mark.parametrize("text", ["uv cache directory", "hi! proxy settings please", "how do I rotate the key?"])
def test_to_the_bot_keywords_are_enough(text: str) -> None:
    """Pitfall 61: somebody who addresses the bot gets an answer, or is told that there is none."""
    assert asks_for_something(text)


@pytest.mark.parametrize(
    "text", ["", "thanks!", "hi there", "thanks, it works now", "how are you?", "https://example.net/a", "cache", "lol"]
)
def test_thanks_greetings_links_and_one_word_ask_the_bot_for_nothing(text: str) -> None:
    assert not asks_for_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wie kann ich den Cache leeren?",
        "hallo, weiß jemand wo die Konfiguration liegt",
        "¿Dónde está el archivo de configuración?",
        "hola, cómo se puede limpiar la caché",
        "comment vider le cache avec cette commande",
        "como limpar o cache do uv",
        "как очистить кэш",
        "如何清理缓存",
        "清理缓存会不会影响正在跑的任务",
        "用apt卸载，配置是不是也没了",
        "docker部署需要root权限吗？",
        "为啥缓存一直在涨",
        "缓存在哪里？",
        "キャッシュはどこですか",
        "캐시는 어디에 있나요",
        "كيف أمسح الذاكرة المؤقتة؟",
    ],
)
def test_questions_in_other_languages_are_questions(text: str) -> None:
    """Pitfall 57."""
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["danke, das hat geholfen", "gracias!", "merci beaucoup", "спасибо", "谢谢", "不不，好了", "ありがとう"]
)
def test_thanks_in_other_languages_are_none(text: str) -> None:
    assert not is_question(text)


def test_marked_questions_of_three_words_or_more_are_recognised_in_all_catalogued_languages() -> None:
    marked = [text for _, text in LABELLED if text.endswith(("?", "？"))]
    assert len(marked) > 50
    assert [text for text in marked if not is_question(text) and len(text.split()) > 2] == []


def test_names_attachments_and_addresses_are_not_looked_for_and_earlier_questions_are() -> None:
    asked = "@Millrace which lever? [image: a.png] [file: b.log, 3 kB] https://x.example/a"
    asked += f"\n{EARLIER_QUESTION}what is a valve?"
    assert words_to_search(asked).split() == ["which", "lever?", "what", "is", "a", "valve?"]
    assert current_question(asked).split() == ["which", "lever?", "https://x.example/a"]
    assert words_to_search("hi all, which lever?") == "which lever?"
    assert words_to_search("npm i @scope/package").split()[-1] == "@scope/package"


@pytest.mark.parametrize("part", ["is it ", "@a ", "?, ", "how do ", "[file: ", "error: ", "```", "and ", " - ", "不"])
def test_no_message_takes_long_to_judge(part: str) -> None:
    text = part * (40_000 // len(part))
    began = time.process_time()
    for judge in (
        is_question,
        may_ask,
        asks_for_something,
        is_follow_up,
        words_to_search,
        current_question,
        asking_sentences,
    ):
        judge(text)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "How do I install it on Windows?",
        "hi all\nI get error 500 when I start it. what can I do",
        "Windows 11?",
        "and on Windows?",
        "how do I fix this\n```\nE42\n```",
        "Wie installieren?",
        "hallo, wo finde ich die logs?",
        "¿Cómo instalo esto en Windows?",
        "Comment vider le cache ?",
        "como limpar o cache do uv",
        "как очистить кэш",
        "怎么安装？",
        "インストール方法を教えてください。",
        "캐시는 어디에 있나요",
        "كيف أمسح الذاكرة المؤقتة؟",
        "Jak wyczyścić pamięć podręczną?",
    ],
)
def test_a_question_that_stands_there_whole_looks_finished(text: str) -> None:
    assert looks_finished(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hi",
        "Hello?",
        "ok?",
        "?",
        "anyone here?",
        "Can I ask a question?",
        "really?",
        "thanks, that worked!",
        "hola",
        "danke!",
        "谢谢",
        "How do I install it on Windows? I tried this:",
        "How do I install it on Windows, ",
        "how do I install it...",
        "wo finde ich die Logs …",
        "怎么安装，",
        "如何清理缓存：",
        "how do I fix this\n```\nE42",
        "I have two questions - ",
        "I get error 500 when I start it",
        "how do I start it\nit is on Windows 11",
        "https://example.org/log",
    ],
)
def test_greetings_thanks_and_what_is_left_open_do_not(text: str) -> None:
    assert not looks_finished(text)

from __future__ import annotations

import pytest

from services.search.replies import MAX_THANKS_CHARS, says_it_worked


@pytest.mark.parametrize(
    "text",
    [
        "thanks!",
        "Thank you so much",
        "ah, that worked",
        "ok it works now",
        "this fixed it for me, ty",
        "Vielen Dank, klappt jetzt",
        "danke",
        "¡gracias!",
        "merci beaucoup",
        "obrigado",
        "спасибо, заработало",
        "谢谢，可以了",
        "ありがとうございます",
        "thanks, that worked",
        "that solved my problem, thank you!",
        "I did what you wrote and it works now",
        "thanks! and how do I restart it?",
        "ty!",
        "it didn't work at first, but after a restart it works",
        "Super, es funktioniert jetzt",
        "ça marche, merci",
        "oh I see, thanks",
        "that did it",
        "works like a charm",
        "解决了",
        "助かりました",
        "ya funciona",
        "agora funciona",
    ],
)
def test_thanks_and_success_are_told(text: str) -> None:
    assert says_it_worked(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "thanks, but it still fails",
        "that didn't work",
        "it doesn’t help :(",
        "no luck",
        "same error after a restart",
        "danke, aber das geht leider nicht",
        "klappt immer noch nicht",
        "no funciona",
        "ça ne marche pas",
        "não funcionou",
        "не помогло",
        "还是不行",
        "動きません",
        "that didn't work, any other idea?",
        "I tried what you said but that didn't work",
        "doesn't work for me",
        "I get the same error, do you know why?",
        "still not working",
        "Hat leider nicht geholfen",
        "еще раз: не работает",
        "没用",
        "まだ動きません",
        "todavía no funciona",
        "ça n'a pas marché",
        "ça ne marche toujours pas",
        "when I tried that, it didn't work",
        "It works on Linux now, still broken on Mac",
        "это не помогло",
        "isso não funcionou",
        "klappt jetzt nicht",
        "спасибо, но всё равно не работает",
        "ça marche pas",
    ],
)
def test_failure_is_told_also_beside_thanks(text: str) -> None:
    assert says_it_worked(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "and how do I restart it?",
        "thanks in advance",
        "the login does not work, what can I do?",
        "party at five",
        "",
        "How do I restore a backup? Thanks",
        "I need help with the installer, thanks",
        "can you explain how it works",
        "I'd like to know how this works",
        "what should I do if that doesn't work?",
        "If that doesn't work I'll come back",
        "Is it still broken on v2?",
        "is there still no way to do X?",
        "how do I run ty on a folder",
        "no thanks",
        "no, thank you",
        "Thanks anyway",
        "nothing works now",
        "It worked before the update",
        "it works on my laptop, not in docker",
        "hope this helped",
        "not sure that worked",
        "did that work?",
        "that worked?",
        "请问怎么安装？谢谢",
        "请问怎么安装谢谢",
        "在哪里可以了解更多",
        "这样就可以了吗？",
        "我没用过 Docker",
        "这样行不行",
        "解决了吗",
        "El login no funciona, ¿qué hago?",
        "si no funciona, aviso",
        "la connexion ne marche pas",
        "comment ça marche ?",
        "comment ça marche",
        "o login não funciona",
        "логин не работает",
        "как это заработало",
        "サーバーが動きません",
        "動きましたか",
        "解決しましたら連絡します",
        "es geht nicht um den Login",
        "geht das nicht auch einfacher?",
        "Der Login geht nicht",
        "is it not the same error as E7?",
        "Could somebody please look at this, thanks",
        "nein danke",
        "заранее спасибо",
        "merci d'avance",
        "提前谢谢",
        "先谢谢了",
        "does it do it again and again",
        "the way this works is odd",
        "Why is it that this works and the other doesn't?",
        "Also: make sure that works",
        "and on Windows? thanks",
    ],
)
def test_questions_conditions_and_everything_else_say_neither(text: str) -> None:
    assert says_it_worked(text) is None


def test_what_is_told_last_counts() -> None:
    assert says_it_worked("it works now. No, still broken") is False
    assert says_it_worked("still broken. No, wait, it works now") is True


def test_the_limit_is_that_of_a_short_message() -> None:
    assert says_it_worked("thanks " + "x" * (MAX_THANKS_CHARS - 7)) is True
    assert says_it_worked("thanks " + "x" * (MAX_THANKS_CHARS - 6)) is None

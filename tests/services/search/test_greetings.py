import pytest

from services.search.questions import without_greeting


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("hi there\nhow do I restore a backup?", "how do I restore a backup?"),
        ("Hi there! How do I restore a backup?\nI tried", "How do I restore a backup?\nI tried"),
        ("Hello!\n\n:)\nGood morning all, why?", "why?"),
        ("@millrace hey, hello everyone: it fails", "it fails"),
        ("Guten Tag zusammen, wie geht das?", "wie geht das?"),
        ("你好，怎么恢复备份？", "怎么恢复备份？"),
        ("hi-fi output stutters", "hi-fi output stutters"),
        ("hello world does not compile", "hello world does not compile"),
        ("history is empty", "history is empty"),
        ("hi there!", "hi there!"),
        ("hey\n👍", "hey\n👍"),
        ("", ""),
        ("x" * 500, "x" * 500),
    ],
)
def test_a_greeting_goes_and_the_question_stays(text: str, rest: str) -> None:
    assert without_greeting(text) == rest

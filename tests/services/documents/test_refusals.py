from __future__ import annotations

import pytest

from services.documents import FileLimits, FileRefused, check_file, refusal_text


def refusal(filename: str, size: int, **more: int) -> FileRefused:
    with pytest.raises(FileRefused) as raised:
        check_file(filename, size, FileLimits(), **more)
    return raised.value


def test_why_a_file_is_not_taken_is_told_in_the_language_asked_for() -> None:
    archive = refusal("logs.zip", 10)
    english = "logs.zip is an archive, and those are not opened. Unpack it and send the text files in it."
    assert refusal_text(archive) == english
    assert refusal_text(archive, "de").startswith("logs.zip ist ein Archiv")
    assert refusal_text(archive, "tlh") == english


def test_what_to_do_about_it_is_told_as_well() -> None:
    large = refusal("app.log", 11 * 1024 * 1024)
    assert refusal_text(large, "fr").startswith("app.log fait 11 MiB, et le maximum est de 10 MiB. On peut")
    many = refusal("app.log", 10, files=21)
    assert refusal_text(many, "ru").startswith("app.log уже лишний: здесь 21 файл,")

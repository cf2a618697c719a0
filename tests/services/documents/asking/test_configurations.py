"""Settings, by other words than their names."""

from __future__ import annotations

import pytest

from services.documents.asking import vocabulary


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What does web depend on?", "services.web.depends_on[0]", "services.proxy.depends_on[0]"),
        ("which services must be up before web?", "services.web.depends_on[0]", "services.web.image"),
        ("what does web run when it starts", "services.web.command", "services.web.restart"),
        ("when does the check of web time out?", "services.web.healthcheck.timeout", "services.web.healthcheck.test"),
        ("after how many failed checks is web unhealthy?", "services.web.healthcheck.retries", "services.web.build"),
    ],
)
def test_a_setting_is_meant_by_other_words_than_its_name(question: str, right: str, wrong: str) -> None:
    assert vocabulary.fit(question, right) > vocabulary.fit(question, wrong)

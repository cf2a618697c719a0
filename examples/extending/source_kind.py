"""A kind of knowledge source: questions and answers in a JSON file, each of them one source.

    {"Which port does the relay use?": "7070, or what RELAY_PORT says."}

The table in `services/knowledge/kinds.py` gets one more entry: `Questions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from clock import now, rfc3339
from services.knowledge.cache import Record, hash_text
from services.knowledge.source_kinds import (
    CannotList,
    Listing,
    SourceKind,
    SourceSetup,
    Text,
)
from services.storage import confined, in_thread

ANSWERS = TypeAdapter(dict[str, str])


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecord(Record):
    question: QuestionFacts
    source_type: Literal["question"] = "question"

    @property
    def source_id(self) -> str:
        return self.question.id


class Questions(SourceKind[QuestionRecord]):
    noun, plural = "question", "questions"
    step, record = "questions", QuestionRecord
    batch, concurrency = 100, 1

    def __init__(self, setup: SourceSetup) -> None:
        self._file = setup.sources_dir.with_name("questions.json")

    def owns(self, source_id: str) -> bool:
        return source_id.startswith("faq:")

    def list_sources(self, records: Mapping[str, QuestionRecord], _at: float) -> Listing:
        if not records and not self._file.exists():
            return Listing()  # nobody uses this kind here
        try:
            texts = self._texts()
        except (OSError, ValueError) as error:
            raise CannotList(str(self._file), f"cannot be read ({error})", "questions") from error
        known = {source_id: record.content_hash for source_id, record in records.items()}
        same = {source_id for source_id, text in texts.items() if hash_text(text) == known.get(source_id)}
        return Listing(unchanged=sorted(same), due=sorted(texts.keys() - same))

    async def fetch(self, due: Mapping[str, QuestionRecord | None]) -> Sequence[QuestionRecord]:
        texts, at = await in_thread(self._texts), rfc3339(now())
        records = {name: known or QuestionRecord.new(at, question=QuestionFacts(name)) for name, known in due.items()}
        return [record.with_content(hash_text(texts[name])) for name, record in records.items() if name in texts]

    def read(self, source_id: str) -> Text:
        signature = confined.signature_of(self._file.stat())  # first, so that a change meanwhile is noticed
        return Text(self._texts().get(source_id, ""), self._file, signature)

    def _texts(self) -> dict[str, str]:
        answers = ANSWERS.validate_json(self._file.read_bytes())
        return {f"faq:{question}": f"# {question}\n\n{answer}\n" for question, answer in answers.items()}
